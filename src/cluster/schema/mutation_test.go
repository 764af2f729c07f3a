package schema

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
)

// mutation is an object with one change.
type mutation struct {
	path   string // where it was changed
	change string // how
	object *unstructured.Unstructured
}

// mutate returns every object that differs from the given one in one place: each
// value is removed, replaced by values of all types and by values out of usual
// bounds, and each object and list gets something more.
func mutate(u *unstructured.Unstructured) (out []mutation) {
	replacements := map[string]any{
		"null": nil, "string": "Bogus_zz", "empty": "", "true": true, "70000": int64(70000), "list": []any{}, "object": map[string]any{},
	}
	numbers := map[string]any{"-1": int64(-1), "0": int64(0), "1.5": 1.5, "2147483648": int64(2147483648)}
	walkPaths(u.Object, nil, func(path []any) {
		if len(path) == 1 && (path[0] == "apiVersion" || path[0] == "kind") {
			return
		}
		add := func(change string, f func(parent any, key any) any) {
			object := runtime.DeepCopyJSON(u.Object)
			if alter(object, path, f) {
				out = append(out, mutation{fmt.Sprint(path), change, &unstructured.Unstructured{Object: object}})
			}
		}
		for name, v := range replacements {
			add(name, func(any, any) any { return runtime.DeepCopyJSONValue(v) })
		}
		for name, v := range numbers {
			add(name, func(had, _ any) any {
				if !isNumber(had) && len(path) > 0 && path[len(path)-1] != "port" {
					return unchanged{}
				}
				return v
			})
		}
		add("removed", func(any, any) any { return removed{} })
		add("unknown field", func(v, _ any) any {
			m, ok := v.(map[string]any)
			if !ok {
				return unchanged{}
			}
			m["zzUnknown"] = "x"
			return m
		})
		add("null field", func(v, _ any) any {
			m, ok := v.(map[string]any)
			if !ok {
				return unchanged{}
			}
			m["zzUnknown"] = nil
			return m
		})
		add("item twice", func(v, _ any) any {
			list, ok := v.([]any)
			if !ok || len(list) == 0 {
				return unchanged{}
			}
			return append(list, runtime.DeepCopyJSONValue(list[0]))
		})
		add("item null", func(v, _ any) any {
			list, ok := v.([]any)
			if !ok {
				return unchanged{}
			}
			return append(list, nil)
		})
		add("longer", func(v, _ any) any {
			s, ok := v.(string)
			if !ok {
				return unchanged{}
			}
			return s + strings.Repeat("a", 64)
		})
	})
	return out
}

type (
	removed   struct{}
	unchanged struct{}
)

// alter replaces the value at a path, and reports whether it did.
func alter(v any, path []any, f func(v, key any) any) bool {
	switch parent := v.(type) {
	case map[string]any:
		key := path[0].(string)
		if len(path) > 1 {
			return alter(parent[key], path[1:], f)
		}
		switch to := f(parent[key], key).(type) {
		case unchanged:
			return false
		case removed:
			delete(parent, key)
		default:
			parent[key] = to
		}
		return true
	case []any:
		i := path[0].(int)
		if len(path) > 1 {
			return alter(parent[i], path[1:], f)
		}
		switch to := f(parent[i], i).(type) {
		case unchanged, removed:
			return false
		default:
			parent[i] = to
		}
		return true
	}
	return false
}

func walkPaths(v any, path []any, visit func([]any)) {
	if len(path) > 0 {
		visit(slices.Clone(path))
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walkPaths(v[k], append(path, k), visit)
		}
	case []any:
		for i := range v {
			walkPaths(v[i], append(path, i), visit)
		}
	}
}

// tally compares verdicts on mutations with those of a server.
type tally struct {
	mu            sync.Mutex
	both, passed  int
	falseRefusals []string
	unseen        map[string]int // refusals of the server's only, by place
	examples      map[string]string
}

// judge asks the server about each mutation, at the same time.
func (s *server) judge(all []mutation) []error {
	verdicts := make([]error, len(all))
	var g errgroup.Group
	g.SetLimit(4)
	for i, m := range all {
		g.Go(func() error {
			verdicts[i] = s.dryRun(m.object)
			return nil
		})
	}
	_ = g.Wait()
	return verdicts
}

// compare checks each mutation, and holds that against the verdict of the server. The
// objects next to it are checked, too.
func (s *server) compare(region *Region, all []mutation, verdicts []error, beside ...*unstructured.Unstructured) *tally {
	s.t.Helper()
	got := &tally{unseen: map[string]int{}, examples: map[string]string{}}
	var g errgroup.Group
	g.SetLimit(4)
	for i, m := range all {
		g.Go(func() error {
			ours := s.check(region, append(slices.Clone(beside), m.object)...)
			got.add(m, lines(ours.Violations), verdicts[i])
			return nil
		})
	}
	_ = g.Wait()
	return got
}

func (c *tally) add(m mutation, ours []string, theirs error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place := m.object.GetKind() + " " + m.path
	switch {
	case len(ours) > 0 && theirs == nil:
		c.falseRefusals = append(c.falseRefusals, place+", "+m.change+": "+strings.Join(ours, "; "))
	case len(ours) > 0:
		c.both++
	case theirs != nil:
		c.unseen[place]++
		c.examples[place] = m.change + ": " + theirs.Error()
	default:
		c.passed++
	}
}

// report fails for each false refusal, and logs the rest.
func (c *tally) report(t *testing.T, reason string) {
	t.Helper()
	for _, f := range c.falseRefusals {
		t.Errorf("%s: the API server accepts %s", reason, f)
	}
	sum := 0
	for _, n := range c.unseen {
		sum += n
	}
	t.Logf("refused by both %d, by the server alone %d, accepted by both %d", c.both, sum, c.passed)
	for _, place := range slices.Sorted(maps.Keys(c.unseen)) {
		t.Logf("only the server refuses %s (%d), such as %s", place, c.unseen[place], c.examples[place])
	}
}

// TestSample checks the sample package, and some of its objects with changes.
func TestSample(t *testing.T) {
	s := newServer(t)
	region := NewCache(Config{}).Region(s)
	files := render.Files{}
	root := os.DirFS("../../../deployments/samples/edgex")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[name], err = fs.ReadFile(root, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := manifest.Renderer{}.Render(t.Context(), render.Input{
		Files:    files,
		Builtins: map[string]string{"namespace": "default", "vnf_id": "id", "vnf_name": "name", "cloud_region_id": "region", "cloud_owner": "owner"},
		Inputs:   nf.Inputs{Parameters: map[string]any{"redis_password": "secret"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []mutation
	seen := map[string]bool{}
	for _, group := range out.Groups {
		for _, o := range group.Objects {
			all = append(all, mutation{o.GetName(), "nothing", o.Unstructured})
			if !seen[o.GetKind()] {
				all = append(all, mutate(o.Unstructured)...)
			}
			seen[o.GetKind()] = true
		}
	}
	got := s.compare(region, all, s.judge(all))
	got.report(t, "the sample")
	if got.passed < 20 {
		t.Errorf("%d objects pass: not even those of the sample", got.passed)
	}
}

// natural are the objects of testdata/native.yaml.
func natural(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/native.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return clustertest.Documents(t, string(text))
}
