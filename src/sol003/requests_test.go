package sol003_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// request is a request for an occurrence.
type request struct {
	fresh bool // the VNF is not instantiated before
	make  func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error)
}

func common(key nf.RequestKey) nf.VNFRequest { return nf.VNFRequest{Key: key} }

func requests() map[string]request {
	return map[string]request{"instantiate": instantiation, "terminate": termination, "scale": scaling, "heal": healing, "change package": changing, "connect": connecting, "modify": modifying}
}

var (
	instantiation = request{true, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		req := instantiate
		req.Key = key
		return m.Instantiate(ctx, id, req)
	}}
	termination = request{false, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		return m.Terminate(ctx, id, nf.TerminateVNFRequest{VNFRequest: common(key)})
	}}
	scaling = request{false, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		return m.Scale(ctx, id, nf.ScaleVNFRequest{VNFRequest: common(key), Aspect: "front", Steps: 1})
	}}
	healing = request{false, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		return m.Heal(ctx, id, nf.HealVNFRequest{VNFRequest: common(key)})
	}}
	changing = request{false, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		return m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFRequest: common(key), VNFD: "vnfd-2"})
	}}
	connecting = request{false, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		return m.Connect(ctx, id, nf.ConnectVNFRequest{VNFRequest: common(key), Networks: []nf.Attachment{{Network: "oam", Workload: "web"}}})
	}}
	modifying = request{false, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		vnfd := "vnfd-2"
		return m.Modify(ctx, id, nf.ModifyVNFRequest{VNFRequest: common(key), VNFD: &vnfd})
	}}
)

// prepared returns a VNF that the request can be made for.
func prepared(t *testing.T, m *sol003.Manager, r request) string {
	t.Helper()
	id := create(t, m)
	if !r.fresh {
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, instantiate) })
	}
	return id
}

// described returns the package of a VNF, the number of its components, and the level of
// its aspect; empty if it is not instantiated.
func described(v nf.VNF) string {
	if v.Instantiated == nil {
		return ""
	}
	return fmt.Sprint(v.Package, " ", len(v.Instantiated.VNFCs), " ", v.Instantiated.Scale["front"])
}

// fail lets operations of the verbs fail.
func (e *engine) fail(verbs map[nf.Verb]int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.Copy(e.failures, verbs)
}

func (e *engine) setTakes(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.takes = d
}

// TestVIMs instantiates VNFs on VIMs that requests name in each way, and checks that no
// credential is stored.
func TestVIMs(t *testing.T) {
	cases := map[string]struct {
		reason string
		vims   map[string]nf.VIMConnectionRequest
		want   string // the region
	}{
		"Default": {"the default VIM", nil, "edge"},
		"ID":      {"by its id", map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "west"}.VIMID(), Extra: map[string]any{"a": "b"}}}, "west"},
		"Case":    {"its id in upper case", map[string]nf.VIMConnectionRequest{"vim1": {VIM: strings.ToUpper(nf.Region{ID: "west"}.VIMID())}}, "west"},
		"Server": {"a registered region with the server", map[string]nf.VIMConnectionRequest{"vim1": {
			Interface: map[string]any{"endpoint": "https://west:6443/"}, Access: map[string]any{"bearer_token": "s3cret"},
		}}, "west"},
		"Both": {"an id that no VIM has, with the server of one", map[string]nf.VIMConnectionRequest{"vim1": {
			VIM: "8343f55f-0000-4000-8000-000000000000", Interface: map[string]any{"endpoint": "https://west:6443"},
		}}, "west"},
		"First": {"an id precedes a server", map[string]nf.VIMConnectionRequest{"vim1": {
			VIM: nf.Region{ID: "edge"}.VIMID(), Interface: map[string]any{"endpoint": "https://west:6443"},
		}}, "edge"},
		"FirstCase": {"even in upper case", map[string]nf.VIMConnectionRequest{"vim1": {
			VIM: strings.ToUpper(nf.Region{ID: "edge"}.VIMID()), Interface: map[string]any{"endpoint": "https://west:6443"}, Access: map[string]any{"bearer_token": "s3cret"},
		}}, "edge"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				id, req := create(t, m), instantiate
				req.VIMs, req.Extra = tc.vims, map[string]any{"vdu_mapping": map[string]any{"VDU1": map[string]any{"name": "web"}}}
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, req) })
				if in := get(t, m, id).Instantiated; in.Region != tc.want || w.engine.instances[id].Region != tc.want || len(in.VNFCs) != 1 {
					t.Errorf("%s: the VNF is %+v", tc.reason, in)
				}
				for key, value := range w.records(t) {
					if strings.Contains(value, "s3cret") {
						t.Errorf("%s: %s has the credential", tc.reason, key)
					}
				}
			})
		})
	}
}

