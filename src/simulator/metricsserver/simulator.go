package metricsserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// Group begins the paths of the requests that the simulator answers.
const Group = "/apis/metrics.k8s.io/"

const maxEntries = 1000 // of the journal

// Pod is the measurement of a pod.
type Pod struct {
	Namespace  string
	Name       string
	Labels     map[string]string // of the pod
	Containers []Container
}

// Container is the measurement of a container, in quantities of Kubernetes.
type Container struct {
	Name   string
	CPU    string // such as "250m", or "12345678n"
	Memory string // such as "100Mi"
}

// Fault makes requests fail.
type Fault struct {
	Status int // 404: the group is not served; 503: the server is down
}

// Simulator is a metrics server. It is safe for concurrent use.
type Simulator struct {
	faults  script.Faults[Fault]
	journal script.Journal[string]

	mu         sync.Mutex
	pods       map[string]Pod // by "namespace/name"
	violations []string
}

var _ http.Handler = (*Simulator)(nil)

// New returns a simulator that has measured nothing.
func New() *Simulator {
	return &Simulator{pods: map[string]Pod{}, journal: script.Journal[string]{Most: maxEntries}}
}

// Measure sets the measurement of a pod.
func (s *Simulator) Measure(p Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[p.Namespace+"/"+p.Name] = p
}

// Script makes a number of requests fail: 0 is one, and a negative number is all until
// Clear.
func (s *Simulator) Script(f Fault, times int) { s.faults.Add(f, times) }

// Clear removes all faults.
func (s *Simulator) Clear() { s.faults.Clear() }

// Requests returns the requests since the last call: "namespace selector".
func (s *Simulator) Requests() []string { return s.journal.Take() }

// Violations returns what the simulator has rejected.
func (s *Simulator) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// ServeHTTP implements http.Handler.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := s.faults.Take(func(Fault) bool { return true }); f.Status != 0 {
		fail(w, f.Status, "the simulated fault")
		return
	}
	namespace, selector, code, err := check(r)
	if err != nil {
		s.mu.Lock()
		s.violations = append(s.violations, r.Method+" "+r.URL.String()+": "+err.Error())
		s.mu.Unlock()
		fail(w, code, err.Error())
		return
	}
	s.journal.Add(namespace + " " + r.URL.Query().Get("labelSelector"))
	document := map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{}, "items": s.items(namespace, selector)}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // the client may be gone
}

// check returns the namespace and the labels that a request selects, or the status of its
// rejection.
func check(r *http.Request) (namespace string, labels map[string]string, code int, err error) {
	rest, found := strings.CutPrefix(r.URL.Path, Group+"v1beta1/namespaces/")
	namespace, resource, _ := strings.Cut(rest, "/")
	switch {
	case r.Method != http.MethodGet:
		return "", nil, http.StatusMethodNotAllowed, fmt.Errorf("the server does not support %s", r.Method)
	case !found || namespace == "" || resource != "pods":
		return "", nil, http.StatusNotFound, fmt.Errorf("the server does not simulate %s", r.URL.Path)
	case !strings.Contains(r.Header.Get("Accept"), "json"):
		return "", nil, http.StatusNotAcceptable, fmt.Errorf("the response is JSON")
	}
	for name := range r.URL.Query() {
		if !slices.Contains([]string{"labelSelector", "limit", "timeout"}, name) {
			return "", nil, http.StatusBadRequest, fmt.Errorf("the parameter %s is unknown", name)
		}
	}
	labels = map[string]string{}
	for part := range strings.SplitSeq(r.URL.Query().Get("labelSelector"), ",") {
		if part == "" {
			continue
		}
		name, value, equal := strings.Cut(part, "=")
		if !equal || name == "" || strings.ContainsAny(name, "! ()") {
			return "", nil, http.StatusBadRequest, fmt.Errorf("the selector %s is not simulated", part)
		}
		labels[name] = strings.TrimPrefix(value, "=")
	}
	return namespace, labels, 0, nil
}

// items returns the measurements of a namespace, sorted by name.
func (s *Simulator) items(namespace string, labels map[string]string) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []any{}
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[key]
		if p.Namespace != namespace || !has(p.Labels, labels) {
			continue
		}
		containers := []any{}
		for _, c := range p.Containers {
			containers = append(containers, map[string]any{"name": c.Name, "usage": map[string]string{"cpu": c.CPU, "memory": c.Memory}})
		}
		out = append(out, map[string]any{
			"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": p.Labels}, "timestamp": time.Now().UTC().Format(time.RFC3339),
			"window": "15s", "containers": containers,
		})
	}
	return out
}

func has(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// fail responds with a Status of Kubernetes.
func fail(w http.ResponseWriter, code int, message string) {
	reasons := map[int]string{
		http.StatusBadRequest: "BadRequest", http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed",
		http.StatusNotAcceptable: "NotAcceptable", http.StatusServiceUnavailable: "ServiceUnavailable",
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reasons[code], "code": code,
	}) // the client may be gone
}
