package bundle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// shelf keeps packages as the catalog does, and checks nothing.
type shelf struct {
	mu       sync.Mutex // guards the archives
	archives map[string][]byte
	used     map[string]bool
	uploads  int
}

func (s *shelf) Upload(ctx context.Context, as nf.Package, content io.Reader) (nf.Package, bool, error) {
	archive, err := io.ReadAll(content)
	if err != nil {
		return nf.Package{}, false, err
	}
	s.mu.Lock()
	s.uploads++
	s.archives[as.ID] = archive
	s.mu.Unlock()
	p, err := s.Package(ctx, as.ID)
	return p, true, err
}

func (s *shelf) Package(_ context.Context, id string) (nf.Package, error) {
	s.mu.Lock()
	archive, ok := s.archives[id]
	s.mu.Unlock()
	if !ok {
		return nf.Package{}, nf.E(nf.NotFound, "get", "package "+id, nil)
	}
	sum := sha256.Sum256(archive)
	return nf.Package{ID: id, Digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

func (s *shelf) RemovePackage(ctx context.Context, id string) error {
	if s.used[id] {
		return nf.E(nf.Conflict, "remove", "package "+id, nil)
	}
	if _, err := s.Package(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.archives, id)
	s.mu.Unlock()
	return nil
}

// fixture is the bundles of an empty store.
type fixture struct {
	*bundle.Bundles

	kv    store.KV
	shelf *shelf
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		kv: memory.New(), now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		shelf: &shelf{archives: map[string][]byte{}, used: map[string]bool{}},
	}
	limits := render.DefaultLimits()
	limits.Archive = 1 << 20
	ids := 0
	b, err := bundle.New(bundle.Config{
		KV: f.kv, Packages: f.shelf, Limits: limits, Clock: func() time.Time { return f.now },
		NewID: func() string { ids++; return fmt.Sprintf("u%d", ids) },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Bundles = b
	return f
}

// reader returns the archive of files.
func reader(files map[string]string) io.Reader { return bytes.NewReader(rendertest.TarGz(files)) }

// keys returns the keys of the store that begin with the prefix.
func (f *fixture) keys(t *testing.T, prefix string) []string {
	t.Helper()
	out := []string{}
	for e, err := range f.kv.List(t.Context(), prefix, "") {
		must(t, err)
		out = append(out, e.Key)
	}
	return out
}

// define makes a definition with a chart of these files.
func (f *fixture) define(t *testing.T, chart map[string]string) {
	t.Helper()
	_, err := f.CreateDefinition(t.Context(), bundle.Definition{Name: "fw", Version: "1"})
	must(t, err)
	must(t, f.UploadDefinition(t.Context(), "fw", "1", reader(chart)))
}

// profile makes a profile p of the definition with these files.
func (f *fixture) profile(t *testing.T, overlay map[string]string) bundle.Key {
	t.Helper()
	k := bundle.Key{Name: "fw", Version: "1", Profile: "p"}
	_, err := f.CreateProfile(t.Context(), bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
	must(t, err)
	must(t, f.UploadProfile(t.Context(), k, reader(overlay)))
	return k
}

// files returns what a package holds.
func (f *fixture) files(t *testing.T, id string) map[string]string {
	t.Helper()
	files, _, err := render.Archive(f.shelf.archives[id], render.DefaultLimits())
	must(t, err)
	out := map[string]string{}
	for name, content := range files {
		out[name] = string(content)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails asserts the kind and a part of the text of an error.
func fails(t *testing.T, reason string, err error, kind nf.Kind, text string) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %s and %q", reason, err, kind, text)
	}
}

func chart(more ...string) map[string]string {
	files := map[string]string{
		"fw/Chart.yaml":        "apiVersion: v2\nname: fw\nversion: 1.0.0\n",
		"fw/values.yaml":       "replicas: 1\n",
		"fw/templates/cm.yaml": "kind: ConfigMap\n",
	}
	for pair := range slices.Chunk(more, 2) {
		files[pair[0]] = pair[1]
	}
	return files
}

func equal(a, b []byte) bool { return bytes.Equal(a, b) }
