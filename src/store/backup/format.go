package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
)

// The format inside the encryption, version 1: lines of JSON, each ending with
// a line feed.
//
//	{"format":"k8splugin-backup","version":1,"schema":2,"created":"2026-01-02T15:04:05Z"}
//	{"key":"regions/east","value":"eyJpZCI6ImVhc3QifQ=="}
//	…
//	{"end":{"records":1,"sha256":"…"}}
//
// The keys are in ascending byte order, and the values are in base64. The
// checksum covers all bytes before the last line. Nothing follows the last
// line.
const (
	format  = "k8splugin-backup"
	version = 1
	maxLine = 2 << 20 // a value in base64 and its key, with a margin
)

// header is the first line of a backup.
type header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Schema  int       `json:"schema"`
	Created time.Time `json:"created"`
}

// line is any other line: an entry or the trailer.
type line struct {
	Key   string   `json:"key,omitempty"`
	Value []byte   `json:"value"`
	End   *trailer `json:"end,omitempty"`
}

type trailer struct {
	Records int    `json:"records"`
	SHA256  string `json:"sha256"`
}

// Summary describes the content of a backup.
type Summary struct {
	Schema  int       // the version of the contents
	Created time.Time // when the backup was started
	Records int
	Bytes   int64  // of all values
	SHA256  string // of the decrypted content, in hex
}

// encoder writes the format inside the encryption.
type encoder struct {
	w       io.Writer
	sum     hash.Hash
	last    string
	summary Summary
}

func newEncoder(w io.Writer, contents int, created time.Time) (*encoder, error) {
	e := &encoder{w: w, sum: sha256.New(), summary: Summary{Schema: contents, Created: created}}
	return e, e.line(header{Format: format, Version: version, Schema: contents, Created: created})
}

func (e *encoder) line(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	e.sum.Write(raw)
	_, err = e.w.Write(raw)
	return err
}

func (e *encoder) entry(key string, value []byte) error {
	if err := follows(e.last, key); err != nil {
		return err
	}
	e.last = key
	e.summary.Records++
	e.summary.Bytes += int64(len(value))
	return e.line(line{Key: key, Value: value})
}

func (e *encoder) end() (Summary, error) {
	e.summary.SHA256 = hex.EncodeToString(e.sum.Sum(nil))
	return e.summary, e.line(struct {
		End trailer `json:"end"`
	}{trailer{Records: e.summary.Records, SHA256: e.summary.SHA256}})
}

// decoder reads the format inside the encryption, and rejects any other input.
type decoder struct {
	r       *bufio.Reader
	sum     hash.Hash
	last    string
	summary Summary
}

func newDecoder(r io.Reader) (*decoder, error) {
	d := &decoder{r: bufio.NewReaderSize(r, maxLine), sum: sha256.New()}
	var h header
	raw, err := d.line()
	if err == nil {
		err = strict(raw, &h)
	}
	switch {
	case err != nil:
		return nil, err
	case h.Format != format:
		return nil, errors.New("it is not a backup of k8splugin")
	case h.Version != version:
		return nil, nf.E(nf.Unsupported, "read", "the backup", fmt.Errorf("it has format version %d, but this release supports format version %d", h.Version, version))
	case h.Schema < 1:
		return nil, fmt.Errorf("%d is not a valid version of a store", h.Schema)
	}
	d.sum.Write(raw)
	d.summary.Schema, d.summary.Created = h.Schema, h.Created
	return d, nil
}

// next returns the next entry; ok is false after a valid trailer.
func (d *decoder) next() (key string, value []byte, ok bool, err error) {
	raw, err := d.line()
	if err != nil {
		return "", nil, false, err
	}
	var l line
	if err := strict(raw, &l); err != nil {
		return "", nil, false, err
	}
	if l.End != nil {
		return "", nil, false, d.end(*l.End)
	}
	d.sum.Write(raw)
	if err := follows(d.last, l.Key); err != nil {
		return "", nil, false, err
	}
	if err := store.CheckSize(l.Key, l.Value, store.MaxValue); err != nil {
		return "", nil, false, err
	}
	d.last = l.Key
	d.summary.Records++
	d.summary.Bytes += int64(len(l.Value))
	return l.Key, l.Value, true, nil
}

func (d *decoder) end(t trailer) error {
	d.summary.SHA256 = hex.EncodeToString(d.sum.Sum(nil))
	if t.Records != d.summary.Records || t.SHA256 != d.summary.SHA256 {
		return errors.New("its entries do not match its last line")
	}
	switch _, err := d.r.ReadByte(); {
	case err == nil:
		return errors.New("it contains data after its last line")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// line returns the next line. It is valid until the next call.
func (d *decoder) line() ([]byte, error) {
	raw, err := d.r.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it is truncated")
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
	}
	return raw, err
}

// strict decodes a line without unknown, repeated or trailing data. The error
// does not contain the line, which may be secret.
func strict(raw []byte, into any) error {
	if wrong, err := kjson.UnmarshalStrict(raw, into); err != nil || len(wrong) > 0 {
		return errors.New("a line is invalid")
	}
	return nil
}

// follows returns an error if a key is invalid, or is not greater than the last
// one.
func follows(last, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if key <= last || strings.HasPrefix(key, schema.Prefix) {
		return fmt.Errorf("key %q is out of place", key)
	}
	return nil
}
