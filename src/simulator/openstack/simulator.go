package openstack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	maxBody = 1 << 20 // bytes of a request

	defaultLife = time.Hour
	defaultPage = 1000
)

// Config configures a simulator. Without times, nothing takes time.
type Config struct {
	Username, UserDomain, Password string // the only user; the domain by name
	Project, ProjectDomain         string // the only project; the domain by name

	Life   time.Duration    // of a token; default one hour
	Boot   time.Duration    // until a server is ACTIVE
	Vanish time.Duration    // until a deleted server is gone
	Page   int              // servers in one response; default 1000
	Quota  Quota            // zero: no limits
	Clock  func() time.Time // default: time.Now
}

// Quota limits the objects of the project; 0: no limit.
type Quota struct{ Servers, Ports int }

// Named is an object that an operator has made.
type Named struct{ ID, Name string }

// Network is a network with one subnet.
type Network struct {
	ID, Name string
	Prefix   string // of its addresses, such as "10.0.0."
}

// Simulator is an OpenStack cloud. It is safe for concurrent use, and executes one
// request at a time.
type Simulator struct {
	cfg     Config
	mux     *http.ServeMux
	faults  script.Faults[Fault]
	journal script.Journal[Entry]

	mu       sync.Mutex
	last     int // number in the last id
	tokens   map[string]time.Time
	images   []Named
	flavors  []Named
	groups   []Named // of security
	keys     []string
	networks []Network
	servers  []*server
	ports    []*port
	stacks   []*stack
	failing  map[string]string // messages of servers that are to fail, by name
}

// New returns a simulator of a cloud without objects.
func New(cfg Config) (*Simulator, error) {
	if cfg.Username == "" || cfg.Password == "" || cfg.Project == "" {
		return nil, errors.New("cannot make a simulator of OpenStack: it needs a user, a password and a project")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Life == 0 {
		cfg.Life = defaultLife
	}
	if cfg.Page == 0 {
		cfg.Page = defaultPage
	}
	s := &Simulator{
		cfg: cfg, mux: http.NewServeMux(), journal: script.Journal[Entry]{Most: maxEntries},
		tokens: map[string]time.Time{}, failing: map[string]string{},
	}
	s.identity()
	s.compute()
	s.network()
	s.image()
	s.orchestration()
	return s, nil
}

// Stock adds objects that an operator makes.
func (s *Simulator) Stock(images, flavors, securityGroups []Named, keyPairs []string, networks []Network) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images, s.flavors, s.groups = append(s.images, images...), append(s.flavors, flavors...), append(s.groups, securityGroups...)
	s.keys, s.networks = append(s.keys, keyPairs...), append(s.networks, networks...)
}

// id returns a new id. The caller holds the lock.
func (s *Simulator) id() string {
	s.last++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.last)
}

// request is a request that is being executed.
type request struct {
	http *http.Request
	body []byte
}

// response is the response to a request.
type response struct {
	status int
	header map[string]string
	body   any // nil: empty
}

// handle is the code of one call. The lock is held.
type handle func(r request) response

// on adds a call, with the queries that it knows. Public calls need no token.
func (s *Simulator) on(pattern string, public bool, queries []string, do handle) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "cannot read the body", http.StatusRequestEntityTooLarge)
			return
		}
		fault := s.takeFault(r)
		if !fault.hold(r) {
			return
		}
		resp := response{status: fault.Status}
		if fault.Status == 0 {
			resp = s.execute(request{r, body}, public, queries, do)
		}
		if public {
			body = nil
		}
		s.journal.Add(Entry{Method: r.Method, URI: r.URL.RequestURI(), Body: string(body), Status: resp.status})
		if fault.Cut {
			panic(http.ErrAbortHandler)
		}
		resp.write(w)
	})
}

// ServeHTTP executes a request. If a fault cuts the connection, it panics with
// http.ErrAbortHandler, as net/http expects.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, secondRegion+"/") {
		s.inSecond(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// inSecond counts a request to the second region, which has no objects, and refuses it.
func (s *Simulator) inSecond(w http.ResponseWriter, r *http.Request) {
	s.journal.Add(Entry{Method: r.Method, URI: r.URL.RequestURI(), Status: http.StatusServiceUnavailable})
	refuse(http.StatusServiceUnavailable, "the region has no services").write(w)
}

func (s *Simulator) execute(r request, public bool, queries []string, do handle) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if expires, known := s.tokens[r.http.Header.Get("X-Auth-Token")]; !public && (!known || !s.cfg.Clock().Before(expires)) {
		return refuse(http.StatusUnauthorized, "the token is unknown or has expired")
	}
	for name := range r.http.URL.Query() {
		if !slices.Contains(queries, name) {
			return refuse(http.StatusBadRequest, "the query %s is unknown", name)
		}
	}
	if len(r.body) > 0 && r.http.Header.Get("Content-Type") != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "the body is not application/json")
	}
	return do(r)
}

// refuse returns an error in Nova's form.
func refuse(status int, format string, args ...any) response {
	word := strings.ReplaceAll(http.StatusText(status), " ", "")
	word = strings.ToLower(word[:1]) + word[1:]
	return response{status: status, body: map[string]any{word: map[string]any{"code": status, "message": fmt.Sprintf(format, args...)}}}
}

// decode reads a body without unknown fields.
func decode(r request, into any) error {
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("cannot read the body: %w", err)
	}
	if d.More() {
		return errors.New("cannot read the body: data follows")
	}
	return nil
}

func (resp response) write(w http.ResponseWriter) {
	for name, value := range resp.header {
		w.Header().Set(name, value)
	}
	if resp.body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(resp.status)
	if resp.body != nil {
		_ = json.NewEncoder(w).Encode(resp.body) // a client that has left misses it
	}
}

// base returns the address at which the client reaches the simulator.
func base(r request) string {
	scheme := "http"
	if r.http.TLS != nil || r.http.URL.Scheme == "https" {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: r.http.Host}).String()
}
