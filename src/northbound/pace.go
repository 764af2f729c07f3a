package northbound

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Pace is how slow a client may be. It takes the place of timeouts for whole
// requests, which would end long ones that make progress.
type Pace struct {
	Grace time.Duration // for which a body may be late altogether; default 15 s
	Rate  int64         // bytes a second that a body comes with at least; default 1 KiB
	Write time.Duration // for which a part of an answer, of 64 KiB at most, may be on its way; default 30 s
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

// part is how much of an answer is written under one deadline.
const part = 64 << 10

// paced keeps the two sides of a request going. Deadlines stand only while
// somebody waits for the client: HTTP/2 ends a stream whose deadline passes,
// whatever it waits for. A connection that has none, as in tests, has none set.
type paced struct {
	http.ResponseWriter

	pace    Pace
	now     func() time.Time
	control *http.ResponseController
	body    *pacedBody
}

// newPaced returns the writer of a request, and puts a body of that pace into
// the request.
func newPaced(pace Pace, w http.ResponseWriter, r *http.Request, now func() time.Time) *paced {
	p := &paced{ResponseWriter: w, pace: pace, now: now, control: http.NewResponseController(w)}
	p.body = &pacedBody{ReadCloser: r.Body, paced: p, ended: r.Body == nil || r.Body == http.NoBody}
	if !p.body.ended {
		r.Body = p.body
	}
	_ = p.control.SetWriteDeadline(time.Time{}) // of the request before, on the same connection
	return p
}

// Write writes part by part.
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

// FlushError sends what has been written.
func (p *paced) FlushError() error {
	p.await()
	defer p.relax()
	return p.control.Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// await begins to wait for the client to take something. It may first have to
// get rid of the rest of its body, which the server does unasked.
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

// leave bounds what the server does after the handler: it sends the rest of the
// answer and takes the rest of the body. The next request begins anew.
func (p *paced) leave() { p.await() }

// pacedBody is a body that must come with some speed. Only the time in which
// somebody waits for it counts.
type pacedBody struct {
	io.ReadCloser

	paced  *paced
	read   int64
	waited time.Duration
	ended  bool // all of it was read
}

// Read reads, and fails with os.ErrDeadlineExceeded when the client is too slow.
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
