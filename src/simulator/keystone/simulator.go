package keystone

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	maxEntries   = 10000
	defaultLife  = time.Hour
	defaultAdmin = "admin"
)

// User is a user of the simulator.
type User struct {
	Name     string
	Domain   string // default Default
	Password string
	Roles    map[string][]string // by the project: its name, or "name@domain" for one of another domain than Default
}

// Config describes a simulator.
type Config struct {
	Users    []User
	Validate []string         // roles that may validate the tokens of others; default: admin
	Endpoint string           // of the service in the catalog, of the type nfv-orchestration; empty: the catalog is empty
	Life     time.Duration    // of a token; 1 h by default
	Clock    func() time.Time // default time.Now
}

// Simulator is Keystone. It is safe for concurrent use.
type Simulator struct {
	cfg     Config
	handler http.Handler
	faults  script.Faults[Fault]
	journal script.Journal[Entry]

	mu     sync.Mutex
	tokens map[string]*token
}

// token is a token that was issued.
type token struct {
	user    User
	project string // as in User.Roles; empty: it is unscoped
	issued  time.Time
	expires time.Time
}

// Entry is a request and the status of its response.
type Entry struct {
	Method, Path string
	Status       int
}

// Fault is what happens to requests.
type Fault struct {
	Method string        // empty: any
	Delay  time.Duration // before the request is handled
	Status int           // of the response, instead of handling the request; 0: it is handled
	Body   string        // of that response
	Lost   bool          // the connection ends without a response, after the request was handled
}

// New returns a simulator.
func New(cfg Config) *Simulator {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Life == 0 {
		cfg.Life = defaultLife
	}
	if cfg.Validate == nil {
		cfg.Validate = []string{defaultAdmin}
	}
	s := &Simulator{cfg: cfg, tokens: map[string]*token{}, journal: script.Journal[Entry]{Most: maxEntries}}
	s.handler = s.routes()
	return s
}

// Fail adds a fault for a number of requests: 0 is one, and a negative number is all until
// Recover.
func (s *Simulator) Fail(fault Fault, times int) { s.faults.Add(fault, times) }

// Recover removes all faults.
func (s *Simulator) Recover() { s.faults.Clear() }

// Journal returns the requests since the last call.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// Issue returns a token of a user. An empty project is that of an unscoped token.
func (s *Simulator) Issue(user, project string) string {
	for _, u := range s.cfg.Users {
		if u.Name == user {
			return s.issue(u, project)
		}
	}
	return ""
}

// Revoke makes a token invalid.
func (s *Simulator) Revoke(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, text)
}

// RevokeAll makes all tokens invalid, as a Keystone that has lost its keys does.
func (s *Simulator) RevokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// ServeHTTP implements http.Handler.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.faults.Take(func(f Fault) bool { return f.Method == "" || f.Method == r.Method })
	if !script.Hold(r.Context(), nil, fault.Delay) {
		return
	}
	recorded := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	switch {
	case fault.Status != 0:
		recorded.WriteHeader(fault.Status)
		_, _ = recorded.Write([]byte(fault.Body))
	case fault.Lost:
		s.handler.ServeHTTP(discard{http.Header{}}, r)
		s.journal.Add(Entry{r.Method, r.URL.Path, 0})
		panic(http.ErrAbortHandler)
	default:
		s.handler.ServeHTTP(recorded, r)
	}
	s.journal.Add(Entry{r.Method, r.URL.Path, recorded.status})
}

func (s *Simulator) issue(u User, project string) string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	text := "gAAAA-" + hex.EncodeToString(b[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock()
	s.tokens[text] = &token{user: u, project: project, issued: now, expires: now.Add(s.cfg.Life)}
	return text
}

// find returns a valid token, or nil.
func (s *Simulator) find(text string) *token {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[text]
	if t == nil || !s.cfg.Clock().Before(t.expires) {
		return nil
	}
	return t
}

// mayValidate reports whether the owner of a token may validate those of others.
func (s *Simulator) mayValidate(t *token) bool {
	return t.project != "" && slices.ContainsFunc(t.user.Roles[t.project], func(role string) bool { return slices.Contains(s.cfg.Validate, role) })
}

// statusWriter keeps the status of a response.
type statusWriter struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// discard is a response that is lost.
type discard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (d discard) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (discard) WriteHeader(int) {}
