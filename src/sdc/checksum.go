package sdc

import (
	"crypto/md5" //nolint:gosec // SDC's checksums are MD5
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// decodeChecksum returns the MD5 that a checksum of SDC contains: base64 of its
// hexadecimal digits or, in some releases, of its bytes.
func decodeChecksum(checksum string) ([]byte, bool) {
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(checksum))
	if err != nil {
		return nil, false
	}
	if len(text) == md5.Size {
		return text, true
	}
	sum, err := hex.DecodeString(strings.ToLower(string(text)))
	return sum, err == nil && len(sum) == md5.Size
}

func validChecksum(checksum string) bool {
	_, ok := decodeChecksum(checksum)
	return ok
}

// checked reads an artifact. Its end is an error unless the content has the checksum.
type checked struct {
	from io.Reader
	sum  hash.Hash
	want []byte
	left int64 // bytes until the limit is exceeded
	most int64
}

func newChecked(from io.Reader, checksum string, limit int64) *checked {
	want, _ := decodeChecksum(checksum)
	return &checked{from: from, sum: md5.New(), want: want, left: limit, most: limit} //nolint:gosec // as above
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.left -= int64(n)
	if c.left < 0 {
		return 0, nf.E(nf.TooLarge, "read", "the content", errLarge(c.most))
	}
	_, _ = c.sum.Write(p[:n]) // never fails
	if errors.Is(err, io.EOF) && string(c.sum.Sum(nil)) != string(c.want) {
		return n, &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "the content", Reason: nf.ReasonUnavailable,
			Err: fmt.Errorf("its MD5 is %x, but SDC announced %x", c.sum.Sum(nil), c.want)}
	}
	return n, err //nolint:wrapcheck // io.EOF is not wrapped
}

func errLarge(limit int64) error { return fmt.Errorf("it is larger than %d bytes", limit) }
