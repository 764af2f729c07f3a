package cluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestDiff(t *testing.T) {
	c, ns := sandbox(t)
	deployment := func(image, more string) *unstructured.Unstructured {
		return objects(t, "vnf-1", ns, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {`+more+`}}, spec: {replicas: 0,
			selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "`+image+`"}]}}}}`)[0]
	}
	secret := func(data string) *unstructured.Unstructured {
		return objects(t, "vnf-1", ns, `{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {`+data+`}}`)[0]
	}
	mustApply(t, c, "vnf-1", deployment("i:1", "example.org/a: a"), secret("old: aHVudGVyMg=="), configMap(t, "vnf-1", ns, "same", "1"))

	nowhere := configMap(t, "vnf-1", ns+"-not", "nowhere", "1")
	changes, err := c.Diff(t.Context(), instance("vnf-1"), nf.AdoptionSelector{}, []*unstructured.Unstructured{
		deployment("i:2", "example.org/a: b"), secret("new: aHVudGVyMw=="), configMap(t, "vnf-1", ns, "same", "1"), configMap(t, "vnf-1", ns, "new", "1"), nowhere,
	})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "each object's change, also in a namespace that is not there", map[string]nf.Action{
		"web": nf.Configured, "s": nf.Configured, "same": nf.Unchanged, "new": nf.Created, "nowhere": nf.Created,
	}, actions(changes))
	diff(t, "what differs in the Deployment, without what the API server keeps", []nf.Field{
		{Path: "metadata.annotations[example.org/a]", Old: "a", New: "b"},
		{Path: "spec.template.spec.containers[0].image", Old: "i:1", New: "i:2"},
	}, withoutRevision(changes[0].Fields))
	diff(t, "values of a Secret are masked, names are not", []nf.Field{
		{Path: "data.new", New: nf.Masked}, {Path: "data.old", Old: nf.Masked},
	}, changes[1].Fields)
	if get(t, c, nf.RefOf(configMap(t, "vnf-1", ns, "new", "1"))) != nil {
		t.Error("a comparison must not create anything")
	}

	_, err = c.Diff(t.Context(), instance("vnf-1"), nf.AdoptionSelector{}, []*unstructured.Unstructured{deployment("", "")})
	wantKind(t, err, nf.Invalid)
	_, err = c.Diff(t.Context(), instance("vnf-2"), nf.AdoptionSelector{}, []*unstructured.Unstructured{configMap(t, "vnf-2", ns, "same", "1")})
	wantKind(t, err, nf.Conflict)
}

// withoutRevision leaves out what the Deployment's controller may or may not
// have written yet.
func withoutRevision(fields []nf.Field) []nf.Field {
	var out []nf.Field
	for _, f := range fields {
		if !strings.Contains(f.Path, "deployment.kubernetes.io") {
			out = append(out, f)
		}
	}
	return out
}

func TestDifferences(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		reason   string
		old, now object
		want     []nf.Field
	}{
		"kept by the server": {
			reason: "a field that the plan does not set is not a difference",
			old:    object{"metadata": object{"resourceVersion": "1", "uid": "a", "generation": int64(1)}, "status": object{"a": int64(1)}},
			now:    object{"metadata": object{"resourceVersion": "2", "uid": "b", "generation": int64(2)}, "status": object{"a": int64(2)}},
		},
		"added and removed": {
			reason: "a field that is absent is nil",
			old:    object{"a": "x"}, now: object{"b": object{"c": true}},
			want: []nf.Field{{Path: "a", Old: "x"}, {Path: "b", New: object{"c": true}}},
		},
		"lists": {
			reason: "members are compared by position",
			old:    object{"l": []any{"a", "b"}}, now: object{"l": []any{"a", "c", object{"d": int64(1)}}},
			want: []nf.Field{{Path: "l[1]", Old: "b", New: "c"}, {Path: "l[2]", New: object{"d": int64(1)}}},
		},
		"another type": {
			reason: "a map that becomes a string",
			old:    object{"a": object{"b": "c"}}, now: object{"a": "c"},
			want: []nf.Field{{Path: "a", Old: object{"b": "c"}, New: "c"}},
		},
		"an empty map": {
			reason: "emptyDir: {} is a difference",
			old:    object{}, now: object{"emptyDir": object{}},
			want: []nf.Field{{Path: "emptyDir", New: object{}}},
		},
		"a new secret's data": {
			reason: "a whole map of secrets is masked too, and kubectl's copy of it",
			old:    object{"apiVersion": "v1", "kind": "Secret", "metadata": object{}},
			now: object{"apiVersion": "v1", "kind": "Secret", "data": object{"k.ey": "aHVudGVyMg=="}, "stringData": object{"k": "v"},
				"metadata": object{"annotations": object{"kubectl.kubernetes.io/last-applied-configuration": "aHVudGVyMg=="}}},
			want: []nf.Field{
				{Path: "data[k.ey]", New: nf.Masked},
				{Path: "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", New: nf.Masked},
				{Path: "stringData.k", New: nf.Masked},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := differences(&unstructured.Unstructured{Object: tc.old}, &unstructured.Unstructured{Object: tc.now})
			diff(t, tc.reason, tc.want, got)
		})
	}
}
