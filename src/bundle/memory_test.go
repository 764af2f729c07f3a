package bundle_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/heaptest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// slow is a store that has one blob open until it is let go.
type slow struct {
	store.KV

	blob string // its key
	open chan struct{}
}

func (s *slow) Get(ctx context.Context, key string) (store.Entry, error) {
	if key == s.blob {
		<-s.open
	}
	return s.KV.Get(ctx, key)
}

// TestComposeSharesMemory composes packages of a large chart at once, each of which
// then waits for its overlay, with the files of the chart in memory.
func TestComposeSharesMemory(t *testing.T) {
	const (
		requests = 8
		budget   = 256 << 20
		besides  = 48 << 20 // bytes that the test and the service need otherwise
	)
	synctest.Test(t, func(t *testing.T) {
		kv := &slow{KV: memory.New(), open: make(chan struct{})}
		ids, loose := 0, render.DefaultLimits()
		loose.Ratio = 1 << 20 // the chart is all alike
		b, err := bundle.New(bundle.Config{
			KV: kv, Packages: &shelf{archives: map[string][]byte{}}, Limits: loose, NewID: func() string { ids++; return fmt.Sprint("u", ids) },
		})
		must(t, err)
		_, err = b.CreateDefinition(t.Context(), bundle.Definition{Name: "fw", Version: "1"})
		must(t, err)
		must(t, b.UploadDefinition(t.Context(), "fw", "1", largeChart()))
		k := bundle.Key{Name: "fw", Version: "1", Profile: "p"}
		_, err = b.CreateProfile(t.Context(), bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
		must(t, err)
		must(t, b.UploadProfile(t.Context(), k, reader(map[string]string{"manifest.yaml": "version: v1\n"})))
		p, err := b.Profile(t.Context(), k)
		must(t, err)
		kv.blob = "blobs/" + p.Content.Digest
		before := heaptest.InUse()
		results := make(chan error, requests)
		for range requests {
			go func() { _, err := b.Compose(t.Context(), k); results <- err }()
		}
		synctest.Wait()
		if now := heaptest.InUse() - before; now > budget+besides {
			t.Errorf("%d requests hold %d MiB, and %d is the limit", requests, now>>20, budget>>20)
		}
		if err := <-results; nf.KindOf(err) != nf.TooManyRequests || nf.RetryAfterOf(err) == 0 {
			t.Errorf("a request that finds no memory is told: %v", err)
		}
		close(kv.open)
		for range requests - 1 {
			if err := <-results; err != nil && nf.KindOf(err) != nf.TooManyRequests {
				t.Error(err)
			}
		}
		c, err := b.Compose(t.Context(), k)
		must(t, err)
		if c.Package == "" {
			t.Error("nothing is composed")
		}
	})
}

// largeChart returns the archive of a chart that unpacks to almost the largest size.
func largeChart() io.Reader {
	chart := map[string]string{"fw/Chart.yaml": "name: fw\n"}
	for i := range 4 {
		chart[fmt.Sprint("fw/file", i)] = strings.Repeat(fmt.Sprint(i), 15<<20)
	}
	return reader(chart)
}
