package subscriber

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	// Callback is the path of the callback.
	Callback = "/notify"
	// TokenPath is the path of the token endpoint.
	TokenPath = "/token"

	maxEntries = 10_000
	maxBody    = 4 << 20
)

// Config describes a simulator. Without a User, requests need no credentials.
type Config struct {
	Version  string // of the interface: "2.0.0"
	User     string // or the id of an OAuth 2.0 client
	Password string
	Tokens   bool   // the callback requires tokens instead of the password
	Links    string // begins all links
}

// Entry is a request to the callback or to the token endpoint.
type Entry struct {
	Method   string
	Host     string
	Path     string
	Header   http.Header
	Body     string
	Document map[string]any // of the body; nil: it is not an object
	Status   int            // 0: there was no response
}

// Fault is what happens to a request instead of, or before, its usual response.
type Fault struct {
	Path   string        // "": the callback
	Status int           // of the response; 0: the usual one
	Lost   bool          // the request is processed, and gets no response
	Delay  time.Duration // before the request is processed
	Before func()        // is called before that; may be nil
}

// Simulator is a subscriber. It is safe for concurrent use.
type Simulator struct {
	cfg        Config
	faults     script.Faults[Fault]
	journal    script.Journal[Entry]
	violations script.Journal[string]

	mu       sync.Mutex
	tokens   map[string]bool
	issued   int
	received map[string]string // bodies, by subscription and id
	states   map[string]string // the last state, by subscription and occurrence
}

var (
	_ http.Handler      = (*Simulator)(nil)
	_ http.RoundTripper = (*Simulator)(nil)
)

// New returns a simulator.
func New(cfg Config) *Simulator {
	return &Simulator{
		cfg: cfg, journal: script.Journal[Entry]{Most: maxEntries}, violations: script.Journal[string]{Most: maxEntries},
		tokens: map[string]bool{}, received: map[string]string{}, states: map[string]string{},
	}
}

// Script adds a fault for a number of requests: 0 is one, and a negative number is all
// until Clear.
func (s *Simulator) Script(f Fault, times int) { s.faults.Add(f, times) }

// Clear removes all faults.
func (s *Simulator) Clear() { s.faults.Clear() }

// Journal returns the requests since the last call, oldest first.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// Violations returns what was rejected since the last call.
func (s *Simulator) Violations() []string { return s.violations.Take() }

// Revoke makes all tokens invalid.
func (s *Simulator) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

var errLost = errors.New("connection reset by the simulated subscriber")

// RoundTrip implements http.RoundTripper: it is a client's way to the simulator without a
// network.
func (s *Simulator) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if !s.serve(answer, r) {
		return nil, errLost
	}
	return answer.Result(), nil
}

// ServeHTTP implements http.Handler.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.serve(w, r) {
		panic(http.ErrAbortHandler)
	}
}

// serve answers a request. It returns false if the request gets no response.
func (s *Simulator) serve(w http.ResponseWriter, r *http.Request) bool {
	fault := s.faults.Take(func(f Fault) bool { return f.Path == r.URL.Path || f.Path == "" && r.URL.Path == Callback })
	if !script.Hold(r.Context(), fault.Before, fault.Delay) {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return false
	}
	entry := Entry{Method: r.Method, Host: cmp.Or(r.Host, r.URL.Host), Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body)}
	_ = json.Unmarshal(body, &entry.Document) // nil says that it failed
	answer := httptest.NewRecorder()
	switch {
	case fault.Status > 0:
		answer.WriteHeader(fault.Status)
	case r.URL.Path == TokenPath:
		s.token(answer, r, body)
	case r.URL.Path == Callback:
		s.callback(answer, r, body)
	default:
		s.reject(answer, http.StatusNotFound, "%s does not exist", r.URL.Path)
	}
	if entry.Status = answer.Code; fault.Lost {
		entry.Status = 0
	}
	s.journal.Add(entry)
	if fault.Lost {
		return false
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // a failure means that the client has disconnected
	return true
}

func (s *Simulator) callback(w http.ResponseWriter, r *http.Request, body []byte) {
	if !s.authorized(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if wrong := s.headers(r); wrong != "" {
		s.reject(w, http.StatusBadRequest, "%s", wrong)
		return
	}
	switch r.Method {
	case http.MethodGet:
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		if err := s.receive(body); err != nil {
			s.reject(w, http.StatusBadRequest, "%v: %s", err, body)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		s.reject(w, http.StatusMethodNotAllowed, "%s is not allowed", r.Method)
	}
}

// headers returns what is wrong with the headers of a request.
func (s *Simulator) headers(r *http.Request) string {
	switch {
	case r.Header.Get("Version") != s.cfg.Version:
		return fmt.Sprintf("the header Version is %q instead of %q", r.Header.Get("Version"), s.cfg.Version)
	case r.Header.Get("Accept") != "application/json":
		return "the header Accept is not application/json"
	case r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
		return "the header Content-Type is not application/json"
	}
	return ""
}

// reject answers with a problem, and records a violation.
func (s *Simulator) reject(w http.ResponseWriter, status int, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	s.violations.Add(detail)
	var problem bytes.Buffer
	_ = json.NewEncoder(&problem).Encode(map[string]any{"status": status, "detail": detail}) // it can be encoded
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(problem.Bytes()) // a failure means that the client has disconnected
}
