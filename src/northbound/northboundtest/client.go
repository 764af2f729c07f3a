// Package northboundtest is the test kit of the HTTP APIs: a client that
// validates every response against swagger.yaml, and a player of the
// transcripts under api, which are both documentation and tests.
//
// Guarantees: a response that the contract does not describe fails the test,
// whatever else the test checks. api/README.md describes the format of
// transcripts.
//
// The package does not check requests, since tests send invalid ones on
// purpose. It does not look into archives and event streams.
package northboundtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Client returns a client that fails the test on every response that the
// OpenAPI document does not describe: an unknown status or media type, or a
// body that does not match its schema. For an unknown path or method, the
// response must be a problem; below ONAP's paths it must be that of ONAP's
// router, and below Tacker's an error in Tacker's form.
func Client(t testing.TB, swagger []byte) *http.Client {
	t.Helper()
	doc, err := readDocument(string(swagger))
	if err != nil {
		t.Fatal(err)
	}
	// The service sends no redirects: check one like any other response.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: &checked{t, doc}, CheckRedirect: stay}
}

// readDocument parses each text once: that takes longer than most tests.
var readDocument = memoize(newDocument)

func memoize(parse func(text string) (*document, error)) func(text string) (*document, error) {
	var known sync.Map // func() (*document, error), by text
	return func(text string) (*document, error) {
		once, _ := known.LoadOrStore(text, sync.OnceValues(func() (*document, error) { return parse(text) }))
		return once.(func() (*document, error))()
	}
}

// document is a parsed OpenAPI document. It is read only.
type document struct {
	doc    *openapi3.T
	router routers.Router
}

func newDocument(swagger string) (*document, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(swagger))
	if err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI document: %w", err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot use the OpenAPI document: %w", err)
	}
	return &document{doc, router}, nil
}

// checked is a transport that validates responses.
type checked struct {
	t testing.TB
	*document
}

// RoundTrip sends the request and validates the response.
func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := c.check(r, res); err != nil {
		c.t.Errorf("%s %s: the answer %s is not what swagger.yaml says: %v", r.Method, r.URL.Path, res.Status, err)
	}
	return res, nil
}

// find returns the route of a request. If the extension x-many-segments allows it, the
// last variable of the path is all segments that are left.
func (c *checked) find(r *http.Request) (*routers.Route, map[string]string, error) {
	route, params, err := c.router.FindRoute(r)
	path := r.URL.EscapedPath()
	for at := strings.LastIndex(path, "/"); err != nil && at > 0; at = strings.LastIndex(path[:at], "/") {
		path = path[:at] + "%2F" + path[at+1:]
		joined := r.Clone(r.Context())
		if joined.URL.Path, err = url.PathUnescape(path); err != nil {
			break
		}
		joined.URL.RawPath = path
		if route, params, err = c.router.FindRoute(joined); err == nil && route.Operation.Extensions["x-many-segments"] != true {
			return c.router.FindRoute(r)
		}
	}
	return route, params, err
}

func (c *checked) check(r *http.Request, res *http.Response) error {
	head := r.Method == http.MethodHead
	if head { // described by GET, except for the body
		r = r.Clone(r.Context())
		r.Method = http.MethodGet
	}
	tacker := strings.HasPrefix(r.URL.Path, "/v1.0/")
	if path, found := strings.CutSuffix(r.URL.Path, ".json"); found && tacker { // described without it
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = path, ""
	}
	route, params, err := c.find(r)
	switch {
	case err == nil:
	case head:
		return nil
	case tacker:
		return checkFault(res)
	case c.lenient(r.URL.Path):
		return c.checkStray(res)
	default:
		return c.checkProblem(res)
	}
	described := route.Operation.Responses.Status(res.StatusCode)
	if described == nil {
		described = route.Operation.Responses.Default()
	}
	content := described.Value.Content
	media := mediaOf(res)
	if len(content) > 0 && content.Get(media) == nil {
		return fmt.Errorf("its media type is %q", media)
	}
	if head || len(content) > 0 && !strings.HasSuffix(media, "json") {
		return nil
	}
	body, err := buffer(res)
	if err != nil {
		return err
	}
	if len(content) == 0 && len(body) > 0 {
		return fmt.Errorf("it has a body: %s", body)
	}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 res.StatusCode,
		Header:                 res.Header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
}

// lenient reports whether a path is below the paths of an operation that the
// document marks x-lenient, which are ONAP's.
func (c *checked) lenient(path string) bool {
	given := strings.Split(path, "/")
	for template, item := range c.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if yes, _ := op.Extensions["x-lenient"].(bool); yes && below(given, strings.Split(template, "/")) {
				return true
			}
		}
	}
	return false
}

// below reports whether a path matches a template up to the template's first
// segment that is neither "v1" nor a variable.
func below(path, template []string) bool {
	for i, segment := range template {
		variable := strings.HasPrefix(segment, "{")
		if i >= len(path) || !variable && path[i] != segment {
			return false
		}
		if !variable && segment != "" && segment != "v1" {
			return true
		}
	}
	return false
}

// checkStray checks the response for a path or method that ONAP's API does not
// have. A request rejected before it reaches the API is answered with a
// problem.
func (c *checked) checkStray(res *http.Response) error {
	if res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusMethodNotAllowed {
		return c.checkProblem(res)
	}
	body, err := buffer(res)
	if err != nil {
		return err
	}
	want, media := "", ""
	if res.StatusCode == http.StatusNotFound {
		want, media = "404 page not found\n", "text/plain"
	}
	if string(body) != want || mediaOf(res) != media {
		return fmt.Errorf("its media type is %q, and its body %q", mediaOf(res), body)
	}
	return nil
}

// checkFault checks the response for a path or method that Tacker's API does not have.
func checkFault(res *http.Response) error {
	body, err := buffer(res)
	if err != nil {
		return err
	}
	if mediaOf(res) != "application/json" || !strings.HasPrefix(string(body), `{"TackerError":{"type":"`) {
		return fmt.Errorf("its media type is %q, and its body %q", mediaOf(res), body)
	}
	return nil
}

// checkProblem checks the response for a path or method that the document does
// not describe.
func (c *checked) checkProblem(res *http.Response) error {
	if media := mediaOf(res); media != "application/problem+json" {
		return fmt.Errorf("its media type is %q", media)
	}
	body, err := buffer(res)
	if err != nil {
		return err
	}
	problem := c.doc.Components.Schemas["Problem"]
	if problem == nil {
		return errors.New("the document has no schema Problem")
	}
	value, err := parse(body)
	if err != nil {
		return err
	}
	return problem.Value.VisitJSON(value)
}

func mediaOf(res *http.Response) string {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return media
}

// buffer reads the body and replaces it, so that it can be read again.
func buffer(res *http.Response) ([]byte, error) {
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot read its body: %w", err)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
