package catalog_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// anything accepts every package, and calls check when it does.
type anything struct{ check func() }

func (anything) Fit(render.Files) render.Fit { return render.DefaultFit }

func (a anything) Check(context.Context, render.Files) (render.Summary, error) {
	a.check()
	return render.Summary{}, nil
}

func (anything) Render(context.Context, render.Input) (render.Output, error) {
	return render.Output{}, errors.New("nobody renders it")
}

// newRoomy returns a catalog that takes packages of the sizes that a service does.
func newRoomy(t *testing.T, check func()) *catalog.Catalog {
	t.Helper()
	var ids sync.Mutex
	n := 0
	c, err := catalog.New(catalog.Config{
		KV: storetest.OnDisk(t, memory.New(), func() {}), Limits: render.DefaultLimits(), Renderers: map[string]render.Renderer{"manifest": anything{check}},
		Probe: func(context.Context, nf.Access) (nf.Probe, error) { return nf.Probe{}, nil },
		NewID: func() string { ids.Lock(); defer ids.Unlock(); n++; return fmt.Sprint("new-", n) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// large returns an archive of almost the largest size. Nothing in it is compressed.
func large(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := range 4 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint("file", i), Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(make([]byte, 15<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestUploadsShareMemory uploads eight packages of 60 MiB at once, and looks how
// much is held whenever one was unpacked and all along their way in. It must not
// be parallel.
func TestUploadsShareMemory(t *testing.T) {
	const most = 320 << 20
	content := large(t)
	var mu sync.Mutex
	var peak uint64
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		held := uint64(math.MaxUint64)
		for range 2 { // what is allocated during a collection counts in that one only
			runtime.GC()
			metrics.Read(live)
			held = min(held, live[0].Value.Uint64())
		}
		peak = max(peak, held)
	}
	c := newRoomy(t, look)
	look()
	before := peak
	var all errgroup.Group
	for i := range 8 {
		all.Go(func() error {
			for {
				_, _, err := c.Upload(t.Context(), nf.Package{ID: fmt.Sprint("p", i)}, &lookingReader{r: bytes.NewReader(content), look: look})
				if nf.KindOf(err) != nf.TooManyRequests { // which depends on the machine
					return err
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if held := peak - before; held > most {
		t.Errorf("eight uploads of %d MiB hold %d MiB, and %d is the limit", len(content)>>20, held>>20, most>>20)
	}
}

// lookingReader looks whenever ten more MiB have been read.
type lookingReader struct {
	r    io.Reader
	look func()
	read int
}

func (l *lookingReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(len(p), 1<<20)])
	if l.read/(10<<20) != (l.read+n)/(10<<20) {
		l.look()
	}
	l.read += n
	return n, err
}

// stalled is a body that stops after a part of it, until its client is gone.
type stalled struct {
	r    io.Reader
	gone <-chan struct{}
}

func (s stalled) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if errors.Is(err, io.EOF) {
		<-s.gone
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestUploadsWait has clients that stop sending, and checks that do not end, so that
// others find no room.
func TestUploadsWait(t *testing.T) {
	content := large(t)
	cases := map[string]struct {
		reason  string
		stalled int // clients that stop after 50 MiB
		checked int // packages that are being checked
		small   bool
		cancel  bool
		want    nf.Kind // 0: it is taken
	}{
		"Slow":         {"content that is not complete takes no room", 8, 0, false, false, 0},
		"SmallBesides": {"a small package finds room beside large ones", 8, 3, true, false, 0},
		"Full":         {"a wait has a limit", 0, 4, false, false, nf.TooManyRequests},
		"GoneAway":     {"a client that leaves waits no longer", 0, 4, false, true, nf.Cancelled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy := make(chan struct{}, tc.checked) // has a value for each check that does not end
				end := make(chan struct{})
				c := newRoomy(t, func() {
					select {
					case busy <- struct{}{}:
						<-end
					default:
					}
				})
				ctx, leave := context.WithCancel(t.Context())
				var checked, slow errgroup.Group
				for i := range tc.checked {
					checked.Go(func() error {
						_, _, err := c.Upload(t.Context(), nf.Package{ID: fmt.Sprint("checked", i)}, bytes.NewReader(content))
						return err
					})
				}
				for i := range tc.stalled {
					slow.Go(func() error {
						_, _, err := c.Upload(ctx, nf.Package{ID: fmt.Sprint("slow", i)}, stalled{r: bytes.NewReader(content[:50<<20]), gone: ctx.Done()})
						if err == nil {
							return errors.New("half a package was taken")
						}
						return nil
					})
				}
				synctest.Wait()
				body := content
				if tc.small {
					body = archive("small")
				}
				mine, cancel := context.WithCancel(t.Context())
				if tc.cancel {
					time.AfterFunc(time.Second, cancel)
				}
				began := time.Now()
				_, _, err := c.Upload(mine, nf.Package{ID: "mine"}, bytes.NewReader(body))
				if (err != nil) != (tc.want != 0) || err != nil && nf.KindOf(err) != tc.want {
					t.Errorf("%s: %v (%s)", tc.reason, err, nf.KindOf(err))
				}
				if tc.want == nf.TooManyRequests && (nf.RetryAfterOf(err) == 0 || time.Since(began) > time.Minute) {
					t.Errorf("%s: it says after %s to come again after %s", tc.reason, time.Since(began), nf.RetryAfterOf(err))
				}
				cancel()
				close(end)
				if err := checked.Wait(); err != nil { // of one content: each waits for the one that writes its blob
					t.Error(err)
				}
				leave()
				if err := slow.Wait(); err != nil {
					t.Error(err)
				}
				if _, _, err := c.Upload(t.Context(), nf.Package{ID: "last"}, bytes.NewReader(content)); err != nil {
					t.Errorf("%s: room that was taken is not given back: %v", tc.reason, err)
				}
			})
		})
	}
}
