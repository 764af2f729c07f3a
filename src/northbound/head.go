package northbound

import (
	"context"
	"net/http"
)

// heads answers HEAD requests like GET, without the body.
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

// headOnly discards the body of a response. A flush ends the request: a handler
// that flushes would stream for as long as the client is connected.
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

// Write discards the body.
func (h *headOnly) Write(p []byte) (int, error) {
	if !h.begun {
		h.WriteHeader(http.StatusOK)
	}
	return len(p), nil
}

// FlushError sends the header and ends the request.
func (h *headOnly) FlushError() error {
	defer h.sent()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (h *headOnly) Unwrap() http.ResponseWriter { return h.ResponseWriter }
