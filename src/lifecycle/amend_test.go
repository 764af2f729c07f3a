package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// sizes returns the data of the objects that are in the region, by name.
func (s *site) sizes() map[string]string {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	out := map[string]string{}
	for _, o := range s.cluster.objects {
		out[o.object.GetName()] = size(o.object)
	}
	return out
}

func size(object *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(object.Object, "data", "size")
	return text
}

func amendments(all ...nf.Amendment) nf.ConfigureRequest {
	return nf.ConfigureRequest{Edit: func(s *nf.Spec) error { s.Amendments = all; return nil }}
}

func amendment(name, pkg, size string) nf.Amendment {
	return nf.Amendment{Name: name, Package: pkg, Inputs: nf.Inputs{Parameters: map[string]any{"size": size}}}
}

// TestRefusedPackage checks that what cannot be done is said once, with what it
// cannot be done to.
func TestRefusedPackage(t *testing.T) {
	t.Parallel()
	wrong := nf.Inputs{Parameters: map[string]any{"wrong": "replicas: is required"}}
	cases := map[string]struct {
		reason string
		spec   nf.Spec
		want   string
	}{
		"Rendered": {"a package that cannot be rendered", nf.Spec{Package: "a", Inputs: wrong}, "cannot render package a: list:1: replicas: is required"},
		"Ordered":  {"one that cannot be ordered", nf.Spec{Package: "a-a"}, `cannot order package a-a: list:2: ConfigMap "a" already exists, at list:1`},
		"Amended":  {"an amendment", nf.Spec{Package: "a", Amendments: []nf.Amendment{{Name: "x", Package: "b", Inputs: wrong}}}, `cannot amend with "x": cannot render package b: list:1: replicas: is required`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				_, err := s.start().Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: tc.spec})
				if nf.KindOf(err) != nf.Invalid || nf.ViolationsOf(err) == nil || err.Error() != tc.want {
					t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
				}
			})
		})
	}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "early.e_db_web", named, func(req *nf.InstantiateRequest) { req.Inputs.Parameters = map[string]any{"size": "s"} })
		in := e.only(t.Context())
		s.did()
		steps := []struct {
			reason string
			req    nf.ConfigureRequest
			want   map[string]string
		}{
			{"an object of the package is replaced, another is added", amendments(amendment("a", "db-cfg", "m")), map[string]string{"e": "s", "db": "m", "web": "s", "cfg": "m"}},
			{"of two amendments the later decides", amendments(amendment("a", "db-cfg", "m"), amendment("b", "db", "l")), map[string]string{"e": "s", "db": "l", "web": "s", "cfg": "m"}},
			{"one that goes leaves what was below it", amendments(amendment("b", "db", "l")), map[string]string{"e": "s", "db": "l", "web": "s"}},
			{"without any the instance is what it was", amendments(), map[string]string{"e": "s", "db": "s", "web": "s"}},
		}
		for _, tc := range steps {
			op, err := e.Configure(t.Context(), in.ID, tc.req)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if end := e.end(t, op); end.State != nf.Succeeded || end.Verb != nf.Configure {
				t.Fatalf("%s: ended %s %+v", tc.reason, end.State, end.Failure)
			}
			if diff := cmp.Diff(tc.want, s.sizes()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		}
		for _, call := range s.did() {
			if call == "apply [e]" {
				t.Error("a configuration has run hooks")
			}
		}
		op, err := e.Rollback(t.Context(), in.ID, nf.RollbackRequest{Revision: 3})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if diff := cmp.Diff([]nf.Amendment{amendment("a", "db-cfg", "m"), amendment("b", "db", "l")}, e.only(t.Context()).Amendments); diff != "" {
			t.Errorf("a rollback brings the amendments of its revision (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"e": "s", "db": "l", "web": "s", "cfg": "m"}, s.sizes()); diff != "" {
			t.Errorf("and what they made (-want +got)\n%s", diff)
		}
	})
}

// TestConfigureAfterAFailure does not take back an upgrade that failed after everything was
// applied. A configuration that failed is replaced by the next one.
func TestConfigureAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "db", named)
		id := e.only(t.Context()).ID
		s.cluster.script("l", nf.StatusFailed, "exit 1")
		req := change("db-cfg_late.l", "xl")
		req.NoWait = true
		if end := e.upgrade(t, id, req); end.State != nf.OperationFailed || end.Undoing {
			t.Fatalf("the upgrade ended %s, undoing %t", end.State, end.Undoing)
		}
		if _, err := e.Configure(t.Context(), id, amendments(amendment("a", "db", "m"))); nf.KindOf(err) != nf.Conflict || s.sizes()["cfg"] != "xl" {
			t.Errorf("after an upgrade that was kept: %v, and %v", err, s.sizes())
		}
		if op, err := e.Rollback(t.Context(), id, nf.RollbackRequest{Revision: 1}); err != nil || e.end(t, op).State != nf.Succeeded {
			t.Fatalf("the rollback: %v", err)
		}
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		kept := amendments(amendment("a", "db-bad", "m"))
		kept.OnFailure = nf.Keep
		if op, err := e.Configure(t.Context(), id, kept); err != nil || e.end(t, op).State != nf.OperationFailed {
			t.Fatalf("a configuration with an object that is refused: %v", err)
		}
		if op, err := e.Configure(t.Context(), id, amendments(amendment("a", "db", "l"))); err != nil || e.end(t, op).State != nf.Succeeded || s.sizes()["db"] != "l" {
			t.Errorf("after a configuration that was kept: %v, and %v", err, s.sizes())
		}
	})
}

func TestConfigureChangesNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "db", named)
		in := e.only(t.Context())
		_, err := e.Configure(t.Context(), in.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error { s.Package = "web"; return nil }})
		if nf.KindOf(err) != nf.Invalid {
			t.Errorf("another package gives %v", err)
		}
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		op, err := e.Configure(t.Context(), in.ID, amendments(amendment("a", "db-bad", "m")))
		if err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.OperationFailed {
			t.Errorf("it ended %s", end.State)
		}
		if now := e.only(t.Context()); now.State != nf.Ready || len(now.Amendments) != 0 || s.sizes()["db"] != "" {
			t.Errorf("a configuration that failed left %+v and %v", now, s.sizes())
		}
	})
}

func TestAmendmentsAreHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "db", named)
		in := e.only(t.Context())
		held := func() (out []string) {
			for what := range s.catalog.held() {
				if _, pkg, _ := strings.Cut(what, " "); pkg != "east" {
					out = append(out, pkg)
				}
			}
			slices.Sort(out)
			return out
		}
		steps := []struct {
			reason string
			req    nf.ConfigureRequest
			want   []string
		}{
			{"a package that amends is held as long as it does", amendments(amendment("a", "cfg", "m")), []string{"cfg", "db"}},
			{"and then let go of", amendments(amendment("b", "other", "m")), []string{"db", "other"}},
			{"down to the instance's own", amendments(), []string{"db"}},
		}
		for _, tc := range steps {
			op, err := e.Configure(t.Context(), in.ID, tc.req)
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
			if diff := cmp.Diff(tc.want, held()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		}
	})
}
