package northbound

import (
	"context"
	"net/http"
)

// heads makes HEAD possible wherever GET is: the request is answered as a GET
// is, but for the body.
func heads(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		r.Method = http.MethodGet
		next.ServeHTTP(&headOnly{ResponseWriter: w, sent: cancel}, r)
	})
}

// headOnly sends the header of an answer. Whoever flushes would stream for as
// long as somebody listens, and nobody does: that is the end of the request.
type headOnly struct {
	http.ResponseWriter
	begun bool
	sent  context.CancelFunc
}

// WriteHeader sends the header.
func (h *headOnly) WriteHeader(status int) {
	h.begun = true
	h.ResponseWriter.WriteHeader(status)
}

// Write sends nothing.
func (h *headOnly) Write(p []byte) (int, error) {
	if !h.begun {
		h.WriteHeader(http.StatusOK)
	}
	return len(p), nil
}

// FlushError sends the header at once, and ends the request.
func (h *headOnly) FlushError() error {
	defer h.sent()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (h *headOnly) Unwrap() http.ResponseWriter { return h.ResponseWriter }
