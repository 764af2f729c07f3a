package northbound

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// digest is a body that computes its SHA-256 while it is read.
type digest struct {
	io.ReadCloser

	state interface {
		io.Writer
		Sum(b []byte) []byte
	}
	whole bool // the end was reached
}

func newDigest(body io.ReadCloser) *digest { return &digest{ReadCloser: body, state: sha256.New()} }

// Read reads from the body and updates the hash.
func (d *digest) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	_, _ = d.state.Write(p[:n]) // never fails
	if errors.Is(err, io.EOF) {
		d.whole = true
	}
	return n, err
}

// sum returns the digest of a body that was read to its end and was not empty;
// otherwise it returns "".
func (d *digest) sum() string {
	empty := sha256.Sum256(nil)
	sum := d.state.Sum(nil)
	if !d.whole || string(sum) == string(empty[:]) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum)
}
