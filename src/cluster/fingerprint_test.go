package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestFingerprint has pairs of objects of two owners.
func TestFingerprint(t *testing.T) {
	of := func(user, id, name, namespace, text string) digest {
		u := objects(t, id, namespace, text)[0]
		return newFingerprinter(user, instance(id), []string{id, name, namespace}).of(u)
	}
	named := func(name, value string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `-web, labels: {app: ` + name + `}}, data: {"` + name + `.conf": "` + value + `", b: c}}`
	}
	const id, other = "0123456789abcdef", "fedcba9876543210"
	first := of("", id, "alpha", "blue-1", named("alpha", "alpha.blue-1.svc"))
	cases := map[string]struct {
		reason string
		same   bool
		second digest
	}{
		"same shape":      {"only names differ", true, of("", other, "gamma", "grey-2", named("gamma", "gamma.grey-2.svc"))},
		"itself":          {"nothing differs", true, of("", id, "alpha", "blue-1", named("alpha", "alpha.blue-1.svc"))},
		"length":          {"a longer name may be too long", false, of("", other, "gammas", "grey-2", named("gammas", "gammas.grey-2.svc"))},
		"punctuation":     {"a dot is not allowed everywhere", false, of("", other, "ga.ma", "grey-2", named("ga.ma", "ga.ma.grey-2.svc"))},
		"upper case":      {"capitals are not allowed everywhere", false, of("", other, "gamMa", "grey-2", named("gamMa", "gamMa.grey-2.svc"))},
		"leading digit":   {"the name of a Service may have to start with a letter", false, of("", other, "9amma", "grey-2", named("9amma", "9amma.grey-2.svc"))},
		"other value":     {"the content differs", false, of("", other, "gamma", "grey-2", named("gamma", "gamma.grey-2.srv"))},
		"within a word":   {"a longer word is another word", false, of("", other, "gamma", "grey-2", named("gamma", "gammas.grey-2.svc"))},
		"swapped names":   {"a selector must not match another label", false, of("", other, "gamma", "grey-2", named("gamma", "grey-2.gamma.svc"))},
		"user":            {"another user may have other webhooks", false, of("a", id, "alpha", "blue-1", named("alpha", "alpha.blue-1.svc"))},
		"fixed elsewhere": {"the name is not in the place of a name", false, of("", other, "gamma", "grey-2", named("gamma", "alpha.grey-2.svc"))},
	}
	for name, tc := range cases {
		if same := first == tc.second; same != tc.same {
			t.Errorf("%s: %s: same is %t", name, tc.reason, same)
		}
	}
}

// TestFingerprintOfShortNames has names that occur in strings by chance.
func TestFingerprintOfShortNames(t *testing.T) {
	of := func(name, value string) digest {
		u := &unstructured.Unstructured{Object: map[string]any{"cpu": value}}
		return newFingerprinter("", nf.Subject{}, []string{name}).of(u)
	}
	if of("m", "m") == of("x", "x") || of("1234", "1234") == of("5678", "5678") {
		t.Error("a name that is short or a number is kept, because it may have a meaning")
	}
	if of("name", "name") != of("else", "else") {
		t.Error("a longer name is replaced")
	}
}

// TestFingerprintKeepsTypes has values that look alike.
func TestFingerprintKeepsTypes(t *testing.T) {
	seen := map[digest]any{}
	for _, v := range []any{
		"1", int64(1), 1.0, true, "true", nil, "", []any{}, map[string]any{}, []any{"a", "b"}, []any{"ab"}, []any{[]any{"a"}, "b"}, []any{[]any{"a", "b"}},
		map[string]any{"a": "b"}, map[string]any{"a": map[string]any{"b": nil}}, []any{"a", "b", "c"}, []any{"text 1:a"},
	} {
		is := newFingerprinter("", nf.Subject{}, nil).of(&unstructured.Unstructured{Object: map[string]any{"v": v}})
		if other, twice := seen[is]; twice {
			t.Errorf("%#v and %#v have the same digest", v, other)
		}
		seen[is] = v
	}
}
