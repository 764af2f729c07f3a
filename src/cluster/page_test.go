package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDecodePage(t *testing.T) {
	cases := map[string]struct {
		reason string
		page   string
		want   []map[string]any
		list   metav1.ListMeta
		fails  bool
	}{
		"kinds": {
			"an API server leaves the kind of its own objects out",
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"more","remainingItemCount":3},"items":[{"metadata":{"name":"a","generation":2},"spec":{"share":0.5}}]}`,
			[]map[string]any{{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": "a", "generation": int64(2)}, "spec": map[string]any{"share": 0.5}}},
			metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: new(int64(3))}, false,
		},
		"own kinds": {
			"a custom resource has its kind", `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"kind":"Gizmo","apiVersion":"example.org/v1"}]}`,
			[]map[string]any{{"kind": "Gizmo", "apiVersion": "example.org/v1"}}, metav1.ListMeta{}, false,
		},
		"null":     {"an object without fields", `{"kind":"PodList","apiVersion":"v1","items":[null]}`, []map[string]any{{"kind": "Pod", "apiVersion": "v1"}}, metav1.ListMeta{}, false},
		"no items": {"a list may be empty", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":null}`, []map[string]any{}, metav1.ListMeta{ResourceVersion: "7"}, false},
		"no kind":  {"it is not a list", `{"password":"p"}`, nil, metav1.ListMeta{}, true},
		"no list":  {"it is not an object", `[]`, nil, metav1.ListMeta{}, true},
		"no map":   {"an item is not an object", `{"kind":"PodList","apiVersion":"v1","items":["a"]}`, nil, metav1.ListMeta{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items, list, err := decodePage([]byte(tc.page))
			if fails := errors.Is(err, errGarbage); fails != tc.fails || err != nil && !fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []map[string]any
			for _, item := range items {
				got = append(got, item.Object)
			}
			if len(tc.want) > 0 || len(got) > 0 {
				diff(t, tc.reason, tc.want, got)
			}
			diff(t, tc.reason, tc.list, list)
		})
	}
}

// aPage is a page of pods.
func aPage() []byte {
	const pod = `{"metadata":{"name":"web-%d","namespace":"ns","uid":"u","resourceVersion":"1","labels":{"app":"web","tier":"front"}},"spec":{"containers":[{"name":"c","image":"i:1",
		"ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}]}],"nodeName":"n"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	var items []string
	for i := range objectPage {
		items = append(items, fmt.Sprintf(pod, i))
	}
	return []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(items, ",") + `]}`)
}

// TestDecodePageOnce compares the allocations with those of a decoder that decodes each
// object twice.
func TestDecodePageOnce(t *testing.T) {
	body := aPage()
	once := testing.AllocsPerRun(5, func() {
		if _, _, err := decodePage(body); err != nil {
			t.Error(err)
		}
	})
	twice := testing.AllocsPerRun(5, func() {
		if err := new(unstructured.UnstructuredList).UnmarshalJSON(body); err != nil {
			t.Error(err)
		}
	})
	if once > 0.7*twice {
		t.Errorf("a page has %.0f allocations, and %.0f if its objects are decoded twice", once, twice)
	}
}

func BenchmarkDecodePage(b *testing.B) {
	body := aPage()
	b.SetBytes(int64(len(body)))
	for name, decode := range map[string]func() error{
		"once":  func() error { _, _, err := decodePage(body); return err },
		"twice": func() error { return new(unstructured.UnstructuredList).UnmarshalJSON(body) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
