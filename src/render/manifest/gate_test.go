package manifest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// TestAtOnce has a package more than may be read and rendered at once.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		ask    func(ctx context.Context, m Renderer) error
	}{
		"Render": {"a rendering waits", func(ctx context.Context, m Renderer) error {
			_, err := m.Render(ctx, render.Input{Files: pkg(head)})
			return err
		}},
		"Check": {"so does a check", func(ctx context.Context, m Renderer) error {
			_, err := m.Check(ctx, pkg(head))
			return err
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := render.NewGate(render.GateConfig{AtOnce: 1, Wait: time.Second})
				turn, err := g.Enter(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				if err := tc.ask(t.Context(), New(g)); nf.KindOf(err) != nf.TooManyRequests {
					t.Errorf("%s, and is then refused: %v", tc.reason, err)
				}
				turn.Leave()
				for range 2 {
					if err := tc.ask(t.Context(), New(g)); err != nil {
						t.Errorf("%s for a place that is returned: %v", tc.reason, err)
					}
				}
			})
		})
	}
}
