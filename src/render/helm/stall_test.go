package helm

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const lookingUp = "{{ $_ := lookup \"v1\" \"Node\" \"\" \"a\" }}" + configMap

// inRegion is the input of a chart with one template.
func inRegion(template, id string, r render.Region) render.Input {
	in := input(one(template))
	in.Builtins, in.Region = map[string]string{"cloud_region_id": id}, r
	return in
}

// TestStalledRegion has many renderings that wait for a region, and others that do
// not need it.
func TestStalledRegion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		ask    func(ctx context.Context, h Renderer) error
	}{
		"Render": {"a chart for another region", func(ctx context.Context, h Renderer) error {
			_, err := h.Render(ctx, inRegion(lookingUp, "west", &region{}))
			return err
		}},
		"Check": {"an upload", func(ctx context.Context, h Renderer) error {
			_, err := h.Check(ctx, one(configMap))
			return err
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const many = 20
				h := New(Config{Gate: render.NewGate(render.GateConfig{AtOnce: 2, Wait: 10 * time.Second})})
				slow := &slowRegion{answer: make(chan struct{})}
				ended := make(chan error)
				for range many {
					go func() {
						_, err := h.Render(t.Context(), inRegion(lookingUp, "east", slow))
						ended <- err
					}()
				}
				synctest.Wait()
				before := time.Now()
				if err := tc.ask(t.Context(), h); err != nil || time.Since(before) != 0 {
					t.Errorf("%s waits %v for a region that does not answer: %v", tc.reason, time.Since(before), err)
				}
				close(slow.answer)
				for range many {
					if err := <-ended; err != nil {
						t.Errorf("a rendering whose region answers late: %v", err)
					}
				}
			})
		})
	}
}

// TestTimeOfOthers does not count the time for which a rendering waits for its place.
func TestTimeOfOthers(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Second
	cases := map[string]struct {
		reason string
		region time.Duration // for each of two lookups
		others time.Duration // from then on
		want   string
	}{
		"Others": {"it waits for others longer than it may take", 14 * time.Second, 20 * time.Second, "<nil>"},
		"Region": {"the region takes longer than that", 16 * time.Second, 20 * time.Second, "cannot render package: c/templates/a.yaml:1: the rendering takes more than 30s"},
		"Full":   {"the others take too long", 14 * time.Second, 26 * time.Second, "cannot read package: 1 renderings are running; try again"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := render.NewGate(render.GateConfig{AtOnce: 1, Wait: 25 * time.Second})
				busy := &busyRegion{gate: g, takes: tc.region, others: tc.others}
				_, err := New(Config{Gate: g, Time: limit}).Render(t.Context(), inRegion(lookingUp[:len(lookingUp)-len(configMap)]+lookingUp, "east", busy))
				if got := fmt.Sprint(err); got != tc.want {
					t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
				}
				busy.left.Wait()
			})
		})
	}
}

// busyRegion takes its time, and then another rendering has the place.
type busyRegion struct {
	region

	gate          *render.Gate
	takes, others time.Duration
	left          sync.WaitGroup
}

func (b *busyRegion) Lookup(ctx context.Context, _ nf.Ref) (map[string]any, error) {
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	turn, err := b.gate.Enter(ctx, "")
	if err != nil {
		return nil, err
	}
	b.left.Go(func() {
		<-time.After(b.others)
		turn.Leave()
	})
	return nil, nil
}
