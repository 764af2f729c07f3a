package schema

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// liar is a region that answers what it likes.
type liar struct {
	index     string
	documents map[string]string // by URL
	err       error
	asked     []string
}

var _ Source = (*liar)(nil)

func (l *liar) Index(context.Context) ([]byte, error) { return []byte(l.index), l.err }

func (l *liar) Document(_ context.Context, url string) ([]byte, error) {
	l.asked = append(l.asked, url)
	if text, ok := l.documents[url]; ok {
		return []byte(text), nil
	}
	return nil, nf.E(nf.NotFound, "read", url, nil)
}

func (l *liar) Mutating(context.Context) ([]*unstructured.Unstructured, error) { return nil, nil }

func (l *liar) Live(_ context.Context, ref nf.Ref) (*unstructured.Unstructured, error) {
	return nil, nf.E(nf.NotFound, "read", ref.String(), nil)
}

// published is a region that has one document, of the custom resource Gadget.
func published(document string) *liar {
	l := &liar{}
	l.publish("apis/example.com/v1", fmt.Sprintf("%X", sha512.Sum512([]byte(document))), document)
	return l
}

// publish makes a document the only one, under a hash.
func (l *liar) publish(path, hash, document string) {
	link := "/openapi/v3/" + path + "?hash=" + hash
	l.index = `{"paths": {"` + path + `": {"serverRelativeURL": "` + link + `"}}}`
	l.documents = map[string]string{link: document}
}

// schemas is a document with the schema of the spec of Gadget, and others.
func schemas(spec, others string) string {
	return `{"components": {"schemas": {"com.example.v1.Gadget": {"type": "object", "properties": {"spec": ` + spec + `},
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Gadget"}]}` + others + `}}}`
}

func gadget(t testing.TB, spec string) Object {
	t.Helper()
	return Object{Unstructured: clustertest.Documents(t, `{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}, spec: `+spec+`}`)[0], Resource: "gadgets"}
}

// many repeats a text that may hold the number of its repetition.
func many(n int, text, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(text, "#", fmt.Sprint(i))
	}
	return strings.Join(all, separator)
}

