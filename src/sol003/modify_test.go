package sol003_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// renamed has another flavor in the second package than in the others.
type renamed struct{ scripted }

// Topology implements sol003.Descriptors.
func (r renamed) Topology(ctx context.Context, pkg string) (tosca.Topology, error) {
	t, err := r.scripted.Topology(ctx, pkg)
	if pkg == "two" {
		f := t.Flavors["simple"]
		f.ID, f.Scripts = "other", nil
		t.Flavors = map[string]tosca.Flavor{"other": f}
	}
	return t, err
}

func secondPackage() nf.ModifyVNFRequest { return nf.ModifyVNFRequest{VNFD: new("vnfd-2")} }

// TestModifiedPackage gives an instantiated VNF another package, which takes effect at the
// next instantiation.
func TestModifiedPackage(t *testing.T) {
	cases := map[string]struct {
		reason  string
		request func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error)
	}{
		"Terminate": {"a termination has the scripts of the package that runs", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			return m.Terminate(ctx, id, nf.TerminateVNFRequest{})
		}},
		"Scale": {"a scaling has its aspects", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", VNFRequest: scriptHosts()})
		}},
		"Heal": {"a healing has its components", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			v, err := m.VNF(ctx, id)
			if err != nil {
				return nf.Occurrence{}, err
			}
			return m.Heal(ctx, id, nf.HealVNFRequest{VNFCs: []string{v.Instantiated.VNFCs[0].ID()}})
		}},
		"Connect": {"a change of the networks keeps it", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			return m.Connect(ctx, id, nf.ConnectVNFRequest{Networks: []nf.Attachment{{Network: "oam", Workload: "web", Point: "CP1"}}})
		}},
		"Modify": {"so does another modification", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			return m.Modify(ctx, id, nf.ModifyVNFRequest{Metadata: map[string]any{"a": "b"}})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t, func(c *config) {
					c.Hooks, c.Descriptors, c.Granter = &hooks{failures: map[string]int{}}, renamed{scripted{w}}, w
				})
				ctx, id := t.Context(), create(t, m)
				request := func(flavor string) func() (nf.Occurrence, error) {
					return func() (nf.Occurrence, error) {
						return m.Instantiate(ctx, id, nf.InstantiateVNFRequest{Flavor: flavor, VNFRequest: scriptHosts()})
					}
				}
				do(t, m, nf.OccurrenceCompleted, request("simple"))
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Modify(ctx, id, secondPackage()) })
				before := *w.engine.instances[id]
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return tc.request(ctx, m, id) })
				if name != "Terminate" {
					if in := w.engine.instances[id]; before.Package != "one" || in.Package != "one" {
						t.Errorf("%s: the instance has the package %s, and then %s", tc.reason, before.Package, in.Package)
					}
					<-time.After(time.Hour) // stale holds are dropped
					_, err := w.packages(w.kv).Remove(ctx, "one")
					wantKind(t, "the package that runs is held", err, nf.Conflict)
					do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
				}
				_, err := w.packages(w.kv).Remove(ctx, "one")
				must(t, err)
				_, err = w.packages(w.kv).Remove(ctx, "two")
				wantKind(t, "the package of the next instantiation is held", err, nf.Conflict)
				do(t, m, nf.OccurrenceCompleted, request("other"))
				if in := w.engine.instances[id]; in.Package != "two" {
					t.Errorf("the next instantiation has the package %s", in.Package)
				}
			})
		})
	}
}

