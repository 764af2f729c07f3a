package nfvo

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	version    = "1.4.0"
	grantsPath = "/grant/v1/grants"
	tokenPath  = "/token"
	tokenLife  = time.Minute
	maxBody    = 4 << 20 // bytes
)

// Config configures a simulator.
type Config struct {
	User     string // of basic authentication, or the id of the OAuth2 client
	Password string
	Tokens   bool             // grants need a token of POST /token
	Clock    func() time.Time // default: time.Now
}

// Simulator is an NFVO. It is safe for concurrent use.
type Simulator struct {
	cfg     Config
	faults  script.Faults[Fault]
	journal script.Journal[Entry]

	mu      sync.Mutex
	tokens  map[string]time.Time // until they expire
	pending map[string]*pending
}

// pending is a grant that is not decided yet.
type pending struct {
	left  int // requests until it is
	fault Fault
	grant map[string]any
}

// New returns a simulator.
func New(cfg Config) *Simulator {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Simulator{cfg: cfg, journal: script.Journal[Entry]{Most: maxEntries}, tokens: map[string]time.Time{}, pending: map[string]*pending{}}
}

// ServeHTTP implements http.Handler.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	out := s.answer(r, body)
	status := out.status
	if out.cut {
		status = 0
	}
	entry := Entry{Method: r.Method, Path: r.URL.Path, Status: status}
	if json.Valid(body) {
		entry.Body = body
	}
	s.journal.Add(entry)
	if out.cut {
		panic(http.ErrAbortHandler)
	}
	for name, value := range out.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body)
}

// answer is what a request gets.
type answer struct {
	status int
	header map[string]string
	body   []byte
	cut    bool
}

// problem is an answer with a ProblemDetails.
func problem(status int, format string, args ...any) answer {
	body, _ := json.Marshal(map[string]any{"status": status, "title": http.StatusText(status), "detail": fmt.Sprintf(format, args...)})
	return answer{status: status, header: map[string]string{"Content-Type": "application/problem+json", "Version": version}, body: body}
}

func (s *Simulator) answer(r *http.Request, body []byte) answer {
	if r.URL.Path == tokenPath {
		return s.token(r, body)
	}
	if refused := s.check(r); refused.status != 0 {
		return refused
	}
	id, one := strings.CutPrefix(r.URL.Path, grantsPath+"/")
	switch {
	case one && r.Method == http.MethodGet:
		return s.decide(id)
	case r.URL.Path != grantsPath:
		return problem(http.StatusNotFound, "there is nothing at %s", r.URL.Path)
	case r.Method != http.MethodPost:
		return problem(http.StatusMethodNotAllowed, "%s is not allowed here", r.Method)
	}
	return s.create(r, body)
}

// check refuses a request with wrong headers or credentials.
func (s *Simulator) check(r *http.Request) answer {
	switch got := r.Header.Get("Version"); {
	case got == "":
		return problem(http.StatusBadRequest, "the header Version is missing")
	case got != version:
		return problem(http.StatusNotAcceptable, "version %s is not supported", got)
	case !strings.Contains(r.Header.Get("Accept"), "application/json"):
		return problem(http.StatusNotAcceptable, "Accept must have application/json")
	case r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
		return problem(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	if s.cfg.User == "" {
		return answer{}
	}
	if user, password, basic := r.BasicAuth(); !s.cfg.Tokens && basic && user == s.cfg.User && password == s.cfg.Password {
		return answer{}
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Tokens && bearer && s.cfg.Clock().Before(s.tokens[token]) {
		return answer{}
	}
	return problem(http.StatusUnauthorized, "the credentials are missing or wrong")
}

// token issues a token (RFC 6749 clause 4.4).
func (s *Simulator) token(r *http.Request, body []byte) answer {
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	user, password, basic := r.BasicAuth()
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != "client_credentials" {
		return answer{status: http.StatusBadRequest, body: []byte(`{"error":"unsupported_grant_type"}`)}
	}
	if !basic || user != s.cfg.User || password != s.cfg.Password {
		return answer{status: http.StatusUnauthorized, body: []byte(`{"error":"invalid_client"}`)}
	}
	token := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = s.cfg.Clock().Add(tokenLife)
	content, _ := json.Marshal(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLife.Seconds())})
	return answer{status: http.StatusOK, header: map[string]string{"Content-Type": "application/json"}, body: content}
}

// create answers a request for a grant.
func (s *Simulator) create(r *http.Request, body []byte) answer {
	fault := s.faults.Take(func(Fault) bool { return true })
	if !script.Hold(r.Context(), fault.Before, fault.Delay) || fault.Cut {
		return answer{cut: true}
	}
	req, refused := read(body)
	if refused != "" {
		return problem(http.StatusBadRequest, "%s", refused)
	}
	grant := req.grant()
	id := rand.Text()
	grant["id"] = id
	if fault.Edit != nil {
		fault.Edit(grant)
	}
	s.mu.Lock()
	s.pending[id] = &pending{fault.Later, fault, grant}
	s.mu.Unlock()
	if fault.Later > 0 {
		return answer{status: http.StatusAccepted, header: map[string]string{"Location": grantsPath + "/" + id, "Version": version, "Retry-After": "1"}}
	}
	out := s.decide(id)
	if out.status == http.StatusOK {
		out.status, out.header["Location"] = http.StatusCreated, grantsPath+"/"+id
	}
	return out
}

// decide answers with a grant, or says that it is pending or refused.
func (s *Simulator) decide(id string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id]
	switch {
	case p == nil:
		return problem(http.StatusNotFound, "there is no grant %s", id)
	case p.left > 0:
		p.left--
		return answer{status: http.StatusAccepted, header: map[string]string{"Version": version}}
	case p.fault.Status != 0:
		return problem(p.fault.Status, "%s", p.fault.Detail)
	}
	body := []byte(p.fault.Raw)
	if p.fault.Raw == "" {
		body, _ = json.Marshal(p.grant)
	}
	return answer{status: http.StatusOK, header: map[string]string{"Content-Type": "application/json", "Version": version}, body: body}
}
