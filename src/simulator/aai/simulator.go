package aai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	defaultLimit = 30       // changes in one transaction
	maxBody      = 32 << 20 // bytes of a request
)

// Config describes a simulator.
type Config struct {
	Users         map[string]string   // passwords by user; at least one
	ImpliedDelete map[string][]string // parent types whose children a PUT may delete, by X-FromAppId in lower case; none, as in OOM
	Limit         int                 // changes in one transaction; 30 by default
	Clock         func() time.Time    // time.Now by default
	Publish       func(event []byte)  // takes the messages of the topic AAI-EVENT; none by default
}

// Simulator is an A&AI. It is safe for concurrent use, and executes one request at
// a time.
type Simulator struct {
	cfg    Config
	schema *schema

	mu         sync.Mutex
	graph      *graph
	stamp      int64 // the last resource version
	denied     []string
	faults     script.Faults[Fault]
	journal    script.Journal[Entry]
	violations []string
}

// New returns a simulator without objects.
func New(cfg Config) (*Simulator, error) {
	if len(cfg.Users) == 0 {
		return nil, errors.New("cannot make a simulator of A&AI: it has no user")
	}
	if cfg.Limit == 0 {
		cfg.Limit = defaultLimit
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	s, err := loadSchema()
	if err != nil {
		return nil, fmt.Errorf("cannot make a simulator of A&AI: %w", err)
	}
	return &Simulator{cfg: cfg, schema: s, graph: newGraph(), journal: script.Journal[Entry]{Most: maxEntries}}, nil
}

// Deny rejects all changes below paths, such as "/network/l3-networks", like an
// account that lacks the right. It replaces the paths of an earlier call.
func (s *Simulator) Deny(paths ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = paths
}

// response is the response to a request.
type response struct {
	status int
	header map[string]string
	body   any // nil: empty
	err    *refusal
	events [][]byte
}

// ServeHTTP executes a request. If a fault cuts the connection, it panics with
// http.ErrAbortHandler, as net/http expects.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read the body", http.StatusRequestEntityTooLarge)
		return
	}
	method := methodOf(r)
	fault := s.takeFault(method, r.URL.EscapedPath())
	if !script.Hold(r.Context(), fault.Before, fault.Delay) {
		return
	}
	resp := s.execute(r, method, body, fault)
	s.record(r, method, body, resp)
	for _, event := range resp.events {
		s.cfg.Publish(event)
	}
	if fault.Cut {
		panic(http.ErrAbortHandler)
	}
	s.write(w, r, method, resp)
}

// execute returns the response to a request, or that of its fault.
func (s *Simulator) execute(r *http.Request, method string, body []byte, fault Fault) response {
	switch {
	case fault.Code != 0:
		return response{err: refuse(fault.Code, "the script demands it")}
	case fault.Status != 0:
		return response{status: fault.Status}
	}
	if err := s.checkHeaders(r, method); err != nil {
		return response{err: err}
	}
	version, path, err := splitVersion(r.URL.EscapedPath())
	if err != nil {
		return response{err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.begin(version, callerOf(r.Header).appID)
	req := request{tx: tx, method: method, path: path, query: r.URL.Query(), body: body}
	var resp response
	switch path {
	case "bulk/single-transaction":
		resp = s.singleTransaction(req)
	case "bulkprocess":
		resp = s.bulkProcess(req)
	default:
		resp = s.one(req)
	}
	if resp.err != nil {
		s.graph.rollback()
	}
	s.graph.commit()
	resp.events = s.events(tx, callerOf(r.Header), s.graph.take())
	return resp
}

// begin returns a transaction with a resource version that no object has. The
// caller holds the lock.
func (s *Simulator) begin(version int, appID string) *transaction {
	s.stamp = max(s.stamp+1, s.cfg.Clock().UnixMilli())
	return &transaction{
		graph: s.graph, schema: s.schema, version: version, stamp: strconv.FormatInt(s.stamp, 10),
		implied: s.cfg.ImpliedDelete[strings.ToLower(appID)],
		violate: func(format string, args ...any) { s.violations = append(s.violations, fmt.Sprintf(format, args...)) },
	}
}

// write sends a response.
func (s *Simulator) write(w http.ResponseWriter, r *http.Request, method string, resp response) {
	w.Header().Set("X-AAI-TXID", callerOf(r.Header).transactionID)
	w.Header().Set("Content-Type", typeJSON)
	for name, value := range resp.header {
		w.Header().Set(name, value)
	}
	if resp.err != nil {
		w.WriteHeader(codes[resp.err.code].status)
		_, _ = w.Write(resp.err.body(method, r.URL.EscapedPath())) // a client that has left misses it
		return
	}
	w.WriteHeader(resp.status)
	if resp.body != nil {
		_ = json.NewEncoder(w).Encode(resp.body) // likewise
	}
}