// TestHostileDocuments gives documents that cost too much. Objects pass then
// without being compared with them; that it is said why shows which limit it
// was.
func TestHostileDocuments(t *testing.T) {
	const long = 1_000_000
	nest := func(n int, before, after string) string {
		return strings.Repeat(before, n) + `{"type": "string"}` + strings.Repeat(after, n)
	}
	cases := map[string]struct {
		reason   string
		document string
		spec     string
		want     error // nil: any
	}{
		"empty":      {"no document", ``, "{}", nil},
		"no JSON":    {"half a document", `{"components": {"schemas": {`, "{}", nil},
		"a list":     {"not a document", `[]`, "{}", nil},
		"other form": {"schemas are a list", `{"components": {"schemas": []}}`, "{}", nil},
		"deep JSON":  {"deeper than JSON may be", schemas(nest(20_000, `{"items": `, `}`), ""), "{}", nil},
		"deep":       {"deeper than schemas are", schemas(nest(maxDepth, `{"type": "array", "items": `, `}`), ""), "[]", errLimit},
		"deep forms": {"alternatives in alternatives", schemas(nest(maxDepth, `{"anyOf": [`, `]}`), ""), "{}", errLimit},
		"wide":       {"more fields than schemas have", schemas(`{"type": "object", "properties": {`+many(maxNodes, `"f#": {}`, ", ")+`}}`, ""), "{}", errLimit},
		"enum":       {"more values than schemas have", schemas(`{"enum": [`+many(maxNodes*perNode, "1", ", ")+`]}`, ""), "1", errLimit},
		"components": {"more schemas than documents have", schemas(`{}`, ", "+many(maxComponents, `"c#": {}`, ", ")), "{}", errLimit},
		"paths":      {"more paths than documents have", `{"paths": {` + many(maxPaths+1, `"/#": {}`, ", ") + `}}`, "{}", errLimit},
		"reference":  {"custom resources refer to nothing", schemas(`{"$ref": "#/components/schemas/com.example.v1.Gadget"}`, ""), "{}", errNoSchema},
		"twice": {"two schemas for one kind", schemas(`{}`, `, "other": {"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Gadget"}]}`),
			"{}", errNotServed},
		"a long text":    {"not a document", `"` + strings.Repeat("x", long) + `"`, "{}", nil},
		"long component": {"a name that is long", schemas(`{}`, `, "`+strings.Repeat("x", long)+`": {"x-kubernetes-group-version-kind": 1}`), "{}", nil},
		"long path":      {"a path that is long", `{"paths": {"/` + strings.Repeat("x", long) + `/{name}/status": []}}`, "{}", nil},
		"long number":    {"a kind that is a number", schemas(`{}`, `, "x": {"x-kubernetes-group-version-kind": [{"kind": `+strings.Repeat("1", long)+`}]}`), "{}", nil},
		"long reference": {"a reference that is long", schemas(`{"$ref": "`+strings.Repeat("x", long)+`"}`, ""), "{}", errNoSchema},
		"long target": {"likewise in a kind of Kubernetes", strings.ReplaceAll(schemas(`{"$ref": "#/components/schemas/`+strings.Repeat("x", long)+`"}`, ""),
			"com.example.v1.Gadget", "io.k8s.api.example.v1.Gadget"), "{}", nil},
		"dangling": {"a kind of Kubernetes without its schema", strings.ReplaceAll(schemas(`{"$ref": "#/components/schemas/io.k8s.api.none"}`, ""), "com.example.v1.Gadget", "io.k8s.api.example.v1.Gadget"),
			"{}", nil},
		"aggregated":     {"neither Kubernetes' own nor a custom resource", strings.ReplaceAll(schemas(`{}`, ""), "com.example.v1.Gadget", "io.other.Gadget"), "{}", errAggregated},
		"no schema":      {"a definition without a schema", strings.ReplaceAll(schemas(`{}`, ""), `"properties": {"spec": {}},`, ""), "{a: b}", errNoSchema},
		"long pattern":   {"longer than patterns are", schemas(`{"type": "string", "pattern": "`+strings.Repeat("a", maxPatternText+1)+`"}`, ""), "a", errLimit},
		"large pattern":  {"repetitions of repetitions", schemas(`{"type": "string", "pattern": "`+many(20, `a{1000}`, "")+`"}`, ""), "a", errLimit},
		"large patterns": {"many large ones", schemas(`{"type": "object", "properties": {`+many(60, `"f#": {"type": "string", "pattern": "a{900}"}`, ", ")+`}}`, ""), "{}", errLimit},
		"slow pattern": {"a pattern that takes long on a long text", schemas(`{"type": "array", "items": {"type": "string", "pattern": "^(a?){900}$"}}`, ""),
			"[" + many(20, strings.Repeat("a", 100_000), ", ") + "]", errLimit},
		"default bomb": {"a large default in every item", schemas(`{"type": "array", "items": {"type": "object", "properties": {"x": {"type": "array", "items": {}, "default": [`+many(long/10, "1", ", ")+`]}}}}`, ""),
			"[" + many(1000, "{}", ", ") + "]", errLimit},
		"forms": {"many alternatives for many items", schemas(`{"type": "array", "items": {"anyOf": [`+many(maxNodes/2, `{"maxLength": 0}`, ", ")+`]}}`, ""),
			"[" + many(10_000, "a", ", ") + "]", errLimit},
		"rules":      {"more rules than kinds have", schemas(`{"type": "object", "x-kubernetes-validations": [`+many(maxRules+1, `{"rule": "true"}`, ", ")+`]}`, ""), "{}", errLimit},
		"long rule":  {"longer than rules are", schemas(`{"type": "object", "x-kubernetes-validations": [{"rule": "`+strings.Repeat("true && ", maxRuleText/8)+`true"}]}`, ""), "{}", errLimit},
		"wrong rule": {"a rule that does not compile", schemas(`{"type": "object", "x-kubernetes-validations": [{"rule": "self.nothing > 1"}]}`, ""), "{}", errRules},
		"new rule":   {"a function of a newer Kubernetes", schemas(`{"type": "object", "x-kubernetes-validations": [{"rule": "future(self)"}]}`, ""), "{}", errRules},
		"slow rule": {"a rule that takes long", schemas(`{"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}]}`, ""),
			"[" + many(1000, "1", ", ") + "]", errLimit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := NewCache(Config{}).Region(published(tc.document)).Check(t.Context(), []Object{gadget(t, tc.spec)})
			if err != nil || len(result.Violations) > 0 {
				t.Fatalf("%s: found %v, %v", tc.reason, result.Violations, err)
			}
			if len(result.Unchecked) != 1 {
				t.Fatalf("%s: the object counts as checked", tc.reason)
			}
			got := result.Unchecked[0].Reason
			if tc.want != nil && !errors.Is(got, tc.want) {
				t.Errorf("%s: not checked because %.200v", tc.reason, got)
			}
			if size := len(got.Error()); size > maxMessage {
				t.Errorf("%s: the reason has %d bytes", tc.reason, size)
			}
		})
	}
}

