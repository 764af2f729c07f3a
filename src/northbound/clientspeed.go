package northbound

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// SlowClientLimits limits how slow a client may be. It replaces timeouts for
// whole requests, which would end long requests that make progress.
type SlowClientLimits struct {
	Grace time.Duration // total delay that a body may have; default 15 s
	Rate  int64         // minimum bytes per second of a body; default 1 KiB
	Write time.Duration // time in which each part of a response, of at most 64 KiB, must be sent; default 30 s
}

func (p *SlowClientLimits) complete() {
	if p.Grace <= 0 {
		p.Grace = 15 * time.Second
	}
	if p.Rate <= 0 {
		p.Rate = 1 << 10
	}
	if p.Write <= 0 {
		p.Write = 30 * time.Second
	}
}

// maxWrite is the size of a write under one deadline.
const maxWrite = 64 << 10

// deadlineWriter enforces SlowClientLimits on both directions of a request. A
// deadline is set only while the server waits for the client: HTTP/2 ends a
// stream when its deadline passes, whatever the stream waits for. A connection
// that does not support deadlines, as in tests, is used without.
type deadlineWriter struct {
	http.ResponseWriter

	limits  SlowClientLimits
	now     func() time.Time
	control *http.ResponseController
	body    *deadlineBody
}

// newDeadlineWriter returns the response writer of a request, and replaces the
// request's body with one that enforces limits.
func newDeadlineWriter(limits SlowClientLimits, w http.ResponseWriter, r *http.Request, now func() time.Time) *deadlineWriter {
	p := &deadlineWriter{ResponseWriter: w, limits: limits, now: now, control: http.NewResponseController(w)}
	p.body = &deadlineBody{ReadCloser: r.Body, writer: p, ended: r.Body == nil || r.Body == http.NoBody}
	if !p.body.ended {
		r.Body = p.body
	}
	_ = p.control.SetWriteDeadline(time.Time{}) // clear that of the previous request on the connection
	return p
}

// Write writes in parts, each with its own deadline.
func (p *deadlineWriter) Write(b []byte) (int, error) {
	written := 0
	for {
		n, err := p.writeOnce(b[written:min(written+maxWrite, len(b))])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

func (p *deadlineWriter) writeOnce(b []byte) (int, error) {
	p.setDeadlines()
	defer p.clearDeadlines()
	return p.ResponseWriter.Write(b)
}

// FlushError sends the buffered data under a deadline.
func (p *deadlineWriter) FlushError() error {
	p.setDeadlines()
	defer p.clearDeadlines()
	return p.control.Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// setDeadlines sets the deadlines for a write. The server may first read the
// rest of the request's body, so that time is added.
func (p *deadlineWriter) setDeadlines() {
	taken := p.now().Add(p.limits.Write)
	if !p.body.ended {
		_ = p.control.SetReadDeadline(p.now().Add(p.limits.Grace))
		taken = taken.Add(p.limits.Grace)
	}
	_ = p.control.SetWriteDeadline(taken)
}

func (p *deadlineWriter) clearDeadlines() {
	_ = p.control.SetWriteDeadline(time.Time{})
	if !p.body.ended {
		_ = p.control.SetReadDeadline(time.Time{})
	}
}

// finish sets the deadlines for the work of the server after the handler: it
// sends the rest of the response and reads the rest of the body. The next
// request on the connection resets them.
func (p *deadlineWriter) finish() { p.setDeadlines() }

// deadlineBody is a body with a minimum rate. Only time spent in Read counts.
type deadlineBody struct {
	io.ReadCloser

	writer *deadlineWriter
	read   int64
	waited time.Duration
	ended  bool // read to the end
}

// Read fails with os.ErrDeadlineExceeded if the client is too slow.
func (b *deadlineBody) Read(p []byte) (int, error) {
	limits, start := b.writer.limits, b.writer.now()
	earned := limits.Grace + time.Duration(float64(b.read)/float64(limits.Rate)*float64(time.Second))
	_ = b.writer.control.SetReadDeadline(start.Add(earned - b.waited))
	n, err := b.ReadCloser.Read(p)
	_ = b.writer.control.SetReadDeadline(time.Time{})
	b.read += int64(n)
	b.waited += b.writer.now().Sub(start)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}
