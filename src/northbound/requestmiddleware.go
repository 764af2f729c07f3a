package northbound

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// requestMiddleware is the outermost layer. It gives every request an id, one
// line in the access log, its metrics, and a response, even if a handler panics.
type requestMiddleware struct {
	next   http.Handler
	log    *slog.Logger
	meters *meters
	limits SlowClientLimits
	now    func() time.Time
}

// ServeHTTP answers the request.
func (m *requestMiddleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{id: requestID(r), log: m.log}
	r = withCall(r, c)
	writer := newDeadlineWriter(m.limits, w, r, m.now)
	rec := &recorder{ResponseWriter: writer}
	c.answer = rec
	rec.Header().Set(requestIDHeader, c.id)
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	start := m.now()
	m.meters.inFlight.Inc()
	defer func() {
		m.meters.inFlight.Dec()
		took := m.now().Sub(start)
		m.meters.observe(c.route, r.Method, rec.code(), took)
		m.access(r, rec, took)
	}()
	defer writer.finish()
	defer m.survive(rec, r)
	m.next.ServeHTTP(rec, r)
}

// survive converts a panic of a handler to a response. If the response has
// started, it aborts the connection, so that the client does not take a partial
// response for a complete one.
func (m *requestMiddleware) survive(rec *recorder, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	m.log.ErrorContext(r.Context(), "handler panicked", "request_id", callOf(r.Context()).id,
		"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if rec.status != 0 {
		panic(http.ErrAbortHandler)
	}
	write(rec, problemOf(r, errors.New("handler panicked")))
}

func (m *requestMiddleware) access(r *http.Request, rec *recorder, took time.Duration) {
	c := callOf(r.Context())
	level := slog.LevelInfo
	switch c.route {
	case "/healthz", "/readyz", "/metrics":
		level = slog.LevelDebug // polled every few seconds
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("route", c.route), slog.String("path", r.URL.Path),
		slog.Int("status", rec.code()), slog.Int64("bytes", rec.bytes), slog.Float64("seconds", took.Seconds()),
		slog.String("request_id", c.id),
	}
	if c.identity != "" {
		attrs = append(attrs, slog.String("identity", c.identity))
	}
	m.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// recorder records the status and the size of the response.
type recorder struct {
	http.ResponseWriter
	status int // 0: nothing yet
	bytes  int64
}

// WriteHeader records the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// code returns the status that the client sees: 200 if the handler wrote
// nothing.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