// TestOddDocuments gives documents that are strange, but can be used.
func TestOddDocuments(t *testing.T) {
	cases := map[string]struct {
		reason   string
		document string
		spec     string
		want     []string
	}{
		"wrong types": {"members of a wrong type are not there", schemas(`{"type": 5, "properties": [], "required": "a", "enum": {}, "minimum": "x", "items": 7, "anyOf": {}, "pattern": 1}`, ""), "{a: b}", nil},
		"no pattern":  {"a pattern that cannot be parsed", schemas(`{"type": "string", "pattern": "(?!x)["}`, ""), "a", nil},
		"null":        {"null for a schema", schemas(`{"type": "object", "properties": {"a": null}, "anyOf": [null]}`, ""), "{a: b}", nil},
		"all":         {"every pattern holds", schemas(`{"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}`, ""), "a", []string{`spec: must match b$, got "a"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := NewCache(Config{}).Region(published(tc.document)).Check(t.Context(), []Object{gadget(t, tc.spec)})
			if err != nil || len(result.Unchecked) > 0 {
				t.Fatalf("%s: %v, %v", tc.reason, result.Unchecked, err)
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(result.Violations)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCycle compares an object with a type of Kubernetes that contains itself.
func TestCycle(t *testing.T) {
	document := strings.ReplaceAll(schemas(`{"$ref": "#/components/schemas/io.k8s.api.node"}`, `,
		"io.k8s.api.node": {"type": "object", "properties": {"next": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.node"}]}, "a": {"type": "string"}}}`),
		"com.example.v1.Gadget", "io.k8s.api.example.v1.Gadget")
	document = strings.Replace(document, `"properties": {"spec"`, `"properties": {"apiVersion": {}, "kind": {}, "metadata": {}, "spec"`, 1)
	spec := "{a: x}"
	for range 50 {
		spec = "{next: " + spec + "}"
	}
	wrong := strings.Replace(spec, "a: x", "a: 5", 1)
	result, err := NewCache(Config{}).Region(published(document)).Check(t.Context(), []Object{gadget(t, spec), gadget(t, wrong)})
	if err != nil || len(result.Unchecked) > 0 {
		t.Fatal(result.Unchecked, err)
	}
	want := []string{"spec" + strings.Repeat(".next", 50) + ".a: must be a string, got 5"}
	if diff := cmp.Diff(want, lines(result.Violations)); diff != "" {
		t.Errorf("a type that contains itself is as deep as the object: -want +got\n%s", diff)
	}
}

// TestManyFindings shows that what is said is bounded.
func TestManyFindings(t *testing.T) {
	document := schemas(`{"type": "array", "items": {"type": "integer"}}`, "")
	result, err := NewCache(Config{}).Region(published(document)).Check(t.Context(), []Object{gadget(t, "["+many(10_000, strings.Repeat("x", 1000), ", ")+"]")})
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, v := range result.Violations {
		size += len(v.String())
	}
	if len(result.Violations) != maxFindings || size > maxFindings*(200+maxShown) {
		t.Errorf("%d violations of %d bytes", len(result.Violations), size)
	}
}

// TestIndex gives an index that leads elsewhere.
func TestIndex(t *testing.T) {
	cases := map[string]struct {
		reason string
		url    string
		want   []string // that are asked
	}{
		"fine":          {"a path with a query", "/openapi/v3/apis/example.com/v1?hash=A", []string{"/openapi/v3/apis/example.com/v1?hash=A"}},
		"another host":  {"a whole URL", "https://evil.example.com/openapi/v3/apis/example.com/v1", nil},
		"no scheme":     {"a host after two slashes", "//evil.example.com/openapi/v3/x", nil},
		"another path":  {"a Secret", "/api/v1/namespaces/kube-system/secrets", nil},
		"upwards":       {"out of the documents", "/openapi/v3/../../api/v1/secrets", nil},
		"encoded":       {"out of them, in disguise", "/openapi/v3/%2e%2e/%2e%2e/api/v1/secrets", nil},
		"the index":     {"the index again", "/openapi/v3", nil},
		"no URL at all": {"nothing", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &liar{index: `{"paths": {"apis/example.com/v1": {"serverRelativeURL": "` + tc.url + `"}}}`}
			if _, err := NewCache(Config{}).Region(l).Check(t.Context(), []Object{gadget(t, "{}")}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, l.asked); diff != "" {
				t.Errorf("%s: asked -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnreadable gives errors instead of documents.
func TestUnreadable(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		fails  bool
	}{
		"old":         {"the region has no documents: the name is checked", nf.E(nf.NotFound, "read", "index", nil), false},
		"forbidden":   {"they may not be read: the name is checked", nf.E(nf.Failed, "read", "index", nil), false},
		"large":       {"they are too large: the name is checked", nf.E(nf.TooLarge, "read", "index", nil), false},
		"unreachable": {"the region gives no answer", nf.E(nf.Unreachable, "read", "index", nil), true},
		"cancelled":   {"the request was cancelled", context.Canceled, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := gadget(t, "{}")
			o.SetName("a/b")
			result, err := NewCache(Config{}).Region(&liar{err: tc.err}).Check(t.Context(), []Object{o})
			if tc.fails {
				if !errors.Is(err, tc.err) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil || len(result.Unchecked) != 1 || len(result.Violations) != 1 || result.Violations[0].Field != "metadata.name" {
				t.Errorf("%s: %+v, %v", tc.reason, result, err)
			}
		})
	}
}
