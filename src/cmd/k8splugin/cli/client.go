package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// maxAnswer bounds what is read of one answer into memory.
const maxAnswer = 64 << 20

// client speaks to one server.
type client struct {
	base          *url.URL
	http          *http.Client
	authorization string          // the header that says who asks; may be empty
	retries       []time.Duration // pauses before a broken event stream is opened again, or a request sent again
}

// request is one call of the API.
type request struct {
	method string
	path   string // escaped, from the root of the API: "/v1/packages/web"
	query  url.Values
	header map[string]string
	body   io.Reader
}

// problem is a refusal by the server, as RFC 9457 writes it.
type problem struct {
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail"`
	Kind      nf.Kind       `json:"kind"`
	Reason    string        `json:"reason"`
	Confirm   string        `json:"confirm"`
	Operation string        `json:"operation"`
	RequestID string        `json:"request_id"`
	Errors    nf.Violations `json:"errors"`
}

func (p *problem) Error() string {
	switch {
	case p.Detail != "":
		return p.Detail
	case p.Title != "":
		return p.Title
	}
	return "the server answered " + http.StatusText(p.Status)
}

// open sends a request and returns the answer, whose body the caller closes.
// Its error is a *problem when the server refused, an exitError when it cannot
// be talked to, and the context's when that ended.
func (c *client) open(ctx context.Context, r request) (*http.Response, error) {
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	body := r.body
	if _, closes := body.(io.Closer); closes { // it may be sent again
		body = struct{ io.Reader }{body}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if c.authorization != "" {
		req.Header.Set("Authorization", c.authorization)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		return nil, c.refusal(res)
	}
	return res, nil
}

// lost tells an interrupted call from a server that is not there.
func (c *client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, errors.New("interrupted")}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return unanswered{&exitError{exitNoServer, fmt.Errorf("cannot reach the server at %s: %w", c.base.Redacted(), err)}}
}

// unanswered is the error of a request that got no answer, or half of one.
type unanswered struct{ *exitError }

func (e unanswered) Unwrap() error { return e.exitError }

// refusal reads the problem document of an answer; an answer without one was
// not written by the service.
func (c *client) refusal(res *http.Response) error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	p := &problem{}
	if media == "application/problem+json" {
		if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(p); err == nil {
			p.Status = res.StatusCode
			return p
		}
	}
	return &exitError{exitNoServer, fmt.Errorf("what answers at %s is not this server: %s", c.base.Redacted(), res.Status)}
}

// call sends a request and returns the whole answer. When that is lost, and not
// the request, it is sent again under the same key: the server does it once.
func (c *client) call(ctx context.Context, r request) (answer, error) {
	if !r.repeatable() {
		return c.once(ctx, r)
	}
	r.header = maps.Clone(r.header)
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header["Idempotency-Key"] = rand.Text()
	var arrived atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { arrived.Store(true) }})
	for failed := 0; ; failed++ {
		a, err := c.once(ctx, r)
		_, lost := errors.AsType[unanswered](err)
		if !lost || !arrived.Load() || failed >= len(c.retries) || !r.rewind() || !pause(ctx, c.retries[failed]) {
			return a, err
		}
	}
}

// repeatable reports whether the server does a request once, however often it
// is sent.
func (r request) repeatable() bool {
	switch r.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return !strings.HasPrefix(r.path, letters().path+"/") // a letter dies once
	case http.MethodDelete:
		return strings.HasPrefix(r.path, at("vnf_instances")+"/")
	}
	return false
}

// rewind makes the body ready to be sent again, if that can be done.
func (r request) rewind() bool {
	if r.body == nil {
		return true
	}
	s, ok := r.body.(io.Seeker)
	if !ok {
		return false
	}
	_, err := s.Seek(0, io.SeekStart)
	return err == nil
}

// once sends a request once.
func (c *client) once(ctx context.Context, r request) (answer, error) {
	res, err := c.open(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return answer{}, c.lost(ctx, err)
	}
	return answer{header: res.Header, body: body}, nil
}

// get reads one thing.
func (c *client) get(ctx context.Context, path string, query url.Values) (answer, error) {
	return c.call(ctx, request{method: http.MethodGet, path: path, query: query})
}

// send sends a document as the given media type.
func (c *client) send(ctx context.Context, r request, media string, document any) (answer, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return answer{}, fmt.Errorf("cannot write the request: %w", err)
	}
	header := map[string]string{"Content-Type": media}
	maps.Copy(header, r.header)
	r.header, r.body = header, bytes.NewReader(body)
	return c.call(ctx, r)
}

// list reads all the pages of a collection whose items are under the key. With
// a limit among the query it reads one page.
func (c *client) list(ctx context.Context, path, key string, query url.Values) (page, error) {
	all := page{key: key}
	if query == nil {
		query = url.Values{}
	}
	for {
		a, err := c.get(ctx, path, query)
		if err != nil {
			return page{}, err
		}
		next, err := all.add(a)
		if err != nil {
			return page{}, err
		}
		if next == "" || query.Has("limit") {
			return all, nil
		}
		query.Set("marker", next)
	}
}

// answer is what the server said, kept as it was sent.
type answer struct {
	header http.Header
	body   []byte
}

// decode reads the fields that v has.
func (a answer) decode(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return &exitError{exitNoServer, fmt.Errorf("cannot read the server's answer: %w", err)}
	}
	return nil
}

// page is a collection that was read in one or more parts.
type page struct {
	key   string
	first []byte // the first part as it was sent
	parts int
	items []json.RawMessage
	next  string // the marker of the part that was not read
}

func (p *page) add(a answer) (next string, err error) {
	var fields map[string]json.RawMessage
	if err := a.decode(&fields); err != nil {
		return "", err
	}
	var items []json.RawMessage
	if err := (answer{body: fields[p.key]}).decode(&items); err != nil {
		return "", err
	}
	p.next = ""
	if raw, ok := fields["next"]; ok {
		if err := (answer{body: raw}).decode(&p.next); err != nil {
			return "", err
		}
	}
	if p.parts == 0 {
		p.first = a.body
	}
	p.parts++
	p.items = append(p.items, items...)
	return p.next, nil
}

// join adds one thing that was answered by itself.
func (p *page) join(a answer) {
	p.first = a.body
	p.items = append(p.items, a.body)
	p.parts++
}

// answer returns the collection as the server would have sent it in one part.
func (p *page) answer() (answer, error) {
	if p.parts == 1 {
		return answer{body: p.first}, nil
	}
	body, err := json.Marshal(map[string]any{p.key: p.items})
	if err != nil {
		return answer{}, fmt.Errorf("cannot join the answers: %w", err)
	}
	return answer{body: body}, nil
}

// decodeAll reads the items of a collection.
func decodeAll[T any](p page) ([]T, error) {
	out := make([]T, len(p.items))
	for i, raw := range p.items {
		if err := (answer{body: raw}).decode(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// at joins the segments of a path, each escaped.
func at(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}
