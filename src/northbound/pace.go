package northbound

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Pace limits how slow a client may be. It replaces timeouts for whole
// requests, which would end long requests that make progress.
type Pace struct {
	Grace time.Duration // total delay that a body may have; default 15 s
	Rate  int64         // minimum bytes per second of a body; default 1 KiB
	Write time.Duration // time in which each part of a response, of at most 64 KiB, must be sent; default 30 s
}

func (p *Pace) complete() {
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

// part is the size of a write under one deadline.
const part = 64 << 10

// paced enforces Pace on both directions of a request. A deadline is set only
// while the server waits for the client: HTTP/2 ends a stream when its deadline
// passes, whatever the stream waits for. A connection that does not support
// deadlines, as in tests, is used without.
type paced struct {
	http.ResponseWriter

	pace    Pace
	now     func() time.Time
	control *http.ResponseController
	body    *pacedBody
}

// newPaced returns the response writer of a request, and replaces the request's
// body with one that enforces pace.
func newPaced(pace Pace, w http.ResponseWriter, r *http.Request, now func() time.Time) *paced {
	p := &paced{ResponseWriter: w, pace: pace, now: now, control: http.NewResponseController(w)}
	p.body = &pacedBody{ReadCloser: r.Body, paced: p, ended: r.Body == nil || r.Body == http.NoBody}
	if !p.body.ended {
		r.Body = p.body
	}
	_ = p.control.SetWriteDeadline(time.Time{}) // clear that of the previous request on the connection
	return p
}

// Write writes in parts, each with its own deadline.
func (p *paced) Write(b []byte) (int, error) {
	written := 0
	for {
		n, err := p.writePart(b[written:min(written+part, len(b))])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

func (p *paced) writePart(b []byte) (int, error) {
	p.await()
	defer p.relax()
	return p.ResponseWriter.Write(b)
}

// FlushError sends the buffered data under a deadline.
func (p *paced) FlushError() error {
	p.await()
	defer p.relax()
	return p.control.Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// await sets the deadlines for a write. The server may first read the rest of
// the request's body, so that time is added.
func (p *paced) await() {
	taken := p.now().Add(p.pace.Write)
	if !p.body.ended {
		_ = p.control.SetReadDeadline(p.now().Add(p.pace.Grace))
		taken = taken.Add(p.pace.Grace)
	}
	_ = p.control.SetWriteDeadline(taken)
}

func (p *paced) relax() {
	_ = p.control.SetWriteDeadline(time.Time{})
	if !p.body.ended {
		_ = p.control.SetReadDeadline(time.Time{})
	}
}

// leave sets the deadlines for the work of the server after the handler: it
// sends the rest of the response and reads the rest of the body. The next
// request on the connection resets them.
func (p *paced) leave() { p.await() }

// pacedBody is a body with a minimum rate. Only time spent in Read counts.
type pacedBody struct {
	io.ReadCloser

	paced  *paced
	read   int64
	waited time.Duration
	ended  bool // read to the end
}

// Read fails with os.ErrDeadlineExceeded if the client is too slow.
func (b *pacedBody) Read(p []byte) (int, error) {
	pace, start := b.paced.pace, b.paced.now()
	earned := pace.Grace + time.Duration(float64(b.read)/float64(pace.Rate)*float64(time.Second))
	_ = b.paced.control.SetReadDeadline(start.Add(earned - b.waited))
	n, err := b.ReadCloser.Read(p)
	_ = b.paced.control.SetReadDeadline(time.Time{})
	b.read += int64(n)
	b.waited += b.paced.now().Sub(start)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}
