package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func TestCompose(t *testing.T) {
	t.Parallel()
	of := func(size int) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": strings.Repeat("<", size)}
	}
	cases := map[string]struct {
		reason string
		sizes  []int
		want   int // alterations in the first letter
	}{
		"none":     {"nothing is a letter, too", nil, 0},
		"some":     {"what fits goes together", []int{1, 1, 1}, 3},
		"too many": {"what does not fit waits", []int{60 << 10, 60 << 10}, 1},
		"too big":  {"what never fits goes without its content", []int{1 << 20}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []objectChange
			for i, size := range tc.sizes {
				ref := nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprint(i)}
				list = append(list, objectChange{key: ref.Key(), ref: ref, object: of(size), mark: "m"})
			}
			document, marks, err := compose(list)
			if err != nil {
				t.Fatal(err)
			}
			if len(marks) != tc.want {
				t.Errorf("%s: %d are told, want %d", tc.reason, len(marks), tc.want)
			}
			r, err := newRequest(record{}, 1, document, marks)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := json.Marshal(outbox.Delivery{Request: r})
			if err != nil || len(kept) > store.MaxValue {
				t.Errorf("it is %d bytes as a record, %v", len(kept), err)
			}
			var c changes
			if err := json.Unmarshal(document, &c); err != nil || len(c.Created) != tc.want {
				t.Errorf("it tells of %d, %v", len(c.Created), err)
			}
		})
	}
}

func TestRefOf(t *testing.T) {
	t.Parallel()
	kinds := []nf.Ref{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Namespace"}, {Group: "a.b.c", Version: "v2", Kind: "X"}}
	for _, want := range []nf.Ref{
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "web"},
		{Version: "v1", Kind: "Namespace", Name: "ns"},
		{Group: "a.b.c", Version: "v2", Kind: "X", Namespace: "ns", Name: "with.dots:and:colons"},
	} {
		if d := cmp.Diff(want, refOf(want.Key(), kinds)); d != "" {
			t.Errorf("a key names its object: -want +got:\n%s", d)
		}
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	a, b := nf.Ref{Version: "v1", Kind: "A"}, nf.Ref{Group: "g", Version: "v1", Kind: "B"}
	known := baseline{Kinds: []nf.Ref{a, b}, Marks: map[string]string{"A/ns/1": "x", "B.g/ns/1": "x"}}
	known.learn(3, time.Time{}, map[string]string{"A/ns/1": "", "B.g/ns/1": "y"})
	known.setKinds(nil)
	want := baseline{Number: 3, Kinds: []nf.Ref{b}, Marks: map[string]string{"B.g/ns/1": "y"}}
	if d := cmp.Diff(want, known); d != "" {
		t.Errorf("what is gone is forgotten, with its kind: -want +got:\n%s", d)
	}
	known.setKinds([]nf.Ref{{Group: "g", Version: "v2", Kind: "B"}, a})
	if d := cmp.Diff([]nf.Ref{a, {Group: "g", Version: "v2", Kind: "B"}}, known.Kinds); d != "" {
		t.Errorf("a kind is told in the version that is asked for: -want +got:\n%s", d)
	}
}
