package so

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// plugin is a service with one instance, which writes to A&AI as the service does. An
// override replaces its response to a request.
type plugin struct {
	t       *testing.T
	aai     *Driver // sends its requests to A&AI
	vnf     VNF
	objects []string // "kind name"

	mu        sync.Mutex
	polls     int
	there     bool
	overrides map[string]override
}

type override struct {
	status int
	body   string
}

const fakeID = "0123456789abcdef"

// newFlow returns SO, and the service that it uses.
func newFlow(t *testing.T) (*Driver, *plugin) {
	t.Helper()
	sim, err := aai.New(aai.Config{Users: map[string]string{"so": "so"}})
	if err != nil {
		t.Fatal(err)
	}
	inventory := httptest.NewServer(sim)
	p := &plugin{t: t, overrides: map[string]override{}, objects: []string{"Deployment web", "Service web"}, vnf: VNF{
		Owner: "acme", Region: "east", Tenant: "t 1", Service: "s1", ID: "V1", Type: "web", Module: "M1",
		Invariant: "i", Version: "v", Customization: "c", Profile: "p", Release: "web-1", Values: map[string]string{"a": "b"},
	}}
	service := httptest.NewServer(p)
	d, err := New(Config{
		Service: Server{URL: service.URL}, AAI: Server{URL: inventory.URL, User: "so", Password: "so"}, Interval: time.Millisecond, Limit: time.Minute,
		Report: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.aai = d
	t.Cleanup(func() {
		service.Close()
		inventory.Close()
		if v := sim.Violations(); len(v) > 0 {
			t.Errorf("requests that A&AI takes only in part: %q", v)
		}
	})
	s := d.step("the test")
	for _, path := range []string{p.vnf.regionPath(), p.vnf.tenantPath()} {
		body := map[string]any{}
		if path == p.vnf.tenantPath() {
			body["tenant-name"] = "edge"
		}
		if err := s.ensure(t.Context(), path, body); err != nil {
			t.Fatal(err)
		}
	}
	d.Journal()
	return d, p
}

// ServeHTTP is the service's broker.
func (p *plugin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	form := "item"
	if strings.HasSuffix(r.URL.Path, "/infra_workload") {
		form = "all"
	}
	status, body := p.respond(r, r.Method+" "+form)
	if o, has := p.overrides[r.Method+" "+form]; has {
		status, body = o.status, o.body
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func (p *plugin) respond(r *http.Request, request string) (int, string) {
	state := func(id, status string) string {
		return fmt.Sprintf(`{"template_type":"heat","workload_id":%q,"workload_status":%q,"workload_status_reason":null}`, id, status)
	}
	switch {
	case request == "GET all":
		return http.StatusOK, `{"template_type":"heat","workload_id":"","workload_status":"GET_COMPLETE","workload_status_reason":{"stacks":[]}}`
	case request == "POST all":
		p.there = true
		p.relate(r, p.objects)
		return http.StatusCreated, `{"template_type":"heat","workload_id":"` + fakeID + `","workload_status":"CREATE_IN_PROGRESS","template_response":` + response(p.objects) + `}`
	case !p.there:
		return http.StatusNotFound, "Error finding master table"
	case request == "GET item":
		if p.polls++; p.polls < 3 {
			return http.StatusOK, state(fakeID, "CREATE_IN_PROGRESS")
		}
		return http.StatusOK, state(fakeID, "CREATE_COMPLETE")
	case request == "POST item":
		return http.StatusAccepted, ""
	default:
		p.there = false
		for _, one := range p.objects {
			if err := p.aai.step("the service").remove(r.Context(), p.entry(one)); err != nil {
				p.t.Error(err)
			}
		}
		return http.StatusNoContent, ""
	}
}

func response(objects []string) string {
	var out []any
	for _, one := range objects {
		kind, name, _ := strings.Cut(one, " ")
		out = append(out, map[string]any{"Name": name, "GVK": map[string]string{"Kind": kind}})
	}
	text, _ := json.Marshal(out)
	return string(text)
}

func (p *plugin) entry(one string) string {
	return p.vnf.tenantPath() + "/k8s-resources/k8s-resource/" + strings.ReplaceAll(one, " ", "-")
}

// relate writes objects into A&AI.
func (p *plugin) relate(r *http.Request, objects []string) {
	s := p.aai.step("the service")
	for _, one := range objects {
		kind, name, _ := strings.Cut(one, " ")
		body := map[string]any{"name": name, "group": "", "version": "v1", "kind": kind, "namespace": "", "selflink": ""}
		body["relationship-list"] = map[string]any{"relationship": []any{related(p.vnf.path()), related(p.vnf.modulePath())}}
		if err := s.change(r.Context(), http.MethodPut, p.entry(one), body); err != nil {
			p.t.Error(err)
		}
	}
}

// TestHeat runs the flow against a service that is right.
func TestHeat(t *testing.T) {
	t.Parallel()
	d, p := newFlow(t)
	if err := d.Heat(t.Context(), p.vnf); err != nil {
		t.Fatal(err)
	}
	steps := map[string]bool{}
	for _, e := range d.Journal() {
		if steps[e.Step] = true; e.Status == 0 {
			t.Errorf("%s: %s %s has no response", e.Step, e.Method, e.URL)
		}
	}
	if len(steps) != 6 {
		t.Errorf("the journal has the steps %v", steps)
	}
}

// TestHeatIsStrict runs the flow against services that are wrong in one response.
func TestHeatIsStrict(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		request  string // overridden
		response override
		extra    string // object that A&AI has in addition
		want     string // in the error
	}{
		"exists":     {"a stack with the name must not exist", "GET all", override{200, `{"template_type":"heat","workload_id":"x","workload_status":"CREATE_COMPLETE","workload_status_reason":null}`}, "", "SO creates the stack: GET"},
		"created":    {"only 201 is a creation", "POST all", override{200, `{"workload_id":"x"}`}, "", "status 200, want [201]"},
		"no id":      {"a stack has an id", "POST all", override{201, `{}`}, "", "no workload_id"},
		"field":      {"an unknown field is a failure", "GET item", override{200, `{"workload_id":"` + fakeID + `","workload_status":"CREATE_COMPLETE","progress":1}`}, "", `unknown field "progress"`},
		"failed":     {"SO deletes a stack that has failed", "GET item", override{200, `{"template_type":"heat","workload_id":"` + fakeID + `","workload_status":"CREATE_FAILED","workload_status_reason":null}`}, "", "CREATE_FAILED, so SO deletes"},
		"update":     {"only 202 is understood", "POST item", override{200, ""}, "", "SO has A&AI updated: POST"},
		"deleted":    {"200 is not a deletion", "DELETE item", override{200, ""}, "", "SO deletes the stack: DELETE"},
		"additional": {"A&AI has an object that the stack does not have", "", override{}, "Secret other", "has Secret other in addition"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, p := newFlow(t)
			d.cfg.Limit = 2 * time.Second
			if tc.request != "" {
				p.overrides[tc.request] = tc.response
			}
			if tc.extra != "" {
				d.Script(Fault{Method: http.MethodPost, Path: "infra_workload/" + fakeID, Before: func() {
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
					p.relate(req, []string{tc.extra})
				}})
			}
			err := d.Heat(t.Context(), p.vnf)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestClearIsStrict rejects a service that says that an instance is gone while A&AI relates
// its objects, and another writer between SO's GET and DELETE.
func TestClearIsStrict(t *testing.T) {
	t.Parallel()
	d, p := newFlow(t)
	if err := d.Plan(t.Context(), p.vnf); err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	p.relate(req, p.objects)
	var differs *Difference
	if err := d.Clear(t.Context(), p.vnf); !errors.As(err, &differs) || !strings.Contains(differs.What, "still relates 2 objects") {
		t.Errorf("SO deletes a vf-module with objects: %v", err)
	}
	s := d.step("the service")
	for _, one := range p.objects {
		if err := s.remove(t.Context(), p.entry(one)); err != nil {
			t.Fatal(err)
		}
	}
	d.Script(Fault{Method: http.MethodDelete, Path: "vf-module", Before: func() {
		if err := s.change(t.Context(), http.MethodPatch, p.vnf.modulePath(), map[string]any{"operational-status": "x"}); err != nil {
			t.Error(err)
		}
	}})
	if err := d.Clear(t.Context(), p.vnf); !errors.As(err, &differs) || !strings.Contains(differs.What, "status 412") {
		t.Errorf("SO deletes a vf-module that another client has changed: %v", err)
	}
	if err := d.Clear(t.Context(), p.vnf); err != nil {
		t.Fatal(err)
	}
}

// TestBackOut runs a flow whose stack cannot be created, and again: the first run has left
// nothing. SO's objects of another run are a failure that says so.
func TestBackOut(t *testing.T) {
	t.Parallel()
	d, p := newFlow(t)
	p.overrides["GET all"] = override{http.StatusInternalServerError, "no"}
	if err := d.Heat(t.Context(), p.vnf); err == nil || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("the failure is %v", err)
	}
	if err := d.step("the test").gone(t.Context(), []string{p.vnf.modulePath(), p.vnf.path(), p.vnf.servicePath()}); err != nil {
		t.Error(err)
	}
	delete(p.overrides, "GET all")
	if err := d.Heat(t.Context(), p.vnf); err != nil {
		t.Error(err)
	}
	if err := d.Plan(t.Context(), p.vnf); err != nil {
		t.Fatal(err)
	}
	var differs *Difference
	if err := d.Plan(t.Context(), p.vnf); !errors.As(err, &differs) || !strings.Contains(differs.What, "A&AI has it already") {
		t.Errorf("SO plans a VNF twice: %v", err)
	}
}

// TestNew rejects URLs that SO cannot use.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "ftp://a", "http://", "a:b"} {
		if _, err := New(Config{Service: Server{URL: url}, AAI: Server{URL: "http://a"}}); err == nil {
			t.Errorf("%q is a URL", url)
		}
	}
}
