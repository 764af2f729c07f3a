package northbound_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// door is an access that believes who says "Bearer <name>".
type door struct{}

func (door) Authenticate(r *http.Request) (nf.Identity, error) {
	switch _, name, _ := strings.Cut(r.Header.Get("Authorization"), " "); name {
	case "":
		return nf.Identity{}, nf.E(nf.Unauthenticated, "authenticate", "the request", errors.New("it offers no proof"))
	case "often":
		return nf.Identity{}, &nf.Error{Kind: nf.TooManyRequests, Op: "authenticate", Subject: "the request", RetryAfter: 1500 * time.Millisecond}
	case "later":
		return nf.Identity{}, &nf.Error{Kind: nf.Unreachable, Op: "authenticate", Subject: "the request", RetryAfter: 10 * time.Second}
	default:
		return nf.Identity{Kind: "token", Name: name}, nil
	}
}

func (door) Challenges() []string { return []string{"Bearer", "Basic"} }

// book is an audit that keeps its entries.
type book struct {
	mu      sync.Mutex
	entries []nf.AuditEntry
	fail    error
}

func (b *book) Record(ctx context.Context, e nf.AuditEntry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.entries = append(b.entries, e)
	return nil
}

func (b *book) take() []nf.AuditEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.entries
	b.entries = nil
	return out
}

// doing is an API that does what its paths say.
func doing(done *[]string) routes {
	note := func(_ http.ResponseWriter, r *http.Request) error {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return err
		}
		id, _ := nf.IdentityOf(r.Context())
		nf.TrailOf(r.Context()).Ask(nf.ChangeInstance, nf.Scope{Project: "p", Region: "east"}, "vnf-1")
		nf.TrailOf(r.Context()).Begin("op-1")
		*done = append(*done, r.Method+" by "+id.String())
		return nil
	}
	fails := func(err error) northbound.Handler {
		return func(http.ResponseWriter, *http.Request) error { return err }
	}
	return routes{
		"POST /do/{id}": note, "GET /do/{id}": note,
		"GET /forbidden": fails(nf.E(nf.Forbidden, "authorize", "you", nil)), "POST /forbidden": fails(nf.E(nf.Forbidden, "authorize", "you", nil)),
		"POST /busy": fails(&nf.Error{Kind: nf.Busy, Op: "do", Subject: "it", Operation: "op-2", RetryAfter: time.Second}),
		"GET /hidden": func(_ http.ResponseWriter, r *http.Request) error {
			nf.TrailOf(r.Context()).Ask(nf.ReadInstance, nf.Scope{Project: "b"})
			nf.TrailOf(r.Context()).Hide()
			return nf.E(nf.NotFound, "get", "it", nil)
		},
		"GET /absent": fails(nf.E(nf.NotFound, "get", "it", nil)),
		"POST /half": func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.ReadFull(r.Body, make([]byte, 3))
			return err
		},
		"POST /panic": func(http.ResponseWriter, *http.Request) error { panic("oh") },
	}
}

func ask(h http.Handler, method, path, who, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.7:1234"
	r.Header.Set("X-Request-Id", "r-1")
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	return serve(h, r)
}

