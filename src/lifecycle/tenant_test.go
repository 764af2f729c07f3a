package lifecycle_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// apart keeps projects apart, as access rules do.
func apart(c *config) { c.Apart = true }

// placed puts objects into namespaces, by name.
func placed(places map[string]any) map[string]any { return map[string]any{"namespaces": places} }

// TestTenants asks for instances of project blue in a region that has namespaces
// of all sorts.
func TestTenants(t *testing.T) {
	t.Parallel()
	blue := map[string]nf.Tenant{"blue": {Namespaces: []string{"kube-system", "mon-*"}, ClusterKinds: []string{"wide"}}}
	in := func(namespace string) nf.InstantiateRequest {
		return nf.InstantiateRequest{Project: "blue", Region: "east", Namespace: namespace, Spec: nf.Spec{Package: "a"}}
	}
	opening := func(namespace string, opened ...string) nf.InstantiateRequest {
		req := in(namespace)
		req.Package, req.Namespaces = "a-b", opened
		req.Inputs.Parameters = placed(map[string]any{"b": "kube-system"})
		return req
	}
	wide := in("new")
	wide.Package = "a-wide.w"
	opened := opening("new")
	opened.Package = "b"
	space := in("new")
	space.Package, space.Namespaces = "a-Namespace.reds", []string{"reds"}
	unopened := in("new")
	unopened.Package = "a-Namespace.mon"
	cases := map[string]struct {
		reason  string
		tenants map[string]nf.Tenant
		whole   bool
		req     nf.InstantiateRequest
		kind    nf.Kind // 0: it comes up
		want    []string
	}{
		"New":            {reason: "the service makes a namespace that is not there", req: in("new")},
		"Own":            {reason: "the service made it for the project", req: in("blues")},
		"Another's":      {reason: "the service made it for another project", req: in("reds"), kind: nf.Forbidden, want: []string{"namespace: ", `namespaces: ["reds"]`, "project blue"}},
		"Foreign":        {reason: "another client created it", req: in("kube-system"), kind: nf.Forbidden, want: []string{"namespace: ", `namespaces: ["kube-system"]`}},
		"Granted":        {reason: "the region grants it", tenants: blue, req: in("kube-system")},
		"Pattern":        {reason: "a pattern grants it", tenants: blue, req: in("mon-1")},
		"To another":     {reason: "the region grants it to another project", tenants: map[string]nf.Tenant{"red": {Namespaces: []string{"*"}}}, req: in("kube-system"), kind: nf.Forbidden},
		"To all":         {reason: "the region grants it to every project", tenants: map[string]nf.Tenant{nf.AnyProject: {Namespaces: []string{"*"}}}, req: in("kube-system")},
		"Not apart":      {reason: "without access rules one project owns everything", whole: true, req: in("reds")},
		"Not opened":     {reason: "an object names a namespace that is not the instance's", tenants: blue, req: opening("new"), kind: nf.Invalid, want: []string{"list:2: ConfigMap kube-system/b", `"namespaces" of the request or of the package`}},
		"Opened":         {reason: "the request opens it", tenants: blue, req: opening("new", "kube-system")},
		"By the package": {reason: "the package opens it", tenants: blue, req: opened},
		"Opened, denied": {reason: "the request opens what the project may not use", req: opening("new", "kube-system"), kind: nf.Forbidden, want: []string{"namespaces: ", `namespaces: ["kube-system"]`}},
		"Namespace":      {reason: "an object is a namespace that was made for another project", req: space, kind: nf.Forbidden, want: []string{"namespaces: ", `namespaces: ["reds"]`}},
		"Not its own":    {reason: "an object is a namespace that is not opened", tenants: blue, req: unopened, kind: nf.Invalid, want: []string{"list:2: Namespace mon", `"namespaces" of the request`}},
		"Kind":           {reason: "a cluster-scoped kind is not granted", req: wide, kind: nf.Forbidden, want: []string{"list:2: wide w", `cluster_kinds: ["wide"]`}},
		"Kind, granted":  {reason: "a cluster-scoped kind is granted", tenants: blue, req: wide},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.namespaces = map[string]nf.Namespace{
					"kube-system": {}, "mon-1": {}, "reds": {Created: true, Project: "red"}, "blues": {Created: true, Project: "blue"},
				}
				s.catalog.tenants, s.catalog.opened = tc.tenants, map[string][]string{"b": {"kube-system"}}
				e := s.start(func(c *config) { c.Apart = !tc.whole })
				op, err := e.Instantiate(t.Context(), tc.req)
				if tc.kind != 0 {
					if nf.KindOf(err) != tc.kind || tc.kind == nf.Forbidden && nf.ReasonOf(err) != nf.ReasonTenant {
						t.Errorf("%s: %v", tc.reason, err)
					}
					for _, part := range tc.want {
						if err == nil || !strings.Contains(err.Error(), part) {
							t.Errorf("%s: %v, want %s in it", tc.reason, err, part)
						}
					}
					if asked := s.cluster.asked("apply", "ensure namespace"); len(asked) > 0 || len(s.records()) > 0 {
						t.Errorf("%s: refused, and yet touched: %v, %v", tc.reason, asked, s.records())
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: %+v", tc.reason, op.Failure)
				}
			})
		})
	}
}

