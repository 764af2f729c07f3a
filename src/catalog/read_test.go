package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/heaptest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

const (
	readers = 8
	besides = 48 << 20 // bytes that the test and the service need for other things
)

// fragile is a store whose content can be lost.
type fragile struct {
	store.KV

	lost *bool
}

func (f fragile) Get(ctx context.Context, key string) (store.Entry, error) {
	if *f.lost && strings.HasPrefix(key, "chunks/") {
		return store.Entry{}, nf.E(nf.Unreachable, "get", key, errors.New("the store is away"))
	}
	return f.KV.Get(ctx, key)
}

// newLarge returns a catalog with the package p, whose archive it returns, too.
func newLarge(t *testing.T, lost *bool) (*catalog.Catalog, []byte) {
	t.Helper()
	c, err := catalog.New(catalog.Config{
		KV: fragile{memory.New(), lost}, Limits: render.DefaultLimits(), NewID: func() string { return "upload" },
		Renderers: map[string]render.Renderer{"manifest": anything{func() {}}},
		Probe:     func(context.Context, nf.Access) (nf.Probe, error) { return nf.Probe{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	content := large(t)
	if _, _, err := c.Upload(t.Context(), nf.Package{ID: "p"}, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return c, content
}

// TestContentIsStreamed has clients that read the first byte of a large archive and
// then stall.
func TestContentIsStreamed(t *testing.T) {
	c, content := newLarge(t, new(bool))
	before := heaptest.InUse()
	for range readers {
		p, archive, err := c.Content(t.Context(), "p")
		if err != nil || p.ID != "p" {
			t.Fatal(p.ID, err)
		}
		first := make([]byte, 1)
		if _, err := io.ReadFull(archive, first); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if rest, err := io.ReadAll(archive); err != nil || !bytes.Equal(append(first, rest...), content) {
				t.Errorf("what is read is not what was uploaded: %v", err)
			}
		}()
	}
	if now := heaptest.InUse() - before; now > besides {
		t.Errorf("%d readers of %d MiB hold %d MiB", readers, len(content)>>20, now>>20)
	}
}

// TestContentFailsFirst loses the content before the first byte is read: then there is
// an error to answer with.
func TestContentFailsFirst(t *testing.T) {
	lost := false
	c, _ := newLarge(t, &lost)
	_, archive, err := c.Content(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	lost = true
	if _, err := io.ReadAll(iotest.OneByteReader(archive)); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("half an archive is read as a whole one: %v", err)
	}
	if _, _, err := c.Content(t.Context(), "p"); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("content that is lost is returned: %v", err)
	}
}

// TestFilesShareMemory has requests use the files of a large package at once.
func TestFilesShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, content := newLarge(t, new(bool))
		before := heaptest.InUse()
		type result struct {
			files render.Files
			done  func()
			err   error
		}
		results := make(chan result, readers)
		read := func() {
			_, files, done, err := c.Files(t.Context(), "p")
			results <- result{files, done, err}
		}
		for range readers {
			go read()
		}
		synctest.Wait()
		using := len(results)
		if now := heaptest.InUse() - before; now > 256<<20+besides {
			t.Errorf("%d of %d requests use %d MiB for packages of %d MiB", using, readers, now>>20, len(content)>>20)
		}
		if using == 0 || using == readers {
			t.Fatalf("%d of %d requests get the files", using, readers)
		}
		one := <-results
		if one.err != nil || one.files.Size() != 60<<20 {
			t.Fatalf("a request gets %d bytes: %v", one.files.Size(), one.err)
		}
		one.files = nil
		one.done()
		one.done()
		synctest.Wait()
		if len(results) != using {
			t.Errorf("memory that is released is used by %d requests and not by one", len(results)-using+1)
		}
		for range using {
			<-results
		}
		began := time.Now()
		if r := <-results; nf.KindOf(r.err) != nf.TooManyRequests || nf.RetryAfterOf(r.err) == 0 || time.Since(began) > time.Minute {
			t.Errorf("a request that finds no memory is told after %s: %v", time.Since(began), r.err)
		}
	})
}

// TestFilesReleaseMemory reads what cannot be read.
func TestFilesReleaseMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := false
		c, _ := newLarge(t, &lost)
		lost = true
		for range readers {
			if _, _, _, err := c.Files(t.Context(), "p"); nf.KindOf(err) != nf.Unreachable {
				t.Fatalf("content that is lost is returned: %v", err)
			}
		}
		if _, _, _, err := c.Files(t.Context(), "missing"); nf.KindOf(err) != nf.NotFound {
			t.Fatalf("a package that is not there has files: %v", err)
		}
		lost = false
		_, files, done, err := c.Files(t.Context(), "p")
		if err != nil || len(files) != 4 {
			t.Fatalf("memory is not released: %d files, %v", len(files), err)
		}
		done()
	})
}
