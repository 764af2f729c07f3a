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

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// maxAnswer is the maximum size of a response in bytes that is read into
// memory.
const maxAnswer = 64 << 20

// client sends requests to one server.
type client struct {
	base          *url.URL
	http          *http.Client
	authorization string          // Authorization header; may be empty
	insecure      bool            // the server's certificate is not verified
	retries       []time.Duration // pauses before reopening a broken event stream or resending a request
}

// request is one API request.
type request struct {
	method string
	path   string // escaped path from the server's root, such as "/v1/packages/web"
	query  url.Values
	header http.Header
	body   io.Reader
	single bool  // the server would execute a repetition again, or reject it
	err    error // the request cannot be made
}

// root is the server of requests that the client addresses to its own.
const root = "/"

// ask returns a request that package api/client made. That package has the method,
// the path and the media type of each operation. The body is added later, so that
// it can be sent again.
func ask(r *http.Request, err error) request {
	if err != nil {
		return request{header: http.Header{}, err: fmt.Errorf("cannot create the request: %w", err)}
	}
	return request{method: r.Method, path: r.URL.EscapedPath(), query: r.URL.Query(), header: r.Header}
}

// respondAsync asks for the response before the operation has ended.
func (r request) respondAsync() { r.header.Set("Prefer", "respond-async") }

// problem is an error response of the server.
type problem wire.Problem

func (p *problem) Error() string {
	switch {
	case p.Detail != "":
		return p.Detail
	case p.Title != "":
		return p.Title
	}
	return "the server responded: " + http.StatusText(p.Status)
}

// open sends a request and returns the response. The caller must close its
// body. The error is a *problem if the server responded with one, and an
// exitError if the server cannot be reached or the context ended.
func (c *client) open(ctx context.Context, r request) (*http.Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	body := r.body
	if _, closes := body.(io.Closer); closes { // it may be resent
		body = struct{ io.Reader }{body}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("cannot create the request: %w", err)
	}
	maps.Copy(req.Header, r.header)
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

// lost distinguishes an interrupted request from an unreachable server.
func (c *client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, errors.New("interrupted")}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return noResponseError{&exitError{exitNoServer, fmt.Errorf("cannot reach the server at %s: %w", c.base.Redacted(), err)}}
}

// noResponseError is the error of a request without a response, or with an
// incomplete one.
type noResponseError struct{ err *exitError }

func (e noResponseError) Error() string { return e.err.Error() }
func (e noResponseError) Unwrap() error { return e.err }

// refusal reads the problem document of a response. A response without one does
// not come from the service.
func (c *client) refusal(res *http.Response) error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	p := &problem{}
	if media == "application/problem+json" {
		if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(p); err == nil {
			p.Status = res.StatusCode
			return p
		}
	}
	return &exitError{exitNoServer, fmt.Errorf("the response from %s is not from a k8splugin server: %s", c.base.Redacted(), res.Status)}
}

// call sends a request and returns the whole response. If the response is lost,
// it resends the request with the same idempotency key, so the server executes
// it once.
func (c *client) call(ctx context.Context, r request) (answer, error) {
	if !r.repeatable() {
		return c.once(ctx, r)
	}
	r.header = r.header.Clone()
	r.header.Set("Idempotency-Key", rand.Text())
	var arrived atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { arrived.Store(true) }})
	for failed := 0; ; failed++ {
		a, err := c.once(ctx, r)
		_, lost := errors.AsType[noResponseError](err)
		if !lost || !arrived.Load() || failed >= len(c.retries) || !r.rewind() || !pause(ctx, c.retries[failed]) {
			return a, err
		}
	}
}

// repeatable reports whether the server executes a request once even if it is
// sent several times.
func (r request) repeatable() bool {
	switch r.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return !r.single && !strings.HasPrefix(r.path, deadLetters().list.path+"/") // a repetition would fail: a resent letter is not a dead letter
	case http.MethodDelete:
		return strings.HasPrefix(r.path, instances().list.path+"/")
	}
	return false
}

// rewind rewinds the body to send it again, and reports whether it could.
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

// once sends a request without retries.
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

// send sends a request with a document.
func (c *client) send(ctx context.Context, r request, document any) (answer, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return answer{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	r.body = bytes.NewReader(body)
	return c.call(ctx, r)
}

// list reads all pages of a collection. With a limit in the query it reads one
// page.
func (c *client) list(ctx context.Context, from catalogue, query url.Values) (page, error) {
	all, r := page{key: from.key}, from.list
	if query == nil {
		query = url.Values{}
	}
	for {
		r.query = query
		a, err := c.call(ctx, r)
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
		query.Set(all.marker(), next)
	}
}

// answer is a response of the server as it was sent.
type answer struct {
	header http.Header
	body   []byte
}

// decode reads the fields that v has.
func (a answer) decode(v any) error {
	if err := unmarshal(a.body, v); err != nil {
		return &exitError{exitNoServer, fmt.Errorf("cannot read the server's response: %w", err)}
	}
	return nil
}

// unmarshal decodes a document. It keeps the text of numbers in values of any
// type.
func unmarshal(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text follows the JSON document")
	}
	return nil
}

// jsonOf returns a value of a document as the server sent it.
func jsonOf(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was decoded can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// page is a collection that was read in one or more pages.
type page struct {
	key   string // of the items; empty: a page is a list of them, as in SOL003
	first []byte // first page as it was sent
	parts int
	items []json.RawMessage
	next  string // marker of the next page, if it was not read

	changed bool // the items are not as in the first page
}

// marker returns the query parameter that selects a page.
func (p *page) marker() string {
	if p.key == "" {
		return "nextpage_opaque_marker"
	}
	return "marker"
}

// addList adds a page that is a list of items.
func (p *page) addList(a answer) (next string, err error) {
	var items []json.RawMessage
	if err := a.decode(&items); err != nil {
		return "", err
	}
	if p.parts == 0 {
		p.first = a.body
	}
	p.parts++
	p.items = append(p.items, items...)
	link, _, _ := strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">") // there is one, to the next page
	at, err := url.Parse(link)
	if err != nil {
		return "", &exitError{exitNoServer, errors.New("cannot read the server's response: its header Link has no URL")}
	}
	return at.Query().Get(p.marker()), nil
}

func (p *page) add(a answer) (next string, err error) {
	if p.key == "" {
		return p.addList(a)
	}
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

// pageOf returns a collection that the command line has made itself.
func pageOf[T any](key string, items []T) page {
	p := page{key: key, items: make([]json.RawMessage, len(items)), changed: true}
	for i, item := range items {
		p.items[i] = jsonOf(item)
	}
	return p
}

// join adds an object that was read separately.
func (p *page) join(a answer) {
	p.first = a.body
	p.items = append(p.items, a.body)
	p.parts++
}

// answer returns the collection as one response.
func (p *page) answer() (answer, error) {
	if p.parts == 1 && !p.changed {
		return answer{body: p.first}, nil
	}
	all := map[string]any{p.key: p.items}
	if p.next != "" {
		all["next"] = p.next
	}
	var document any = all
	if p.key == "" {
		document = p.items
	}
	body, err := json.Marshal(document)
	if err != nil {
		return answer{}, fmt.Errorf("cannot join the responses: %w", err)
	}
	return answer{body: body}, nil
}

// decodeAll decodes the items of a collection.
func decodeAll[T any](p page) ([]T, error) {
	out := make([]T, len(p.items))
	for i, raw := range p.items {
		if err := (answer{body: raw}).decode(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
