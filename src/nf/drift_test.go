package nf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestDriftIgnore(t *testing.T) {
	web := nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "web"}
	const image = "spec.template.spec.containers[name=web].image"
	cases := map[string]struct {
		reason string
		ignore nf.DriftIgnore
		path   string
		want   bool
	}{
		"Same":         {"the field itself", nf.DriftIgnore{Path: "spec.replicas"}, "spec.replicas", true},
		"Below":        {"a field below", nf.DriftIgnore{Path: "spec.template"}, image, true},
		"Above":        {"a field above", nf.DriftIgnore{Path: image}, "spec.template", false},
		"Prefix":       {"a name that begins alike", nf.DriftIgnore{Path: "spec.rep"}, "spec.replicas", false},
		"Item":         {"an item of a list", nf.DriftIgnore{Path: "spec.template.spec.containers[name=web]"}, image, true},
		"Other item":   {"another item", nf.DriftIgnore{Path: "spec.template.spec.containers[name=db]"}, image, false},
		"Any item":     {"any item", nf.DriftIgnore{Path: "spec.template.spec.containers[*].image"}, image, true},
		"Any name":     {"any name", nf.DriftIgnore{Path: "*.replicas"}, "spec.replicas", true},
		"Brackets":     {"a name with dots", nf.DriftIgnore{Path: "metadata.labels[a.b/c]"}, "metadata.labels[a.b/c]", true},
		"Kind":         {"objects of a kind", nf.DriftIgnore{Object: "deployment", Path: "spec"}, image, true},
		"Group":        {"and of a group", nf.DriftIgnore{Object: "Deployment.apps", Path: "spec"}, image, true},
		"Other group":  {"not of another one", nf.DriftIgnore{Object: "Deployment.example.org", Path: "spec"}, image, false},
		"Object":       {"one object", nf.DriftIgnore{Object: "Deployment/web", Path: "spec"}, image, true},
		"Namespaced":   {"with its namespace", nf.DriftIgnore{Object: "Deployment/ns/web", Path: "spec"}, image, true},
		"Other object": {"not another one", nf.DriftIgnore{Object: "Deployment/db", Path: "spec"}, image, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.ignore.Covers(web, tc.path); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}

// FuzzPathKeys is about paths that callers give.
func FuzzPathKeys(f *testing.F) {
	for _, seed := range []string{"spec.replicas", "a[b.c/d].e", "a[", "a]b", "[]", "..", "[*].x", "a[b][c]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		keys := nf.PathKeys(path)
		if len(strings.Join(keys, "")) > len(path) {
			t.Errorf("%q has keys %q", path, keys)
		}
		if len(keys) > 0 && !(nf.DriftIgnore{Path: path}).Covers(nf.Ref{}, path) {
			t.Errorf("%q does not cover itself", path)
		}
	})
}

func TestCorrections(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a, b := nf.Ref{Kind: "A", Name: "a"}, nf.Ref{Kind: "B", Name: "b"}
	var all []nf.Correction
	for n := range nf.MostCorrections {
		due, ok := nf.CorrectionOf(all, a).Due()
		if !ok || n > 0 && due != at.Add(nf.CorrectionPause<<(n-1)) {
			t.Errorf("after %d corrections: %v, %v", n, due, ok)
		}
		if n > 0 {
			at = due
		}
		all = nf.CountCorrections(all, []nf.Ref{a}, at)
	}
	if _, ok := nf.CorrectionOf(all, a).Due(); ok {
		t.Error("the object is not contested")
	}
	all = nf.CountCorrections(all, []nf.Ref{b}, at)
	later := at.Add(nf.CorrectionMemory)
	want := []nf.Correction{{Ref: a, Times: nf.MostCorrections, Last: at}, {Ref: b, Times: 1, Last: later}}
	if diff := cmp.Diff(want, nf.CountCorrections(all, []nf.Ref{b}, later)); diff != "" {
		t.Errorf("after an hour, the count starts again, but a contested object stays so (-want +got):\n%s", diff)
	}
}

func TestDriftPolicy(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy nf.DriftPolicy
		field  string // of the violation; empty: none
	}{
		"None":    {"no policy", nf.DriftPolicy{}, ""},
		"All":     {"mode and paths", nf.DriftPolicy{Mode: nf.DriftCorrect, Ignore: []nf.DriftIgnore{{Object: "Deployment/web", Path: "spec.replicas"}}}, ""},
		"Mode":    {"an unknown mode", nf.DriftPolicy{Mode: "fix"}, "drift.mode"},
		"Empty":   {"no path", nf.DriftPolicy{Ignore: []nf.DriftIgnore{{}}}, "drift.ignore[0].path"},
		"Pointer": {"a JSON pointer", nf.DriftPolicy{Ignore: []nf.DriftIgnore{{Path: "/spec/replicas"}}}, "drift.ignore[0].path"},
		"Object":  {"an object without a name", nf.DriftPolicy{Ignore: []nf.DriftIgnore{{Object: "Deployment/", Path: "spec"}}}, "drift.ignore[0].object"},
		"Many":    {"too many", nf.DriftPolicy{Ignore: make([]nf.DriftIgnore, 65)}, "drift.ignore"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := nf.ViolationsOf(nf.Spec{Package: "p", Drift: tc.policy}.Validate())
			if (len(v) == 0) != (tc.field == "") || len(v) > 0 && v[0].Field != tc.field {
				t.Errorf("%s: %v", tc.reason, v)
			}
		})
	}
}
