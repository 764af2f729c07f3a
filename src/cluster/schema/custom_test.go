package schema

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// define applies a definition and waits until its kinds are published.
func (s *server) define(definition *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.apply(definition); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.remove(definition); err != nil {
			s.t.Error(err)
		}
	})
	region := NewCache(Config{}).Region(s)
	for k := range definitionKinds(s.t, definition) {
		for s.resources[k].Name == "" {
			s.discover()
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k)
		for len(s.check(region, u).Unchecked) > 0 {
			s.published = nil // it takes the server a moment
		}
	}
}

// own reads testdata/custom.yaml with a group of the test's own.
func own(t *testing.T) (definition, gadget *unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile("testdata/custom.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := clustertest.Documents(t, strings.ReplaceAll(string(text), "GROUP", clustertest.Namespace(t)+".example.com"))
	return all[0], all[1]
}

// TestCustom shows what is said of a custom resource, and compares it with a
// real API server.
func TestCustom(t *testing.T) {
	s := newServer(t)
	definition, gadget := own(t)
	s.define(definition)
	region := NewCache(Config{}).Region(s)
	cases := map[string]struct {
		reason string
		spec   string // in addition to the name
		want   []string
	}{
		"fine":          {"a name suffices", "", nil},
		"unknown field": {"the likely field is named", "leest: 1", []string{`spec.leest: unknown field "leest" (did you mean "least"?)`}},
		"nested":        {"the defaults are there, too", "nested: {dept: 1}", []string{`spec.nested.dept: unknown field "dept" (did you mean "depth"?)`}},
		"free":          {"whatever it holds", "free: {a: [{b: null}]}, any: x, half: {x: {y: z}}, empty: {a: b}", nil},
		"type":          {"the value is quoted", `least: "two"`, []string{`spec.least: must be an integer, got string "two"`}},
		"null":          {"null is no string", "never: null", []string{"spec.never: must be a string, got null"}},
		"nullable":      {"where null is allowed, and where a default takes its place", "maybe: null, filled: null", nil},
		"port":          {"either will do", "port: http", nil},
		"no port":       {"neither", "port: true", []string{"spec.port: must be an integer or a string, got true"}},
		"percent":       {"the pattern is for strings", "percent: 5", nil},
		"no percent":    {"the pattern is quoted", "percent: five", []string{`spec.percent: must match ^[0-9]+%$, got "five"`}},
		"bounds":        {"both ends", "least: -1, most: 0, ratio: 1", []string{"spec.least: must be at least 0, got -1", "spec.most: must be greater than 0, got 0", "spec.ratio: must be less than 1, got 1"}},
		"multiple":      {"not an even number", "even: 3", []string{"spec.even: must be a multiple of 2, got 3"}},
		"enum":          {"what is allowed is said", "level: 9, mode: fast", []string{"spec.level: must be one of 1, 2, 3, got 9", `spec.mode: must be one of Fast, Slow, "", got "fast"`}},
		"cut enum":      {"an API server cuts a fraction off before it compares", "step: 1.5", nil},
		"no cut enum":   {"cut off, it is not listed either", "step: 2.5", []string{"spec.step: must be one of 0, 1, got 2.5"}},
		"formats": {"of all kinds", `when: today, day: "2026-13-01", mail: a, address: 10.0.0.256, net: 10.0.0.0, link: x y, id: "1", blob: "!", long: soon, future: x`, []string{
			`spec.address: must be a valid ipv4, got "10.0.0.256"`, `spec.blob: must be base64, got "!"`, `spec.day: must be a valid date, got "2026-13-01"`,
			`spec.id: must be a valid uuid, got "1"`, `spec.link: must be a valid uri, got "x y"`, `spec.long: must be a valid duration, got "soon"`,
			`spec.mail: must be a valid email, got "a"`, `spec.net: must be a valid cidr, got "10.0.0.0"`, `spec.when: must be a date and time such as 2006-01-02T15:04:05Z, got "today"`,
		}},
		"counts":     {"too many and too few", "tags: {}, atomic: [1, 2, 3, 4]", []string{"spec.atomic: must have at most 3 items, has 4", "spec.tags: must have at least 1 field, has 0"}},
		"map":        {"keys are anything, values are not", "tags: {a.b/c: long}, deep: {x: {b: c}}", []string{"spec.deep[x].a: is required", "spec.tags[a.b/c]: must have at most 3 characters, has 4"}},
		"set":        {"twice in a set", "unique: [a, b, a]", []string{`spec.unique[2]: is in the list twice, got "a"`}},
		"keys":       {"the protocol's default counts", "keyed: [{port: 1}, {port: 1, protocol: TCP}]", []string{`spec.keyed[1]: has the same port 1 and protocol "TCP" as item 0`}},
		"no key":     {"an item needs its key", "keyed: [{protocol: TCP}]", []string{"spec.keyed[0].port: is required", "spec.keyed[0].port: is required: it identifies the item in its list"}},
		"either":     {"exactly one", "either: {left: a, right: b}", []string{"spec.either: must match exactly one of the 2 forms that the schema allows, matches 2"}},
		"neither":    {"none of two", "either: {}", []string{"spec.either: one of these must be met: left is required; or right is required"}},
		"some":       {"at least one", "some: {b: 4}", []string{"spec.some: one of these must be met: a is required; or b must be at least 5, got 4"}},
		"not":        {"what must not be", "not: {bad: x}", []string{"spec.not: has a form that the schema excludes"}},
		"all":        {"what must hold, too", "both: abcde", []string{`spec.both: must have at most 4 characters, has 5`, `spec.both: must match ^x, got "abcde"`}},
		"whole":      {"an object in an object", "strict: {kind: X, spec: {b: c}, metadata: {labelz: {}}}", []string{"spec.strict.apiVersion: is required", `spec.strict.metadata.labelz: unknown field "labelz" (did you mean "labels"?)`, `spec.strict.spec.b: unknown field "b" (did you mean "a"?)`}},
		"rule":       {"a rule with a message", "least: 5, most: 4", []string{"spec: least must not be above most"}},
		"transition": {"there is no former object", "frozen: x", nil},
		"status":     {"status is read and dropped", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := clustertest.Documents(t, `{apiVersion: `+gadget.GetAPIVersion()+`, kind: Gadget, metadata: {name: g}, spec: {name: abc, `+tc.spec+`}}`)[0]
			if name == "status" {
				u.Object["status"] = map[string]any{"count": int64(-5)}
			}
			result := s.check(region, u)
			if len(result.Unchecked) > 0 {
				t.Errorf("%s: %v was not checked", tc.reason, result.Unchecked)
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(result.Violations)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if err := s.dryRun(u); (err != nil) != (len(tc.want) > 0) {
				t.Errorf("%s: the API server says %v", tc.reason, err)
			}
		})
	}
}
