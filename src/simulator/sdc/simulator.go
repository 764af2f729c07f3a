package sdc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/simulator/broker"
	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// Config describes a simulator. Users, KafkaUser and KafkaPassword are required.
type Config struct {
	Users         map[string]string // passwords by user
	Consumer      string            // the id that status messages must have; "multicloud-k8s" by default
	Group         string            // the group that may consume; "multicloud" by default
	Environment   string            // "AUTO" by default
	KafkaUser     string
	KafkaPassword string
	// Deployed is called for each artifact that a consumer reports as deployed, and
	// returns an error if it is not.
	Deployed func(ctx context.Context, artifactURL string) error
}

// Simulator is an SDC. It is safe for concurrent use.
type Simulator struct {
	cfg    Config
	broker *broker.Broker

	mu            sync.Mutex
	services      map[string]Service // by UUID
	distributions map[string]*distribution
	faults        script.Faults[Fault]
	journal       script.Journal[Entry]
	changed       chan struct{} // closed when a distribution changes

	wrong      sync.Mutex // guards violations
	violations []string
}

// New starts a simulator without services. The caller must close it.
func New(cfg Config) (*Simulator, error) {
	if len(cfg.Users) == 0 || cfg.KafkaUser == "" || cfg.KafkaPassword == "" {
		return nil, errors.New("cannot make a simulator of SDC: Users, KafkaUser and KafkaPassword are required")
	}
	for value, fallback := range map[*string]string{&cfg.Consumer: "multicloud-k8s", &cfg.Group: "multicloud", &cfg.Environment: "AUTO"} {
		if *value == "" {
			*value = fallback
		}
	}
	if cfg.Deployed == nil {
		cfg.Deployed = func(context.Context, string) error { return nil }
	}
	s := &Simulator{
		journal: script.Journal[Entry]{Most: maxEntries},
		cfg:     cfg, services: map[string]Service{}, distributions: map[string]*distribution{}, changed: make(chan struct{}),
	}
	if err := s.startKafka(); err != nil {
		return nil, fmt.Errorf("cannot make a simulator of SDC: %w", err)
	}
	return s, nil
}

// Close ends the broker.
func (s *Simulator) Close() {
	s.broker.Close()
}

// Put stores a distributed service, and returns it with its UUIDs. It replaces an
// earlier one with the same UUID.
func (s *Simulator) Put(service Service) (Service, error) {
	service, err := service.complete()
	if err != nil {
		return service, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[service.UUID] = service
	return service, nil
}

// ServeHTTP executes a request. If a fault cuts the connection, it panics with
// http.ErrAbortHandler, as net/http expects.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.takeFault(r.URL.Path)
	if !script.Hold(r.Context(), fault.Before, fault.Delay) {
		return
	}
	resp := s.execute(r, fault)
	s.record(r, resp)
	if fault.Cut {
		panic(http.ErrAbortHandler)
	}
	resp.write(w, fault)
}

// response is the response to a request.
type response struct {
	status   int
	code     string // of an error, such as "SVC4642"
	document any    // sent as JSON
	file     *Artifact
	location string
}

// execute returns the response to a request, or that of its fault.
func (s *Simulator) execute(r *http.Request, fault Fault) response {
	switch {
	case fault.Redirect != "":
		return response{status: http.StatusFound, location: fault.Redirect}
	case fault.Status != 0:
		return response{status: fault.Status, code: "SVC4000"}
	}
	if resp, ok := s.checkHeaders(r); !ok {
		return resp
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/sdc/v1/")
	if !ok || r.Method != http.MethodGet {
		return response{status: http.StatusNotFound, code: "SVC4000"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := s.get(strings.Split(path, "/"), r)
	want := typeJSON
	if resp.file != nil {
		want = typeFile
	}
	if resp.status == http.StatusOK && !accepts(r.Header.Get("Accept"), want) {
		return response{status: http.StatusNotAcceptable, code: "SVC4000"}
	}
	return resp
}

// checkHeaders rejects a request whose headers SDC rejects.
func (s *Simulator) checkHeaders(r *http.Request) (response, bool) {
	user, password, given := r.BasicAuth()
	want, known := s.cfg.Users[user]
	switch {
	case r.Header.Get("X-ECOMP-InstanceID") == "":
		return response{status: http.StatusBadRequest, code: "POL5001"}, false
	case !given:
		return response{status: http.StatusUnauthorized, code: "POL5002"}, false
	case !known || password != want:
		return response{status: http.StatusForbidden, code: "POL5003"}, false
	}
	if r.Header.Get("X-ECOMP-RequestID") == "" {
		s.violate("%s %s has no X-ECOMP-RequestID", r.Method, r.URL.Path)
	}
	return response{}, true
}

const (
	typeJSON = "application/json"
	typeFile = "application/octet-stream"
)

func accepts(header, media string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(one string) bool {
		one, _, _ = strings.Cut(one, ";")
		return strings.TrimSpace(one) == media || strings.TrimSpace(one) == "*/*"
	})
}

// write sends a response, or what a fault makes of it.
func (r response) write(w http.ResponseWriter, fault Fault) {
	switch {
	case r.location != "":
		w.Header().Set("Location", r.location)
		w.WriteHeader(r.status)
	case r.file != nil:
		content := slices.Clone(r.file.Content)
		if fault.Damage && len(content) > 0 {
			content[len(content)-1] ^= 1
		}
		w.Header().Set("Content-Type", typeFile)
		w.Header().Set("Content-MD5", r.file.checksum())
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", r.file.Name))
		_, _ = w.Write(content) // a client that has left misses it
		filler := make([]byte, 32<<10)
		for sent := int64(0); sent < fault.Longer; sent += int64(len(filler)) {
			if _, err := w.Write(filler); err != nil {
				return
			}
		}
	case r.code != "":
		w.Header().Set("Content-Type", typeJSON)
		w.WriteHeader(r.status)
		kind := "serviceException"
		if strings.HasPrefix(r.code, "POL") {
			kind = "policyException"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"requestError": map[string]any{kind: map[string]any{ // likewise
			"messageId": r.code, "text": "Error: %1", "variables": []string{"the simulator rejects the request"},
		}}})
	default:
		w.Header().Set("Content-Type", typeJSON)
		_ = json.NewEncoder(w).Encode(r.document) // likewise
	}
}

// violate records a violation.
func (s *Simulator) violate(format string, args ...any) {
	s.wrong.Lock()
	defer s.wrong.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// Violations returns the mistakes of consumers since the last call that SDC ignores.
func (s *Simulator) Violations() []string {
	s.wrong.Lock()
	defer s.wrong.Unlock()
	out := s.violations
	s.violations = nil
	return out
}
