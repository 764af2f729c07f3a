package schema

import (
	"context"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// BenchmarkCheck checks 100 objects whose schemas are compiled, without the
// time that a region takes to answer.
func BenchmarkCheck(b *testing.B) {
	s := newServer(b)
	region := NewCache(Config{}).Region(s)
	var some []*unstructured.Unstructured
	for _, u := range natural(b) {
		switch u.GetKind() {
		case "Deployment", "StatefulSet", "Service", "ConfigMap", "Secret", "Ingress", "Role", "RoleBinding", "ServiceAccount", "Job":
			some = append(some, u)
		}
	}
	var objects []Object
	for i := range 100 {
		u := some[i%len(some)]
		objects = append(objects, Object{Unstructured: u, Resource: s.resources[u.GroupVersionKind()].Name})
	}
	if _, err := region.Check(b.Context(), objects); err != nil { // compiles them
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		result, err := region.Check(b.Context(), objects)
		if err != nil || len(result.Violations)+len(result.Unchecked) > 0 {
			b.Fatal(err, result)
		}
	}
}

// BenchmarkParse reads the documents of the API server.
func BenchmarkParse(b *testing.B) {
	s := newServer(b)
	for name, url := range documents(b, s) {
		text, err := s.get(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parseDocument(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompile compiles all kinds of a document, and reports the memory that
// they take.
func BenchmarkCompile(b *testing.B) {
	s := newServer(b)
	for name, url := range documents(b, s) {
		text, err := s.get(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var d *document
			var before, after runtime.MemStats
			for b.Loop() {
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&before)
				if d, err = parseDocument(text); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for gvk := range d.kinds {
					_, _ = d.kind(gvk)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-B")
			b.ReportMetric(float64(d.size.Load()), "estimate-B")
		})
	}
}

// documents are the URLs of some documents of the API server.
func documents(t testing.TB, s *server) map[string]string {
	t.Helper()
	urls, err := NewCache(Config{}).Region(s).index(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range []string{"api/v1", "apis/apps/v1", "apis/batch/v1", "apis/networking.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1"} {
		out[name] = urls[name]
	}
	return out
}