// TestGrantsThatEnd checks that the namespace which another project got first is
// not entered, though it was free when the request was accepted.
func TestGrantsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(apart)
		s.cluster.before = func(call string) {
			if call == "ensure namespace new" {
				s.cluster.namespaces["new"] = nf.Namespace{Created: true, Project: "red"}
			}
		}
		op := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Project, r.Namespace = "blue", "new" })
		s.wantDenied(t, op)
	})
}

// TestKindGrantsThatEnd checks that an operation which waits makes no object of a
// cluster-scoped kind whose grant is revoked in the meantime.
func TestKindGrantsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.catalog.tenants = map[string]nf.Tenant{"blue": {ClusterKinds: []string{"wide"}}}
		e := s.start(apart)
		s.cluster.before = func(call string) {
			if strings.HasPrefix(call, "dry-run") {
				s.catalog.tenants = nil
			}
		}
		op := e.up(t, "a-wide.w", func(r *nf.InstantiateRequest) { r.Project, r.Namespace = "blue", "new" })
		s.wantDenied(t, op)
	})
}

// TestTestsStayWithinGrants checks that tests make nothing in a namespace that
// the project may no longer use.
func TestTestsStayWithinGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.catalog.tenants = map[string]nf.Tenant{"blue": {Namespaces: []string{"mon"}}}
		s.cluster.namespaces = map[string]nf.Namespace{"mon": {}}
		e := s.start(apart)
		first := e.up(t, "a-probe.p", func(r *nf.InstantiateRequest) {
			opening("p", "mon")(r)
			r.Project, r.Namespace = "blue", "new"
		})
		s.catalog.tenants, s.cluster.calls = nil, nil
		op, err := e.Test(t.Context(), first.Subject.ID, nf.TestRequest{})
		if err != nil {
			t.Fatal(err)
		}
		s.wantDenied(t, e.end(t, op))
	})
}

// wantDenied expects that an operation failed because the project lacks a grant,
// and that nothing was applied.
func (s *site) wantDenied(t *testing.T, op nf.Operation) {
	t.Helper()
	if op.Failure == nil || op.Failure.Kind != nf.Forbidden || op.Failure.Reason != nf.ReasonTenant {
		t.Errorf("operation: %+v", op.Failure)
	}
	if asked := s.cluster.asked("apply"); len(asked) > 0 {
		t.Errorf("objects were applied: %v", asked)
	}
}

// opening opens further namespaces and puts an object into the first one.
func opening(object string, namespaces ...string) func(*nf.InstantiateRequest) {
	return func(r *nf.InstantiateRequest) {
		r.Namespaces = namespaces
		r.Inputs.Parameters = placed(map[string]any{object: namespaces[0]})
	}
}