func TestGate(t *testing.T) {
	t.Parallel()
	var done []string
	sum := sha256.Sum256([]byte("s3cret"))
	sent := "sha256:" + hex.EncodeToString(sum[:])
	who := nf.AuditEntry{Request: "r-1", Remote: "192.0.2.7"}
	entry := func(change func(*nf.AuditEntry)) nf.AuditEntry {
		e := who
		change(&e)
		return e
	}
	byAnn := func(phase nf.AuditPhase, method, route string, status int, outcome string, more ...func(*nf.AuditEntry)) nf.AuditEntry {
		return entry(func(e *nf.AuditEntry) {
			e.Kind, e.Identity = "token", "ann"
			e.Phase, e.Method, e.Route, e.Status, e.Outcome = phase, method, route, status, outcome
			for _, f := range more {
				f(e)
			}
		})
	}
	trail := func(e *nf.AuditEntry) {
		e.Permission, e.Project, e.Region, e.Subjects, e.Operation = nf.ChangeInstance, "p", "east", []string{"x", "vnf-1"}, "op-1"
	}
	cases := map[string]struct {
		reason             string
		method, path, name string
		status             int
		done               string
		entries            []nf.AuditEntry
		header             map[string]string
	}{
		"Change": {"a change has an entry before it and one after", "POST", "/do/x", "ann", 200, "POST by token:ann", []nf.AuditEntry{
			byAnn(nf.AuditIntent, "POST", "/do/{id}", 0, "", func(e *nf.AuditEntry) { e.Subjects = []string{"x"} }),
			byAnn(nf.AuditOutcome, "POST", "/do/{id}", 200, "accepted", trail, func(e *nf.AuditEntry) { e.Digest = sent }),
		}, nil},
		"Read": {"what is read is not recorded", "GET", "/do/x", "ann", 200, "GET by token:ann", nil, nil},
		"Anonymous": {"a caller without credentials must authenticate", "POST", "/do/x", "", 401, "", []nf.AuditEntry{entry(func(e *nf.AuditEntry) {
			e.Phase, e.Method, e.Route, e.Status, e.Outcome, e.Subjects = "refusal", "POST", "/do/{id}", 401, "unauthenticated", []string{"x"}
		})}, map[string]string{"WWW-Authenticate": "Bearer"}},
		"Reader": {"whatever he asks for", "GET", "/absent", "", 401, "", []nf.AuditEntry{entry(func(e *nf.AuditEntry) {
			e.Phase, e.Method, e.Route, e.Status, e.Outcome = "refusal", "GET", "/absent", 401, "unauthenticated"
		})}, map[string]string{"WWW-Authenticate": "Bearer"}},
		"NoPath": {"and learns of no path", "BREW", "/nothing/x", "", 401, "", []nf.AuditEntry{entry(func(e *nf.AuditEntry) {
			e.Phase, e.Method, e.Status, e.Outcome = "refusal", "other", 401, "unauthenticated"
		})}, map[string]string{"WWW-Authenticate": "Bearer"}},
		"Often": {"who tries too often waits", "GET", "/absent", "often", 429, "", []nf.AuditEntry{entry(func(e *nf.AuditEntry) {
			e.Phase, e.Method, e.Route, e.Status, e.Outcome = "refusal", "GET", "/absent", 429, "rate-limited"
		})}, map[string]string{"Retry-After": "2", "WWW-Authenticate": ""}},
		"Later": {"an issuer that is away is nobody's fault", "GET", "/absent", "later", 502, "", []nf.AuditEntry{entry(func(e *nf.AuditEntry) {
			e.Phase, e.Method, e.Route, e.Status, e.Outcome = "refusal", "GET", "/absent", 502, "unreachable"
		})}, map[string]string{"Retry-After": "10"}},
		"Hidden":  {"what is hidden is recorded, and only recorded", "GET", "/hidden", "ann", 404, "", []nf.AuditEntry{byAnn(nf.AuditRefusal, "GET", "/hidden", 404, "hidden", func(e *nf.AuditEntry) { e.Permission, e.Project = nf.ReadInstance, "b" })}, nil},
		"Absent":  {"what does not exist is no refusal", "GET", "/absent", "ann", 404, "", nil, nil},
		"MayNot":  {"what one may not read", "GET", "/forbidden", "ann", 403, "", []nf.AuditEntry{byAnn(nf.AuditRefusal, "GET", "/forbidden", 403, "forbidden")}, nil},
		"MayNot2": {"what one may not change", "POST", "/forbidden", "ann", 403, "", []nf.AuditEntry{byAnn(nf.AuditIntent, "POST", "/forbidden", 0, ""), byAnn(nf.AuditOutcome, "POST", "/forbidden", 403, "forbidden")}, nil},
		"Busy":    {"what stood in the way", "POST", "/busy", "ann", 409, "", []nf.AuditEntry{byAnn(nf.AuditIntent, "POST", "/busy", 0, ""), byAnn(nf.AuditOutcome, "POST", "/busy", 409, "busy", func(e *nf.AuditEntry) { e.Operation = "op-2" })}, map[string]string{"Retry-After": "1"}},
		"Half":    {"what was not read to its end has no digest", "POST", "/half", "ann", 200, "", []nf.AuditEntry{byAnn(nf.AuditIntent, "POST", "/half", 0, ""), byAnn(nf.AuditOutcome, "POST", "/half", 200, "done")}, nil},
		"Panic":   {"what ended in a defect", "POST", "/panic", "ann", 500, "", []nf.AuditEntry{byAnn(nf.AuditIntent, "POST", "/panic", 0, ""), byAnn(nf.AuditOutcome, "POST", "/panic", 500, "internal")}, nil},
		"Health":  {"machines ask for health without a proof", "GET", "/healthz", "", 200, "", nil, nil},
		"Docs":    {"and people for the documentation", "GET", "/docs", "", 200, "", nil, nil},
		"Root":    {"to which the root leads", "GET", "/", "", 303, "", nil, map[string]string{"Location": "/docs"}},
		"Metrics": {"Prometheus expects no question", "GET", "/metrics", "", 200, "", nil, nil},
		"NotOpen": {"an open path is itself, and nothing below it", "GET", "/docs/x", "", 401, "", []nf.AuditEntry{entry(func(e *nf.AuditEntry) {
			e.Phase, e.Method, e.Status, e.Outcome = "refusal", "GET", 401, "unauthenticated"
		})}, nil},
	}
	b, log := &book{}, &records{}
	h := handler(t, northbound.Config{Access: door{}, Audit: b, APIs: []northbound.API{doing(&done)}, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			done, log.buf = nil, bytes.Buffer{}
			w := ask(h, c.method, c.path, c.name, "s3cret")
			entries := b.take()
			if diff := cmp.Diff(c.entries, entries, cmpopts.IgnoreFields(nf.AuditEntry{}, "ID")); diff != "" || w.Code != c.status || strings.Join(done, ",") != c.done {
				t.Errorf("%s: %d, done %q, entries (-want +got)\n%s", c.reason, w.Code, done, diff)
			}
			if len(entries) == 2 && (entries[0].ID != entries[1].ID || entries[0].ID == "") {
				t.Errorf("%s: the entries of one request have the ids %q and %q", c.reason, entries[0].ID, entries[1].ID)
			}
			for key, want := range c.header {
				if got := w.Header().Get(key); got != want {
					t.Errorf("%s: %s is %q, want %q", c.reason, key, got, want)
				}
			}
			if w.Code >= 400 {
				problemOf(t, w)
			}
			if c.name == "ann" && log.with(t, "request")[0]["identity"] != "token:ann" {
				t.Errorf("%s: the log does not say who it was: %s", c.reason, log.buf.String())
			}
			if strings.Contains(log.buf.String(), "s3cret") {
				t.Errorf("%s: the log holds the body", c.reason)
			}
		})
	}
}

