package distribution_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/distribution"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// Designs implements distribution.Onboarded: service-0 to service-9, and one resource.
func (s *shelf) Designs(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{"resource-1"}
	for i := range 10 {
		if id := fmt.Sprint("service-", i); s.contents[fmt.Sprintf("i%d/c", i)] != "" && !slices.Contains(s.deleted, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// numbered is a firewall of its own.
func numbered(i int, content string) simulator.Service {
	service := firewall(content)
	service.UUID = fmt.Sprint("service-", i)
	service.Resources[0].Modules[0].InvariantUUID = fmt.Sprint("i", i)
	if i == 1 {
		service.Resources[0].UUID = "resource-1"
	}
	return service
}

// TestCompare compares SDC with what a service has that was away.
func TestCompare(t *testing.T) {
	t.Parallel()
	s, client := startSDC(t, 0)
	shelf, kv, log := &shelf{contents: map[string]string{}}, memory.New(), &safeBuffer{}
	put := func(service simulator.Service) {
		t.Helper()
		if _, err := s.Put(service); err != nil {
			t.Fatal(err)
		}
	}
	// until runs a comparer, as after a start, until a condition is true.
	until := func(reason string, condition func() bool) {
		t.Helper()
		c, err := distribution.NewComparer(distribution.ComparerConfig{
			KV: kv, Catalog: client, Onboarded: shelf, Every: time.Nanosecond, Period: time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Lead: func(ctx context.Context, work func(context.Context)) error { work(ctx); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = c.Run(ctx) })
		for tries := 0; !condition(); tries++ {
			if tries > 200 {
				t.Errorf("it does not become true: %s", reason)
				break
			}
			delay.For(ctx, delay.Doubled(time.Millisecond, 100*time.Millisecond, tries), nil)
		}
		stop()
		running.Wait()
	}
	is := func(i int, content string) bool {
		shelf.mu.Lock()
		defer shelf.mu.Unlock()
		return shelf.contents[fmt.Sprintf("i%d/c", i)] == content
	}
	for i := range 3 {
		put(numbered(i, fmt.Sprint("chart ", i)))
	}
	put(numbered(3, "bad chart"))
	put(simulator.Service{Name: "empty"})
	until("all are recorded", func() bool { return rows(t, kv) == 5 })
	if !is(0, "chart 0") || !is(1, "chart 1") || !is(2, "chart 2") || !is(3, "") || !log.has("failed to deploy") {
		t.Errorf("services whose notification was missed are deployed, except one whose chart is wrong: %v", shelf.contents)
	}

	var read []simulator.Entry
	s.Journal()
	until("SDC is read again", func() bool {
		read = append(read, s.Journal()...)
		return len(read) > 12
	})
	for _, e := range read {
		if strings.Contains(e.URI, "/artifacts/") {
			t.Errorf("an artifact of a service that has not changed is downloaded: %s", e.URI)
		}
	}
	s.Script(simulator.Fault{Path: "catalog/services", Times: 1, Status: 500})
	put(numbered(0, "other chart"))
	until("other content is deployed, also after a failure", func() bool { return is(0, "other chart") })

	if marked := shelf.marked(); len(marked) > 0 {
		t.Errorf("nothing is deleted, and there are marks: %q", marked)
	}
	for _, id := range []string{"service-1", "service-2"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	until("what SDC has no longer is marked", func() bool {
		marked := shelf.marked()
		return slices.Contains(marked, "service-1") && slices.Contains(marked, "service-2") && slices.Contains(marked, "resource-1")
	})
	if slices.Contains(shelf.marked(), "service-0") || !is(1, "chart 1") {
		t.Errorf("what is there is not marked, and nothing is removed: %q", shelf.marked())
	}
	if v := s.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
	if _, err := distribution.NewComparer(distribution.ComparerConfig{}); err == nil {
		t.Error("a comparer needs its parts")
	}
}

// rows returns the number of recorded services.
func rows(t *testing.T, kv store.KV) (n int) {
	t.Helper()
	for _, err := range store.NewTable[map[string]any](kv, "sdc/services/", "row").All(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
