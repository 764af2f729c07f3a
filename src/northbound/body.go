package northbound

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// limitBody makes reading the request's body fail with nf.TooLarge after limit
// bytes. If the declared length is larger, it fails at once.
func limitBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // otherwise the server would read the rest of the body
		return tooLarge(limit)
	}
	// http.MaxBytesReader needs the server's own writer, below the wrappers.
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = u.Unwrap()
	}
	r.Body = &body{http.MaxBytesReader(w, r.Body, limit)}
	return nil
}

func tooLarge(limit int64) error {
	return nf.E(nf.TooLarge, "read", "the request", fmt.Errorf("its body is larger than %d bytes", limit))
}

// FormFault describes an error of mime/multipart without quoting the form.
func FormFault(err error) error {
	switch {
	case errors.Is(err, http.ErrMissingBoundary):
		return errors.New("its Content-Type has no boundary")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	}
	return errors.New("a part or its header cannot be read")
}

// FormPart is the content of a part of a form.
type FormPart struct {
	Part  io.Reader
	Fault func(error) error // returns the error of the form for an error of the part
}

// Read reads from the part.
func (p FormPart) Read(b []byte) (int, error) {
	n, err := p.Part.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = p.Fault(err)
	}
	return n, err // callers compare with io.EOF
}

// body assigns error kinds to failures of reading a request's body: a truncated
// body is the client's error, not an internal one.
type body struct{ io.ReadCloser }

// Read fails with nf.TooLarge, with nf.Invalid, or with status 408 if the
// client is too slow.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err // callers compare with io.EOF
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return n, tooLarge(e.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, refusal(http.StatusRequestTimeout, "the body was received too slowly")
	}
	return n, nf.E(nf.Invalid, "read", "the request", errors.New("its body ends too early"))
}