// TestRefusedOften reads again and again what it may not read.
func TestRefusedOften(t *testing.T) {
	t.Parallel()
	var done []string
	b := &book{}
	h := handler(t, northbound.Config{Access: door{}, Audit: b, APIs: []northbound.API{doing(&done)}, Logger: slog.New(slog.DiscardHandler)})
	for range 25 {
		ask(h, "GET", "/forbidden", "ann", "")
		ask(h, "GET", "/hidden", "ann", "")
	}
	if n := len(b.take()); n != 10 {
		t.Errorf("%d entries, want 10: a client fills the record", n)
	}
}

// TestNothingWithoutARecord checks that nothing is changed that cannot be
// recorded first, and that everything can be read all the same.
func TestNothingWithoutARecord(t *testing.T) {
	t.Parallel()
	var done []string
	b := &book{fail: nf.E(nf.Unreachable, "write", "the audit log", errors.New("/var/log is full"))}
	h := handler(t, northbound.Config{Access: door{}, Audit: b, APIs: []northbound.API{doing(&done)}})
	w := ask(h, "POST", "/do/x", "ann", "body")
	if p := problemOf(t, w); w.Code != 502 || p.Reason != "audit" || len(done) > 0 || strings.Contains(p.Detail, "/var/log") {
		t.Errorf("it is answered %d %+v, and done is %q", w.Code, p, done)
	}
	if w := ask(h, "GET", "/do/x", "ann", ""); w.Code != 200 || len(done) != 1 {
		t.Errorf("to read is answered %d", w.Code)
	}
	if w := ask(h, "GET", "/do/x", "", ""); w.Code != 401 {
		t.Errorf("a refusal that cannot be recorded is answered %d", w.Code)
	}
}

// TestOutcomeOutlivesItsClient has the client go away before the end.
func TestOutcomeOutlivesItsClient(t *testing.T) {
	t.Parallel()
	b := &book{}
	ctx, leave := context.WithCancel(t.Context())
	h := handler(t, northbound.Config{Access: door{}, Audit: b, APIs: []northbound.API{routes{
		"POST /do": func(http.ResponseWriter, *http.Request) error { leave(); return nil },
	}}})
	r := httptest.NewRequestWithContext(ctx, "POST", "/do", nil)
	r.Header.Set("Authorization", "Bearer ann")
	serve(h, r)
	if entries := b.take(); len(entries) != 2 || entries[1].Phase != nf.AuditOutcome {
		t.Errorf("the entries are %+v", entries)
	}
}

func TestRouteIsTold(t *testing.T) {
	t.Parallel()
	var told []string
	var done []string
	h := handler(t, northbound.Config{APIs: []northbound.API{doing(&done)}, Routed: func(r *http.Request, route string) {
		told = append(told, r.Method+" "+r.URL.Path+" "+route)
	}})
	ask(h, "POST", "/do/x", "", "body")
	ask(h, "GET", "/nowhere", "", "")
	if diff := cmp.Diff([]string{"POST /do/x /do/{id}"}, told); diff != "" {
		t.Errorf("what is told (-want +got)\n%s", diff)
	}
}