// TestRefused makes requests that are refused in advance, and checks that nothing was
// written.
func TestRefused(t *testing.T) {
	type call func(ctx context.Context, m *sol003.Manager, id string) error
	with := func(edit func(*nf.InstantiateVNFRequest)) call {
		return func(ctx context.Context, m *sol003.Manager, id string) error {
			req := instantiate
			edit(&req)
			_, err := m.Instantiate(ctx, id, req)
			return err
		}
	}
	extra := func(values map[string]any) call {
		return with(func(r *nf.InstantiateVNFRequest) { r.Extra = values })
	}
	vim := func(r nf.VIMConnectionRequest) call {
		return with(func(q *nf.InstantiateVNFRequest) { q.VIMs = map[string]nf.VIMConnectionRequest{"vim1": r} })
	}
	of := func(r request) call {
		return func(ctx context.Context, m *sol003.Manager, id string) error {
			_, err := r.make(ctx, m, id, nf.RequestKey{})
			return err
		}
	}
	created := func(v nf.VNF) call {
		return func(ctx context.Context, m *sol003.Manager, _ string) error { _, err := m.Create(ctx, v); return err }
	}
	scaled := func(r nf.ScaleVNFRequest) call {
		return func(ctx context.Context, m *sol003.Manager, id string) error {
			_, err := m.Scale(ctx, id, r)
			return err
		}
	}
	changed := func(r nf.ChangeVNFPackageRequest) call {
		return func(ctx context.Context, m *sol003.Manager, id string) error {
			_, err := m.ChangePackage(ctx, id, r)
			return err
		}
	}
	healed := func(r nf.HealVNFRequest) call {
		return func(ctx context.Context, m *sol003.Manager, id string) error {
			_, err := m.Heal(ctx, id, r)
			return err
		}
	}
	modified := func(r nf.ModifyVNFRequest) call {
		return func(ctx context.Context, m *sol003.Manager, id string) error {
			_, err := m.Modify(ctx, id, r)
			return err
		}
	}
	text := func(s string) *string { return &s }
	cases := map[string]struct {
		reason string
		fresh  bool // the VNF is not instantiated
		call   call
		want   nf.Kind
	}{
		"NoPackage":       {"no package has the descriptor", true, created(nf.VNF{VNFD: nf.VNFD{ID: "none"}}), nf.Unsupported},
		"Disabled":        {"a disabled package", true, created(nf.VNF{VNFD: nf.VNFD{ID: "vnfd-3"}}), nf.Unsupported},
		"Foreign":         {"a package of another project", true, created(nf.VNF{VNFD: nf.VNFD{ID: "vnfd-4"}}), nf.Unsupported},
		"Name":            {"a name with control characters", true, created(nf.VNF{Name: "a\x00", VNFD: nf.VNFD{ID: "vnfd-1"}}), nf.Invalid},
		"Twice":           {"it is instantiated", false, of(instantiation), nf.Conflict},
		"Flavor":          {"an unknown flavor", true, with(func(r *nf.InstantiateVNFRequest) { r.Flavor = "none" }), nf.Invalid},
		"Level":           {"an unknown level", true, with(func(r *nf.InstantiateVNFRequest) { r.Level = "none" }), nf.Invalid},
		"File":            {"a file that is not listed", true, extra(map[string]any{"lcm-kubernetes-def-files": []any{"Files/other.yaml"}}), nf.Invalid},
		"FileType":        {"a file that is a number", true, extra(map[string]any{"lcm-kubernetes-def-files": []any{7.0}}), nf.Invalid},
		"Namespace":       {"a name that no namespace has", true, extra(map[string]any{"namespace": "A_B"}), nf.Invalid},
		"NamespaceType":   {"a namespace that is a list", true, extra(map[string]any{"namespace": []any{}}), nf.Invalid},
		"VIM":             {"an unknown VIM", true, vim(nf.VIMConnectionRequest{VIM: "none"}), nf.NotFound},
		"Server":          {"an unknown server", true, vim(nf.VIMConnectionRequest{Interface: map[string]any{"endpoint": "https://none"}}), nf.NotFound},
		"OpenStack":       {"an OpenStack VIM", true, vim(nf.VIMConnectionRequest{VIM: nf.Region{ID: "stack"}.VIMID()}), nf.Unsupported},
		"Terminate":       {"it is not instantiated", true, of(termination), nf.Conflict},
		"Scale":           {"it is not instantiated", true, of(scaling), nf.Conflict},
		"Heal":            {"it is not instantiated", true, of(healing), nf.Conflict},
		"Connect":         {"it is not instantiated", true, of(connecting), nf.Conflict},
		"Package":         {"it is not instantiated", true, of(changing), nf.Conflict},
		"Aspect":          {"an unknown aspect", false, scaled(nf.ScaleVNFRequest{Aspect: "none", Steps: 1}), nf.Invalid},
		"Steps":           {"too many steps", false, scaled(nf.ScaleVNFRequest{Aspect: "front", Steps: 3}), nf.Invalid},
		"Below":           {"below level 0", false, scaled(nf.ScaleVNFRequest{In: true, Aspect: "front", Steps: 1}), nf.Invalid},
		"Component":       {"an unknown component", false, healed(nf.HealVNFRequest{VNFCs: []string{"VDU1-none"}}), nf.Invalid},
		"All":             {"a flag that is a text", false, healed(nf.HealVNFRequest{VNFRequest: nf.VNFRequest{Extra: map[string]any{"all": "yes"}}}), nf.Invalid},
		"NewPackage":      {"no package has the new descriptor", false, changed(nf.ChangeVNFPackageRequest{VNFD: "none"}), nf.Unsupported},
		"UpgradeType":     {"a type of upgrade that Tacker does not have", false, changed(nf.ChangeVNFPackageRequest{VNFD: "vnfd-2", VNFRequest: nf.VNFRequest{Extra: map[string]any{"upgrade_type": "BlueGreen"}}}), nf.Invalid},
		"NewFile":         {"a file that the new package does not list", false, changed(nf.ChangeVNFPackageRequest{VNFD: "vnfd-2", VNFRequest: nf.VNFRequest{Extra: map[string]any{"lcm-kubernetes-def-files": []any{"none"}}}}), nf.Invalid},
		"ModifyVNFD":      {"no package has the new descriptor", true, modified(nf.ModifyVNFRequest{VNFD: text("none")}), nf.Unsupported},
		"ModifyVIM":       {"a VIM of a VNF that is not instantiated", true, modified(nf.ModifyVNFRequest{VIMs: map[string]nf.VIMConnectionRequest{"a": {}}}), nf.Invalid},
		"ModifyMoved":     {"a VNF is not moved", false, modified(nf.ModifyVNFRequest{VIMs: map[string]nf.VIMConnectionRequest{"default": {VIM: nf.Region{ID: "west"}.VIMID()}}}), nf.Conflict},
		"ModifyComponent": {"an unknown component", false, modified(nf.ModifyVNFRequest{VNFCs: map[string]map[string]any{"none": {}}}), nf.Invalid},
		"Delete":          {"it is instantiated", false, func(ctx context.Context, m *sol003.Manager, id string) error { return m.Delete(ctx, id) }, nf.Conflict},
		"DeleteNone":      {"there is none", true, func(ctx context.Context, m *sol003.Manager, _ string) error { return m.Delete(ctx, "none") }, nf.NotFound},
		"None":            {"there is none", true, func(ctx context.Context, m *sol003.Manager, _ string) error { return of(termination)(ctx, m, "none") }, nf.NotFound},
		"NoOccurrence": {"there is none", true, func(ctx context.Context, m *sol003.Manager, _ string) error {
			_, err := m.Fail(ctx, "none")
			return errors.Join(err, m.Retry(ctx, "none", nf.RequestKey{}))
		}, nf.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				id := prepared(t, m, request{fresh: tc.fresh})
				before := w.records(t)
				wantKind(t, tc.reason, tc.call(t.Context(), m, id), tc.want)
				if diff := cmp.Diff(before, w.records(t)); diff != "" {
					t.Errorf("%s: something was written (-before +after):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestScaleCustomResource scales a VDU whose pods belong to a custom resource.
func TestScaleCustomResource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.engine.workload = nf.Ref{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment", Namespace: "default", Name: "web"}
		m, _ := w.start(t)
		for kind, scales := range map[string]bool{"MachineDeployment": true, "MachinePool": false, "": false} {
			id, req := create(t, m), instantiate
			req.Extra = maps.Clone(req.Extra)
			if kind != "" {
				req.Extra["vdu_mapping"] = map[string]any{"VDU1": map[string]any{"kind": kind, "name": "web"}}
			}
			do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, req) })
			step := nf.ScaleVNFRequest{Aspect: "front"}
			if !scales {
				_, err := m.Scale(t.Context(), id, step)
				wantKind(t, "vdu_mapping has the kind "+kind, err, nf.Unsupported)
				continue
			}
			do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Scale(t.Context(), id, step) })
			if n := w.engine.count(id); n != 2 { // the engine finds no other object
				t.Errorf("the custom resource has %d pods after a step, want 2", n)
			}
		}
	})
}
