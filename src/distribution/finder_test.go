package distribution_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/distribution"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

// TestFind searches the services of SDC for a definition.
func TestFind(t *testing.T) {
	t.Parallel()
	s, client := startSDC(t, 0)
	shelf := &shelf{contents: map[string]string{}}
	finder := func(wait time.Duration) *distribution.Finder {
		t.Helper()
		f, err := distribution.NewFinder(distribution.FinderConfig{Services: client, Definitions: shelf, Every: time.Millisecond, Wait: wait})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = f.Run(ctx) })
		t.Cleanup(func() { stop(); running.Wait() })
		return f
	}
	f := finder(time.Minute)
	find := func(name string) nf.Kind {
		err := f.Find(t.Context(), name, "c")
		if err == nil {
			return -1
		}
		return nf.KindOf(err)
	}
	put := func(i int, content string) {
		service := firewall(content)
		service.UUID = fmt.Sprint("service-", i)
		service.Resources[0].Modules[0].InvariantUUID = fmt.Sprint("i", i)
		if _, err := s.Put(service); err != nil {
			t.Fatal(err)
		}
	}
	if kind := find("i1"); kind != nf.NotFound {
		t.Errorf("nothing is distributed: %s", kind)
	}
	for i := range 5 {
		put(i, fmt.Sprint("chart ", i))
	}
	if kind := find("i3"); kind != -1 || shelf.contents["i3/c"] != "chart 3" || len(shelf.contents) != 1 {
		t.Errorf("one definition is deployed: %s, %v", kind, shelf.contents)
	}
	if kind := find("other"); kind != nf.NotFound {
		t.Errorf("no service has the module: %s", kind)
	}
	s.Journal()
	if kind := find("i2"); kind != -1 || len(s.Journal()) != 1 {
		t.Errorf("a service is read once, then only the chart is downloaded: %s", kind)
	}
	put(6, "bad chart")
	if kind := find("i6"); kind != nf.Invalid || shelf.contents["i6/c"] != "" {
		t.Errorf("a chart that is wrong is not stored: %s", kind)
	}
	s.Script(simulator.Fault{Path: "catalog/services", Times: -1, Status: 500})
	if kind := find("i7"); kind != nf.Unreachable {
		t.Errorf("SDC does not respond: %s", kind)
	}
	s.Repair()
	hurried := finder(time.Nanosecond)
	shelf.mu.Lock() // the search cannot end
	err := hurried.Find(t.Context(), "i4", "c")
	shelf.mu.Unlock()
	if nf.KindOf(err) != nf.Timeout {
		t.Errorf("a caller waits for a limited time: %v", err)
	}
	if v := s.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
}