func TestProtectedMetrics(t *testing.T) {
	t.Parallel()
	may := func(ctx context.Context) error {
		if id, _ := nf.IdentityOf(ctx); id.Name != "prometheus" {
			return nf.E(nf.Forbidden, "read", "the metrics", nil)
		}
		return nil
	}
	h := handler(t, northbound.Config{Access: door{}, MayScrape: may, Limit: northbound.Limit{Rate: 0.001, Burst: 1}})
	for range 3 { // and however often it scrapes
		if w := ask(h, "GET", "/metrics", "prometheus", ""); w.Code != 200 {
			t.Errorf("with a proof it is %d", w.Code)
		}
	}
	if w := ask(h, "GET", "/metrics", "", ""); w.Code != 401 {
		t.Errorf("without a proof it is %d", w.Code)
	}
	if w := ask(h, "GET", "/metrics", "ann", ""); w.Code != 403 {
		t.Errorf("for another caller it is %d", w.Code)
	}
	if w := ask(handler(t, northbound.Config{MayScrape: may}), "GET", "/metrics", "", ""); w.Code != 200 {
		t.Errorf("without authentication it is %d", w.Code)
	}
}

func TestOpenGate(t *testing.T) {
	t.Parallel()
	var done []string
	b := &book{}
	h := handler(t, northbound.Config{Audit: b, Hosts: []string{"lab.example.org"}, APIs: []northbound.API{doing(&done)}})
	at := func(local, host string) int {
		r := httptest.NewRequest("POST", "/do/x", nil)
		r.Host = host
		address, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		return serve(h, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, address))).Code
	}
	for name, c := range map[string]struct {
		reason      string
		local, host string
		status      int
	}{
		"Loopback":    {"the address itself", "127.0.0.1:9015", "127.0.0.1:9015", 200},
		"Other":       {"or another one of this machine", "127.0.0.1:9015", "127.1.2.3", 200},
		"IPv6":        {"in whatever family", "[::1]:9015", "[::1]:9015", 200},
		"IPv6Bare":    {"with or without a port", "[::1]:9015", "[::1]", 200},
		"Mapped":      {"or both", "127.0.0.1:9015", "[::ffff:127.0.0.1]:80", 200},
		"Localhost":   {"by name", "127.0.0.1:9015", "LocalHost:9015", 200},
		"Dot":         {"however it is written", "127.0.0.1:9015", "localhost.:9015", 200},
		"Sub":         {"which all are this machine", "127.0.0.1:9015", "k8splugin.localhost", 200},
		"None":        {"HTTP/1.0 says none, and browsers do not speak it", "127.0.0.1:9015", "", 200},
		"Named":       {"a proxy may have a name for it", "127.0.0.1:9015", "Lab.example.org:443", 200},
		"Rebound":     {"a site that has its name lead here", "127.0.0.1:9015", "evil.example.org:9015", 421},
		"ReboundAll":  {"by an address that is none of ours", "127.0.0.1:9015", "192.0.2.1", 421},
		"Zero":        {"or the one that some take for it", "127.0.0.1:9015", "0.0.0.0:9015", 421},
		"Lookalike":   {"or a name that looks like it", "127.0.0.1:9015", "localhost.evil.example.org", 421},
		"NotLoopback": {"who opens it to the network has been told", "192.0.2.1:9015", "anything.example.org", 200},
	} {
		if got := at(c.local, c.host); got != c.status {
			t.Errorf("%s: %s: %d, want %d", name, c.reason, got, c.status)
		}
	}
	entries := b.take()
	if last := entries[len(entries)-1]; last.Kind != "anonymous" || last.Identity != "" {
		t.Errorf("who asks when everybody may is %+v", last)
	}
}

func TestRefusalsThatAreMissed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	l := northbound.NewLimiter(northbound.Limit{Clients: 4}, func() time.Time { return now })
	for i := range 10 {
		if missed, tell := l.Tell("a"); !tell || missed != 0 {
			t.Fatalf("refusal %d: %d, %t", i, missed, tell)
		}
	}
	for range 5 {
		if _, tell := l.Tell("a"); tell {
			t.Fatal("a client fills the record")
		}
	}
	now = now.Add(10 * time.Second)
	if missed, tell := l.Tell("a"); !tell || missed != 5 {
		t.Errorf("after a while: %d missed, %t", missed, tell)
	}
	for range 1000 {
		l.Tell(now.String())
		now = now.Add(time.Second)
	}
	if n := l.Clients(); n > 4 {
		t.Errorf("%d clients are kept in mind, want 4 at most", n)
	}
}
