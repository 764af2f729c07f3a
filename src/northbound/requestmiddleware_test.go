package northbound_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// routes is an API of a few handlers, by "METHOD path".
type routes map[string]northbound.Handler

func (a routes) Routes(r *mux.Router) {
	for route, h := range a {
		method, path, _ := strings.Cut(route, " ")
		r.Handle(path, h).Methods(method)
	}
}

// records is a log that keeps its records.
type records struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *records) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// with returns the records that have the message.
func (l *records) with(t *testing.T, msg string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for line := range strings.Lines(l.buf.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record["msg"] == msg {
			out = append(out, record)
		}
	}
	return out
}

func handler(t *testing.T, cfg northbound.Config) http.Handler {
	t.Helper()
	cfg.Swagger = k8splugin.Swagger
	h, err := northbound.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve answers one request without a network.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func problemOf(t *testing.T, w *httptest.ResponseRecorder) wire.Problem {
	t.Helper()
	if media := w.Header().Get("Content-Type"); media != "application/problem+json" {
		t.Fatalf("the answer %d is %q: %s", w.Code, media, w.Body)
	}
	var p wire.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != w.Code || p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-Id") {
		t.Errorf("the problem does not agree with its answer %d: %+v", w.Code, p)
	}
	return p
}

func TestUnroutable(t *testing.T) {
	t.Parallel()
	h := handler(t, northbound.Config{APIs: []northbound.API{routes{
		"GET /v1/packages": nothing, "POST /v1/packages": nothing, "PATCH /v1/cloud_regions/{cloud_region_id}": nothing,
	}}})
	cross := httptest.NewRequest(http.MethodPost, "/v1/packages", nil)
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	typed := httptest.NewRequest(http.MethodPost, "/v1/packages", strings.NewReader("x"))
	typed.Header.Set("Content-Type", "text/plain")
	cases := map[string]struct {
		reason  string
		request *http.Request
		status  int
		kind    nf.Kind
		detail  string
		allow   string
	}{
		"UnknownPath":   {"there is no such path", get("/v2/packages"), 404, nf.NotFound, "no resource has this path", ""},
		"Root":          {"the root only leads to the documentation", httptest.NewRequest(http.MethodPost, "/", nil), 405, nf.Invalid, "only GET is allowed for this path", "GET"},
		"UncleanPath":   {"a path that is not clean is another one", get("/v1//packages"), 404, nf.NotFound, "no resource has this path", ""},
		"ParentPath":    {"and so is one that climbs", get("/v1/x/../packages"), 404, nf.NotFound, "no resource has this path", ""},
		"UnknownMethod": {"the methods are named", httptest.NewRequest(http.MethodPut, "/v1/packages", nil), 405, nf.Invalid, "only GET, POST is allowed for this path", "GET, POST"},
		"OddMethod":     {"whatever the method", httptest.NewRequest("BREW", "/healthz", nil), 405, nf.Invalid, "only GET is allowed for this path", "GET"},
		"OtherSite":     {"a page of another site cannot act through a browser", cross, 403, nf.Invalid, "the request is from a page of another origin", ""},
		"MediaType":     {"the types that are taken are named", typed, 415, nf.Invalid, `the body is "text/plain", not application/gzip or application/json or application/octet-stream or application/x-gzip or application/x-tar+gzip or application/zip or multipart/form-data`, ""},
		"BadPath":       {"a parameter of the path is held against the contract", httptest.NewRequest(http.MethodPatch, "/v1/cloud_regions/a%20b", nil), 400, nf.Invalid, "cannot read the request: cloud_region_id: must be 1 to 128 letters, digits, '.', '_' or '-', with a letter or digit at both ends", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := serve(h, c.request)
			p := problemOf(t, w)
			if p.Status != c.status || p.Kind != c.kind || p.Detail != c.detail || p.Instance != c.request.URL.Path || w.Header().Get("Allow") != c.allow {
				t.Errorf("%s: the answer is %+v, Allow %q", c.reason, p, w.Header().Get("Allow"))
			}
		})
	}
}

func nothing(http.ResponseWriter, *http.Request) error { return nil }

func TestRequestID(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) error {
		return northbound.Answer(w, http.StatusOK, northbound.RequestID(r.Context()))
	}
	log := &records{}
	h := handler(t, northbound.Config{APIs: []northbound.API{routes{"GET /echo": echo}}, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	for name, c := range map[string]struct {
		reason string
		given  string
		kept   bool
	}{
		"None":    {"a request gets an id", "", false},
		"Sane":    {"a sane id of the client's is kept", "trace/7:a=b", true},
		"Newline": {"an id must not upset a log", "a\nb", false},
		"Long":    {"nor fill it", strings.Repeat("a", 129), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := get("/echo")
			r.Header.Set("X-Request-Id", c.given)
			w := serve(h, r)
			id := w.Header().Get("X-Request-Id")
			if (id == c.given) != c.kept || id == "" {
				t.Errorf("%s: %q became %q", c.reason, c.given, id)
			}
			if want := fmt.Sprintf("%q\n", id); w.Body.String() != want {
				t.Errorf("%s: the handler saw %s, want %s", c.reason, w.Body, want)
			}
			lines := log.with(t, "request")
			if last := lines[len(lines)-1]; last["request_id"] != id {
				t.Errorf("%s: the log says %v, want %s", c.reason, last["request_id"], id)
			}
		})
	}
	if id := northbound.RequestID(t.Context()); id != "" {
		t.Errorf("a context of no request has the id %q", id)
	}
}

