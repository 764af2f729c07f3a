package schema

import (
	"crypto/sha512"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCacheShares lets 1000 regions have the same document.
func TestCacheShares(t *testing.T) {
	c := NewCache(Config{})
	l := published(schemas(`{"type": "integer"}`, ""))
	for range 1000 {
		if _, err := c.Region(l).Check(t.Context(), []Object{gadget(t, "1")}); err != nil {
			t.Fatal(err)
		}
	}
	if c.entries.Len() != 1 || len(l.asked) != 1 {
		t.Errorf("the cache holds %d copies, and the document is read %d times", c.entries.Len(), len(l.asked))
	}
}

// TestCacheFollows has a document that changes, under hashes that are true or
// not.
func TestCacheFollows(t *testing.T) {
	integer, text := schemas(`{"type": "integer"}`, ""), schemas(`{"type": "string"}`, "")
	hash := func(document string) string { return fmt.Sprintf("%X", sha512.Sum512([]byte(document))) }
	type step struct {
		hash, document string
		refused, read  bool
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"true hashes": {"a document is read when its hash is new", []step{
			{hash(integer), integer, true, true}, {hash(integer), integer, true, false}, {hash(text), text, false, true}, {hash(integer), integer, true, false},
		}},
		"other hashes": {"a document is read each time if its hash says nothing", []step{
			{"1", integer, true, true}, {"1", integer, true, true}, {"1", text, false, true}, {"", integer, true, true},
		}},
		"late document": {"the index is ahead of the document, for a moment", []step{
			{hash(text), integer, true, true}, {hash(text), text, false, true}, {hash(text), text, false, false},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &liar{}
			r := NewCache(Config{}).Region(l)
			for i, s := range tc.steps {
				l.publish("apis/example.com/v1", s.hash, s.document)
				l.asked = nil
				result, err := r.Check(t.Context(), []Object{gadget(t, "a")})
				if err != nil || len(result.Unchecked) > 0 {
					t.Fatal(result.Unchecked, err)
				}
				if refused, read := len(result.Violations) > 0, len(l.asked) > 0; refused != s.refused || read != s.read {
					t.Errorf("%s: step %d: refused %v, read %v", tc.reason, i, refused, read)
				}
			}
		})
	}
}

// TestCacheIsNotPoisoned lets a region claim another one's hash for a document
// of its own.
func TestCacheIsNotPoisoned(t *testing.T) {
	c := NewCache(Config{})
	document := schemas(`{"type": "integer"}`, "")
	honest, evil := published(document), published(document)
	for link := range evil.documents {
		evil.documents[link] = schemas(`{"type": "string"}`, "")
	}
	for _, l := range []*liar{evil, honest, evil, honest} {
		result, err := c.Region(l).Check(t.Context(), []Object{gadget(t, "1")})
		if err != nil {
			t.Fatal(err)
		}
		if l == honest && len(result.Violations) > 0 {
			t.Errorf("the honest region gets another one's document: %v", result.Violations)
		}
	}
}

// TestDefinitionIsNotPoisoned gives one definition to two regions that say
// different metadata.
func TestDefinitionIsNotPoisoned(t *testing.T) {
	c := NewCache(Config{})
	region := func(labels string) *liar {
		return &liar{
			index: `{"paths": {"apis/apiextensions.k8s.io/v1": {"serverRelativeURL": "/openapi/v3/apis/apiextensions.k8s.io/v1?hash=1"}}}`,
			documents: map[string]string{"/openapi/v3/apis/apiextensions.k8s.io/v1?hash=1": `{"components": {"schemas": {"` + objectMeta +
				`": {"type": "object", "properties": {"name": {"type": "string"}, "labels": {"type": "` + labels + `"}}}}}}`},
		}
	}
	all := clustertest.Documents(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec: {group: example.com, names: {kind: Gadget, plural: gadgets}, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: integer}}}}}]}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, labels: {a: b}}, spec: 1}
