package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// TestAtOnce has more charts than may be read and rendered at once: two wait for a
// region, and keep their places since they would hold too much memory without one.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		ask    func(ctx context.Context, h Renderer) error
	}{
		"Render": {"a rendering waits", func(ctx context.Context, h Renderer) error {
			_, err := h.Render(ctx, input(one(configMap)))
			return err
		}},
		"Check": {"so does a check", func(ctx context.Context, h Renderer) error {
			_, err := h.Check(ctx, one(configMap))
			return err
		}},
		"Released": {"and what reads a release", func(ctx context.Context, h Renderer) error {
			in := input(one(configMap))
			in.Region = &region{Objects: []map[string]any{{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "ns", "labels": map[string]any{"owner": "helm", "name": "rel", "version": "1"}},
			}}}
			_, _, _, err := h.Released(ctx, in)
			return err
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := New(Config{Gate: render.NewGate(render.GateConfig{AtOnce: 2, Wait: 10 * time.Second, Aside: 1})})
				slow := &slowRegion{answer: make(chan struct{})}
				ended := make(chan error)
				for range 2 {
					go func() {
						_, err := h.Render(t.Context(), inRegion(lookingUp, "east", slow))
						ended <- err
					}()
				}
				synctest.Wait()
				before := time.Now()
				err := tc.ask(t.Context(), h)
				if nf.KindOf(err) != nf.TooManyRequests || nf.RetryAfterOf(err) != 5*time.Second || !strings.Contains(fmt.Sprint(err), "2 renderings are running; try again") {
					t.Errorf("%s, and is then refused: %v", tc.reason, err)
				}
				if waited := time.Since(before); waited != 10*time.Second {
					t.Errorf("%s: for %v", tc.reason, waited)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := tc.ask(ctx, h); nf.KindOf(err) != nf.Cancelled || !errors.Is(err, context.Canceled) {
					t.Errorf("%s no longer than its caller: %v", tc.reason, err)
				}
				go func() { ended <- tc.ask(t.Context(), h) }()
				synctest.Wait()
				close(slow.answer)
				for range 3 {
					if err := <-ended; nf.KindOf(err) == nf.TooManyRequests || nf.KindOf(err) == nf.Cancelled || nf.KindOf(err) == nf.Timeout {
						t.Errorf("%s for its turn: %v", tc.reason, err)
					}
				}
			})
		})
	}
}

// TestZero has no bound on how many there are at once.
func TestZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowRegion{answer: make(chan struct{})}
		ended := make(chan error)
		const many = 100
		for range many {
			go func() {
				in := input(one("{{ $_ := lookup \"v1\" \"Node\" \"\" \"a\" }}" + configMap))
				in.Region = slow
				_, err := Renderer{}.Render(t.Context(), in)
				ended <- err
			}()
		}
		synctest.Wait()
		close(slow.answer)
		for range many {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
