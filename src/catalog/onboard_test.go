package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// of returns a fetch that passes content.
func of(content []byte) catalog.Fetch {
	return func(ctx context.Context, into func(context.Context, io.Reader) error) error {
		return into(ctx, bytes.NewReader(content))
	}
}

// stateOf returns the state of the package p.
func (f *fixture) stateOf(ctx context.Context, t *testing.T) nf.PackageState {
	t.Helper()
	p, err := f.Package(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	return p.StateAt(time.Now())
}

func TestOnboard(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	data := map[string]any{"ticket": "4711"}
	if _, err := f.CreatePackage(ctx, nf.Package{ID: "p", Name: "Mine", UserData: data, Project: "blue"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Onboard(ctx, nf.Package{ID: "p"}, of([]byte("garbage"))); nf.KindOf(err) != nf.Invalid {
		t.Fatalf("garbage: %v", err)
	}
	var states []nf.PackageState
	f.between = func(key string) {
		if strings.HasPrefix(key, "chunks/") || strings.HasPrefix(key, "blobs/") {
			states = append(states, f.stateOf(ctx, t))
		}
	}
	p, err := f.Onboard(ctx, nf.Package{ID: "p", Kind: "manifest", Source: "https://example.org/p"}, of(archive("one")))
	if err != nil {
		t.Fatal(err)
	}
	if want := []nf.PackageState{nf.PackageUploading, nf.PackageProcessing}; !slices.Equal(slices.Compact(states), want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if p.StateAt(time.Now()) != nf.PackageOnboarded || p.Name != "Mine" || p.Project != "blue" || p.Source != "https://example.org/p" || p.Onboarding != nil || p.Failure != nil || !cmp.Equal(p.UserData, data) {
		t.Errorf("onboarded: %+v", p)
	}
	f.between = func(string) {}
	if _, err := f.Onboard(ctx, nf.Package{ID: "p"}, of(archive("two"))); nf.KindOf(err) != nf.Conflict {
		t.Errorf("content of a package that has some: %v", err)
	}
	if err := f.RemovePackage(ctx, "p"); err != nil {
		t.Error(err)
	}
	if left := f.keys(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestOnboardRefuses has attempts that fail; each leaves the package without content.
func TestOnboardRefuses(t *testing.T) {
	gone := errors.New("the source has gone")
	cases := map[string]struct {
		reason string
		as     nf.Package
		fetch  func(f *fixture, t *testing.T) catalog.Fetch
		want   nf.Kind
	}{
		"Absent":  {"a package that does not exist", nf.Package{ID: "q"}, func(*fixture, *testing.T) catalog.Fetch { return of(archive("one")) }, nf.NotFound},
		"Garbage": {"content that is not an archive", nf.Package{ID: "p"}, func(*fixture, *testing.T) catalog.Fetch { return of([]byte("garbage")) }, nf.Invalid},
		"Kind":    {"content of another kind", nf.Package{ID: "p", Kind: "csar"}, func(*fixture, *testing.T) catalog.Fetch { return of(archive("one")) }, nf.Invalid},
		"Large":   {"content above the limit", nf.Package{ID: "p"}, func(*fixture, *testing.T) catalog.Fetch { return of(make([]byte, 5000)) }, nf.TooLarge},
		"Source": {"a source that fails at its end", nf.Package{ID: "p"}, func(*fixture, *testing.T) catalog.Fetch {
			return func(ctx context.Context, into func(context.Context, io.Reader) error) error {
				return errors.Join(into(ctx, bytes.NewReader(archive("one"))), gone)
			}
		}, nf.Internal},
		"Nothing": {"a source without content", nf.Package{ID: "p"}, func(*fixture, *testing.T) catalog.Fetch {
			return func(context.Context, func(context.Context, io.Reader) error) error { return nil }
		}, nf.Internal},
		"Twice": {"a second attempt while the first one runs", nf.Package{ID: "p"}, func(f *fixture, t *testing.T) catalog.Fetch {
			return func(ctx context.Context, _ func(context.Context, io.Reader) error) error {
				_, err := f.Onboard(ctx, nf.Package{ID: "p"}, of(archive("two")))
				if nf.KindOf(err) != nf.Busy {
					t.Errorf("the second attempt: %v, want Busy", err)
				}
				return err
			}
		}, nf.Busy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if _, err := f.CreatePackage(t.Context(), nf.Package{ID: "p"}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Onboard(t.Context(), tc.as, tc.fetch(f, t)); nf.KindOf(err) != tc.want {
				t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
			}
			if got := f.stateOf(t.Context(), t); got != nf.PackageCreated {
				t.Errorf("%s: state %q", tc.reason, got)
			}
			p, err := f.Package(t.Context(), "p")
			if err != nil {
				t.Fatal(err)
			}
			if failed := tc.as.ID == "p"; failed != (p.Failure != nil) || failed && (p.Failure.Kind != tc.want || strings.Contains(p.Failure.Message, gone.Error())) {
				t.Errorf("%s: the package records %+v", tc.reason, p.Failure)
			}
			if left := f.keys(t); !slices.Equal(left, []string{"packages/p"}) {
				t.Errorf("%s: left behind: %v", tc.reason, left)
			}
		})
	}
}

// TestOnboardLate has an attempt that stalls for longer than its time. Another one may
// begin then, and the first one must not replace its content.
func TestOnboardLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := newFixture(t), t.Context()
		if _, err := f.CreatePackage(ctx, nf.Package{ID: "p"}); err != nil {
			t.Fatal(err)
		}
		_, err := f.Onboard(ctx, nf.Package{ID: "p"}, func(ctx context.Context, into func(context.Context, io.Reader) error) error {
			pause(ctx, 4*time.Minute)
			if got := f.stateOf(ctx, t); got != nf.PackageUploading {
				t.Errorf("after 4 minutes: %q", got)
			}
			pause(ctx, 2*time.Minute)
			if got := f.stateOf(ctx, t); got != nf.PackageCreated {
				t.Errorf("after 6 minutes: %q, want that the attempt has ended", got)
			}
			if _, err := f.Onboard(ctx, nf.Package{ID: "p"}, of(archive("two"))); err != nil {
				t.Errorf("the second attempt: %v", err)
			}
			return into(ctx, bytes.NewReader(archive("one")))
		})
		if nf.KindOf(err) != nf.Conflict {
			t.Errorf("the late attempt: %v, want Conflict", err)
		}
		_, files, done, err := f.Files(ctx, "p")
		if err != nil || !strings.Contains(string(files["a.yaml"]), "two") {
			t.Fatalf("content %v, %v, want that of the second attempt", files, err)
		}
		done()
		if err := f.RemovePackage(ctx, "p"); err != nil {
			t.Error(err)
		}
		if left := f.keys(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestOnboardRenews has content that arrives slowly, and is renewed.
func TestOnboardRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := newFixture(t), t.Context()
		if _, err := f.CreatePackage(ctx, nf.Package{ID: "p"}); err != nil {
			t.Fatal(err)
		}
		_, err := f.Onboard(ctx, nf.Package{ID: "p"}, func(ctx context.Context, into func(context.Context, io.Reader) error) error {
			return into(ctx, slow{ctx, bytes.NewReader(archive("one")), func() {
				if got := f.stateOf(ctx, t); got != nf.PackageUploading {
					t.Errorf("while content arrives: %q", got)
				}
			}})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// slow needs two minutes for each 50 bytes.
type slow struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one test
	from io.Reader
	look func()
}

func (s slow) Read(p []byte) (int, error) {
	pause(s.ctx, 2*time.Minute)
	s.look()
	return s.from.Read(p[:min(len(p), 50)])
}

func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

func TestFileOfPackage(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	if _, _, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive("one"))); err != nil {
		t.Fatal(err)
	}
	p, file, size, err := f.File(ctx, "p", "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil || int64(len(content)) != size || !strings.Contains(string(content), "one") || p.ID != "p" {
		t.Errorf("file %q of %d bytes, %v", content, size, err)
	}
	if _, _, _, err := f.File(ctx, "p", "../a.yaml"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("a file that is not there: %v", err)
	}
	_, whole, err := f.ContentAt(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	var some [2]byte
	if _, err := whole.ReadAt(some[:], 0); err != nil || string(some[:]) != "PK" {
		t.Errorf("the first bytes %q, %v", some, err)
	}
}
