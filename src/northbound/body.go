package northbound

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// limitBody makes the request's body end with nf.TooLarge after limit bytes. A
// body that says that it is larger is refused unread.
func limitBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // rather than read what nobody wants
		return tooLarge(limit)
	}
	// http.MaxBytesReader looks for the server's own writer behind the recorder.
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

// FormFault says what is wrong with a form that mime/multipart has refused.
func FormFault(err error) error {
	switch {
	case errors.Is(err, http.ErrMissingBoundary):
		return errors.New("its Content-Type has no boundary")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	}
	return errors.New("a part or its header cannot be read")
}

// body gives the errors of reading a request's body their kinds: a body that is
// cut off is the client's fault, not ours.
type body struct{ io.ReadCloser }

// Read reads, and fails with nf.TooLarge, nf.Invalid, or a refusal when the
// client is too slow.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err // io.EOF must be itself
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return n, tooLarge(e.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, refusal(http.StatusRequestTimeout, "the body comes too slowly")
	}
	return n, nf.E(nf.Invalid, "read", "the request", errors.New("its body is cut off"))
}