func TestAccessLogAndMetrics(t *testing.T) {
	t.Parallel()
	log, registry := &records{}, prometheus.NewRegistry()
	h := handler(t, northbound.Config{
		APIs: []northbound.API{routes{"POST /v1/packages": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(201)
			_, err := w.Write([]byte("12345"))
			return err
		}}},
		Registry: registry, Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	serve(h, httptest.NewRequest(http.MethodPost, "/v1/packages", strings.NewReader("s3cret")))
	serve(h, httptest.NewRequest("BREW", "/coffee", nil))
	serve(h, get("/healthz"))
	lines := log.with(t, "request")
	if len(lines) != 3 {
		t.Fatalf("three requests have %d lines: %v", len(lines), lines)
	}
	if l := lines[0]; l["method"] != "POST" || l["route"] != "/v1/packages" || l["status"] != 201.0 || l["bytes"] != 5.0 || l["level"] != "INFO" || l["seconds"] == nil {
		t.Errorf("the line of the first request is %v", l)
	}
	if l := lines[1]; l["route"] != "" || l["path"] != "/coffee" || l["status"] != 404.0 {
		t.Errorf("the line of a request that nothing answers is %v", l)
	}
	if l := lines[2]; l["level"] != "DEBUG" {
		t.Errorf("machines that ask every few seconds fill the log: %v", l)
	}
	if strings.Contains(log.buf.String(), "s3cret") {
		t.Error("the log holds a body")
	}
	metrics := serve(h, get("/metrics")).Body.String()
	for _, want := range []string{
		`k8splugin_http_requests_total{method="POST",route="/v1/packages",status="201"} 1`,
		`k8splugin_http_requests_total{method="other",route="none",status="404"} 1`,
		`k8splugin_http_request_duration_seconds_count{method="POST",route="/v1/packages"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s:\n%s", want, metrics)
		}
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	log := &records{}
	server := httptest.NewServer(handler(t, northbound.Config{
		APIs: []northbound.API{routes{
			"GET /early": func(http.ResponseWriter, *http.Request) error { panic("s3cret") },
			"POST /late": func(w http.ResponseWriter, _ *http.Request) error {
				_, _ = w.Write([]byte("half"))
				panic("too late")
			},
			"POST /abort": func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
		}},
		Logger: slog.New(slog.NewJSONHandler(log, nil)),
	}))
	defer server.Close()
	res, err := http.Get(server.URL + "/early")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 500 || strings.Contains(string(body), "s3cret") {
		t.Errorf("a panic is answered with %s %s, %v", res.Status, body, err)
	}
	for _, path := range []string{"/late", "/abort"} {
		if res, err := http.Post(server.URL+path, "", nil); err == nil { // a GET would be sent again
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil {
				t.Errorf("%s: half an answer looks like a whole one", path)
			}
		}
	}
	server.Close() // waits for the handlers, whose last act is the log
	if panics := log.with(t, "handler panicked"); len(panics) != 2 || !strings.Contains(fmt.Sprint(panics[0]["stack"]), "requestmiddleware_test.go") {
		t.Errorf("two panics, one of them deliberate, left %d records", len(panics))
	}
	if lines := log.with(t, "request"); len(lines) != 3 {
		t.Errorf("three requests have %d lines", len(lines))
	}
}

// TestStreaming checks that an answer can be flushed through requestMiddleware.
func TestStreaming(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	server := httptest.NewServer(handler(t, northbound.Config{APIs: []northbound.API{routes{
		"GET /stream": func(w http.ResponseWriter, r *http.Request) error {
			_, _ = w.Write([]byte("first\n"))
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			select { // until the client has it
			case <-seen:
			case <-r.Context().Done():
			}
			return nil
		},
	}}}))
	defer server.Close()
	res, err := http.Get(server.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("first\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first\n" {
		t.Errorf("the first part is %q, %v", first, err)
	}
	close(seen)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for kind, want := range map[nf.Kind]int{
		nf.Internal: 500, nf.Invalid: 400, nf.NotFound: 404, nf.Exists: 409, nf.Conflict: 409, nf.Busy: 409, nf.Unreachable: 502,
		nf.Unsupported: 422, nf.TooLarge: 413, nf.Failed: 424, nf.Timeout: 504, nf.Cancelled: 409,
	} {
		err := fmt.Errorf("while asking: %w", nf.E(kind, "do", "it", errors.New("why")))
		if got := northbound.Status(err); got != want {
			t.Errorf("%s is %d, want %d", kind, got, want)
		}
	}
	if got := northbound.Status(errors.New("odd")); got != 500 {
		t.Errorf("an error without a kind is %d, want 500", got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, swagger := range map[string]string{
		"Nothing": "", "NotYAML": "\t", "NotOpenAPI": "openapi: 3.0.3\npaths: {}\n", "BadReference": "openapi: 3.0.3\ninfo: {title: x, version: x}\npaths: {/x: {$ref: '#/nowhere'}}\n",
		"BadAlso": "openapi: 3.0.3\ninfo: {title: x, version: x}\npaths: {}\ncomponents: {schemas: {X: {type: string, x-also: 1}}}\n",
	} {
		if _, err := northbound.New(northbound.Config{Swagger: []byte(swagger)}); err == nil {
			t.Errorf("%s: a handler was made from an unusable contract", name)
		}
	}
	registry := prometheus.NewRegistry()
	handler(t, northbound.Config{Registry: registry})
	if _, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, Registry: registry}); err == nil {
		t.Error("two shells share a registry, and nobody said that their metrics are mixed up")
	}
}