`)
	for range 2 {
		for labels, want := range map[string][]string{"object": {}, "string": {"metadata.labels: must be a string, got an object"}} {
			result, err := c.Region(region(labels)).Check(t.Context(), []Object{{Unstructured: all[0]}, {Unstructured: all[1], Resource: "gadgets"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, lines(result.Violations)); diff != "" {
				t.Errorf("a region says that labels are a %s: -want +got\n%s", labels, diff)
			}
		}
	}
}

// TestUnownedDefinition has a definition that stays as it is in the region.
func TestUnownedDefinition(t *testing.T) {
	definition := clustertest.Documents(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec: {group: example.com, names: {kind: Gadget, plural: gadgets}, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: integer}}}}}]}
`)[0]
	owned := definition.DeepCopy()
	owned.SetLabels(map[string]string{nf.OwnerLabel: "vnf-1"})
	cases := map[string]struct {
		reason     string
		definition Object
		refused    bool
	}{
		"new":   {"the definition that comes with the object counts", Object{Unstructured: definition}, true},
		"there": {"the region's definition stays, and allows strings", Object{Unstructured: definition, Exists: true}, false},
		"owned": {"the region's definition is changed first", Object{Unstructured: owned, Exists: true}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := NewCache(Config{}).Region(published(schemas(`{"type": "string"}`, ""))).Check(t.Context(), []Object{tc.definition, gadget(t, "a")})
			if err != nil || (len(result.Violations) > 0) != tc.refused {
				t.Errorf("%s: %v, %v", tc.reason, result.Violations, err)
			}
		})
	}
}

func TestCacheEvicts(t *testing.T) {
	const size = 100 << 10
	c := NewCache(Config{MaxBytes: 10 * size})
	document := func(i int) *liar {
		return published(schemas(`{"type": "integer"}`, fmt.Sprintf(`, "x%d": {"description": "%s"}`, i, strings.Repeat("x", size))))
	}
	first := document(0)
	firstRegion := c.Region(first)
	for i := range 50 {
		for _, r := range []*Region{firstRegion, c.Region(document(i + 1))} {
			if _, err := r.Check(t.Context(), []Object{gadget(t, "1")}); err != nil {
				t.Fatal(err)
			}
		}
		var sum int64
		for _, e := range c.entries.Values() {
			sum += e.bytes()
		}
		if sum > c.max {
			t.Fatalf("%d documents take %d bytes of %d", c.entries.Len(), sum, c.max)
		}
	}
	if len(first.asked) != 1 {
		t.Errorf("the document that is used most is read %d times", len(first.asked))
	}
	last := document(1)
	if _, err := c.Region(last).Check(t.Context(), []Object{gadget(t, "1")}); err != nil || len(last.asked) != 1 {
		t.Errorf("a document that was dropped is read again: %v, %v", last.asked, err)
	}
}

func TestCacheDropsMany(t *testing.T) {
	c := NewCache(Config{})
	for i := range maxDocuments + 10 {
		if _, err := c.Region(published(fmt.Sprintf("no document %d", i))).Check(t.Context(), []Object{gadget(t, "1")}); err != nil {
			t.Fatal(err)
		}
	}
	if c.entries.Len() != maxDocuments {
		t.Errorf("the cache holds %d documents, want %d", c.entries.Len(), maxDocuments)
	}
}

// TestConcurrent checks the same and other kinds for many regions at a time.
func TestConcurrent(t *testing.T) {
	c := NewCache(Config{MaxBytes: 1 << 20})
	var g errgroup.Group
	for i := range 32 {
		g.Go(func() error {
			r := c.Region(published(schemas(fmt.Sprintf(`{"type": "integer", "maximum": %d}`, i%4), "")))
			for range 20 {
				result, err := r.Check(t.Context(), []Object{gadget(t, "3")})
				if err != nil {
					return err
				}
				if refused := len(result.Violations) > 0; refused != (i%4 < 3) {
					return fmt.Errorf("maximum %d: %w", i%4, result.Violations)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