// TestModifiedValues has the examples of RFC 7396, appendix A, one level below the top. Only
// at the top, no values are nil.
func TestModifiedValues(t *testing.T) {
	cases := map[string]struct{ reason, before, patch, want string }{
		"Replace":      {"a text replaces a text", `{"a":"b"}`, `{"a":"c"}`, `{"x":{"a":"c"}}`},
		"Add":          {"a new name is added", `{"a":"b"}`, `{"b":"c"}`, `{"x":{"a":"b","b":"c"}}`},
		"DeleteLast":   {"an object without its last name is empty", `{"a":"b"}`, `{"a":null}`, `{"x":{}}`},
		"Delete":       {"null deletes", `{"a":"b","b":"c"}`, `{"a":null}`, `{"x":{"b":"c"}}`},
		"ListToText":   {"a text replaces a list", `{"a":["b"]}`, `{"a":"c"}`, `{"x":{"a":"c"}}`},
		"TextToList":   {"a list replaces a text", `{"a":"c"}`, `{"a":["b"]}`, `{"x":{"a":["b"]}}`},
		"Inner":        {"objects are merged at any depth", `{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"x":{"a":{"b":"d"}}}`},
		"List":         {"a list replaces a list", `{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"x":{"a":[1]}}`},
		"Lists":        {"as a whole", `["a","b"]`, `["c","d"]`, `{"x":["c","d"]}`},
		"ObjectToList": {"a list replaces an object", `{"a":"b"}`, `["c"]`, `{"x":["c"]}`},
		"All":          {"nothing is left", `{"a":"foo"}`, `null`, `null`},
		"ObjectToText": {"a text replaces an object", `{"a":"foo"}`, `"bar"`, `{"x":"bar"}`},
		"Null":         {"null in the values stays", `{"e":null}`, `{"a":1}`, `{"x":{"a":1,"e":null}}`},
		"ListToObject": {"an object replaces a list, without its nulls", `[1,2]`, `{"a":"b","c":null}`, `{"x":{"a":"b"}}`},
		"InnerNull":    {"an object whose names are all deleted is empty", `{}`, `{"a":{"bb":{"ccc":null}}}`, `{"x":{"a":{"bb":{}}}}`},
		"Empty":        {"an empty patch changes nothing", `{"a":1}`, `{}`, `{"x":{"a":1}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				var before, patch map[string]any
				must(t, json.Unmarshal([]byte(`{"x":`+tc.before+`}`), &before))
				must(t, json.Unmarshal([]byte(`{"x":`+tc.patch+`}`), &patch))
				v, err := m.Create(t.Context(), nf.VNF{VNFD: nf.VNFD{ID: "vnfd-1"}, Metadata: before})
				must(t, err)
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
					return m.Modify(t.Context(), v.ID, nf.ModifyVNFRequest{Metadata: patch})
				})
				got, err := json.Marshal(get(t, m, v.ID).Metadata)
				must(t, err)
				if string(got) != tc.want {
					t.Errorf("%s: %s patched with %s is %s, want %s", tc.reason, tc.before, tc.patch, got, tc.want)
				}
			})
		})
	}
}

// TestModifiedConnections changes what a request says of a connection, and keeps the rest.
func TestModifiedConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		id := prepared(t, m, request{})
		before := get(t, m, id).VIMs[defaultVIM]
		for _, tc := range []struct {
			reason    string
			patch     nf.VIMConnectionRequest
			wantExtra map[string]any
		}{
			{"the key is enough", nf.VIMConnectionRequest{Extra: map[string]any{"a": "1", "b": "2"}}, map[string]any{"a": "1", "b": "2"}},
			{"further data that is not given stays", nf.VIMConnectionRequest{VIM: before.VIM}, map[string]any{"a": "1", "b": "2"}},
			{"further data is merged", nf.VIMConnectionRequest{VIM: before.VIM, Extra: map[string]any{"a": nil, "c": "3"}}, map[string]any{"b": "2", "c": "3"}},
		} {
			do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
				return m.Modify(t.Context(), id, nf.ModifyVNFRequest{VIMs: map[string]nf.VIMConnectionRequest{defaultVIM: tc.patch}})
			})
			want := before
			want.Extra = tc.wantExtra
			if diff := cmp.Diff(want, get(t, m, id).VIMs[defaultVIM]); diff != "" {
				t.Errorf("%s: the connection (-want +got):\n%s", tc.reason, diff)
			}
		}
	})
}

// defaultVIM is the key of the connection to the default VIM.
const defaultVIM = "default"

// TestModifiedPackageTakesEffect lets the package of a modification, and a third one, take
// effect by a change of the package, which may also be given up.
func TestModifiedPackageTakesEffect(t *testing.T) {
	cases := map[string]struct {
		reason string
		vnfd   string
		give   bool // it fails, and is given up
		held   map[string]bool
	}{
		"Change":  {"the VNF runs it", "vnfd-2", false, map[string]bool{"two": true}},
		"Another": {"neither the former package nor that of the modification is needed", "vnfd-5", false, map[string]bool{"five": true}},
		"Fail":    {"the VNF has the packages that it had", "vnfd-5", true, map[string]bool{"one": true, "two": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				must(t, w.packages(w.kv).Insert(t.Context(), "five", nf.Package{ID: "five", Digest: "sha256:0", Kind: "csar", VNFD: &nf.VNFD{ID: "vnfd-5"}}))
				m, _ := w.start(t)
				ctx, id := t.Context(), create(t, m)
				request := instantiate
				request.Extra = nil
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, request) })
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Modify(ctx, id, secondPackage()) })
				want := nf.OccurrenceCompleted
				if tc.give {
					w.engine.fail(map[nf.Verb]int{nf.Upgrade: 1})
					want = nf.OccurrenceFailedTemp
				}
				o := do(t, m, want, func() (nf.Occurrence, error) {
					return m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFD: tc.vnfd})
				})
				if tc.give {
					_, err := m.Fail(ctx, o.ID)
					must(t, err)
				}
				held := map[string]bool{}
				for _, pkg := range []string{"one", "two", "five"} {
					if _, err := w.packages(w.kv).Remove(ctx, pkg); nf.KindOf(err) == nf.Conflict && err != nil {
						held[pkg] = true
					}
				}
				if v := get(t, m, id); !maps.Equal(held, tc.held) || !tc.held[v.Running()] || !tc.held[v.Package] {
					t.Errorf("%s: it runs %s, its next instantiation uses %s, and the packages %v are held, want %v", tc.reason, v.Running(), v.Package, held, tc.held)
				}
			})
		})
	}
}