// TestWindow holds what templates find in a region.
func TestWindow(t *testing.T) {
	t.Parallel()
	secrets := map[string]nf.Tenant{"blue": {Namespaces: []string{"open"}}}
	cases := map[string]struct {
		reason  string
		tenants map[string]nf.Tenant
		lookup  string
		preview bool
		opts    nf.Options
		want    string // that the object repeats
		warning string
	}{
		"Granted":        {reason: "the project may use the namespace", tenants: secrets, lookup: "open/s", want: "b3BlbnNlc2FtZQ=="},
		"Not granted":    {reason: "the project may not use the namespace", lookup: "open/s", warning: "namespace open of cloud region east, which project blue may not use"},
		"Own":            {reason: "the service made it for the project", lookup: "blues/s", want: "Ymx1ZQ=="},
		"All":            {reason: "of all Secrets, those where the project may look", lookup: "/", want: "Ymx1ZQ=="},
		"Preview":        {reason: "a dry run shows no values", preview: true, opts: nf.Options{Secrets: true}, lookup: "blues/s", want: "KioqKioqKio="},
		"Preview, hides": {reason: "a dry run for a caller that may not instantiate", preview: true, lookup: "blues/s", warning: "because the caller may not make the change"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.catalog.tenants = tc.tenants
				s.cluster.namespaces = map[string]nf.Namespace{"open": {}, "blues": {Created: true, Project: "blue"}, "reds": {Created: true, Project: "red"}}
				s.cluster.lookups = secretsIn(map[string]string{"open": "b3BlbnNlc2FtZQ==", "blues": "Ymx1ZQ==", "reds": "cmVk"})
				e := s.start(apart)
				req := nf.InstantiateRequest{Project: "blue", Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"}, Options: tc.opts}
				req.Inputs.Parameters = map[string]any{"lookup": tc.lookup}
				if tc.preview {
					preview, err := e.PreviewInstantiate(t.Context(), req)
					if err != nil {
						t.Fatal(err)
					}
					checkWarning(t, preview.Warnings, tc.warning)
					if got := size(s.cluster.diffed[0]); got != tc.want {
						t.Errorf("%s: the template found %q, want %q", tc.reason, got, tc.want)
					}
					return
				}
				op, err := e.Instantiate(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				checkWarning(t, e.end(t, op).Warnings, tc.warning)
				if got := s.sizes()["a"]; got != tc.want {
					t.Errorf("%s: the template found %q, want %q", tc.reason, got, tc.want)
				}
			})
		})
	}
}

func checkWarning(t *testing.T, warnings []string, want string) {
	t.Helper()
	if all := strings.Join(warnings, "\n"); want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
}

// secretsIn returns what lookups find of a Secret s in each of the namespaces.
func secretsIn(values map[string]string) map[string]map[string]any {
	out, items := map[string]map[string]any{}, []any{}
	for namespace, value := range values {
		secret := map[string]any{"metadata": map[string]any{"namespace": namespace, "name": "s"}, "data": map[string]any{"key": value}}
		out["Secret "+namespace+"/s"], items = secret, append(items, secret)
	}
	out["Secret "] = map[string]any{"items": items}
	return out
}

// TestReadSecretsAreNotTold checks that nothing repeats what a template read: no
// failure, no record of it, no log line, and no difference to what is there.
func TestReadSecretsAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSite(t)
		s.cluster.lookups = secretsIn(map[string]string{"ns": "b3BlbnNlc2FtZQ=="})
		e := s.start(func(c *config) { c.Work.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		s.cluster.refuse("a", nf.E(nf.Invalid, "apply", "ConfigMap ns/a", nf.Violations{{Object: configMap("a"), Field: "data.size", Message: `invalid value "b3BlbnNlc2FtZQ==" `}}))
		reading := map[string]any{"lookup": "ns/s"}
		op := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Inputs.Parameters, r.OnFailure = reading, nf.Keep })

		s.cluster.refuse("a", nil)
		if again, err := e.Retry(t.Context(), op.ID, nf.Options{}); err != nil || e.end(t, again).State != nf.Succeeded {
			t.Fatalf("retry: %v", err)
		}
		s.cluster.diff = []nf.Field{{Path: "data.size", Old: "b3BlbnNlc2FtZQ==", New: "x"}}
		preview, err := e.PreviewUpgrade(t.Context(), op.Subject.ID, change("a", "x"))
		if err != nil {
			t.Fatal(err)
		}
		in, err := store.NewTable[nf.Instance](s.kv, "instances/", "VNF instance").Get(t.Context(), op.Subject.ID)
		if diff := cmp.Diff([]string{"b3BlbnNlc2FtZQ=="}, in.Hidden); diff != "" || err != nil {
			t.Errorf("what is hidden: %v (-want +got):\n%s", err, diff)
		}
		e.stop() // the log is whole
		for where, text := range map[string]string{
			"failure": op.Failure.Message + op.Failure.Violations.Error(), "log": log.String(), "preview": preview.Changes[0].Fields[0].Old.(string),
		} {
			if strings.Contains(text, "b3BlbnNlc2FtZQ==") || where != "log" && !strings.Contains(text, nf.Masked) {
				t.Errorf("the %s says: %s", where, text)
			}
		}
	})
}
