package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// MaxMemory is the maximum number of bytes that one rendering of a chart holds,
// in addition to the package.
const MaxMemory = 192 << 20

// Gate limits how many packages are read or rendered at once, since each may
// take about 200 MiB. The others wait in order of arrival. A rendering that
// waits for a region gives its place to another one. A nil Gate has no limits.
type Gate struct {
	door    *semaphore.Weighted // one slot, acquired before a place; see Turn.take
	places  *semaphore.Weighted
	aside   *semaphore.Weighted // bytes that renderings without a place may hold together
	number  int64
	wait    time.Duration
	mu      sync.Mutex
	regions map[string]*line
}

// line limits the renderings for one region, with and without a place, so that
// a slow region delays only its own renderings.
type line struct {
	places *semaphore.Weighted
	users  int // renderings that wait or are running
}

// GateConfig holds the limits of a Gate.
type GateConfig struct {
	// AtOnce limits how many packages are read or rendered at once, and how
	// many renderings for one region are running or wait for it. 0 means the
	// number of processors, but at least 2 and at most 8.
	AtOnce int
	// Wait limits how long a rendering waits for a place. 0 means 30 seconds.
	Wait time.Duration
	// Aside limits how many bytes are held together by the renderings that wait
	// for a region. 0 means MaxMemory for each of AtOnce.
	Aside int
}

// NewGate returns a Gate.
func NewGate(c GateConfig) *Gate {
	const maxWait = 30 * time.Second
	number := int64(cmp.Or(c.AtOnce, min(max(2, runtime.GOMAXPROCS(0)), 8)))
	return &Gate{
		door: semaphore.NewWeighted(1), places: semaphore.NewWeighted(number),
		aside:  semaphore.NewWeighted(cmp.Or(int64(c.Aside), number*MaxMemory)),
		number: number, wait: cmp.Or(c.Wait, maxWait), regions: map[string]*line{},
	}
}

// Turn is the permission to read or render one package. It is not safe for
// concurrent use.
type Turn struct {
	gate   *Gate
	region string
	line   *line // nil: for no region, or not admitted to its line
	placed bool
}

// Enter waits for a place. Unless region is "", it counts as a rendering for
// that region. The caller must call Leave, unless there is an error. It returns
// nf.TooManyRequests if the wait takes too long, and nf.Cancelled or nf.Timeout if the
// context ends.
func (g *Gate) Enter(ctx context.Context, region string) (*Turn, error) {
	t := &Turn{gate: g, region: region}
	if g == nil {
		return t, nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, g.wait, errCrowded)
	defer cancel()
	if region != "" {
		queue := g.join(region)
		if err := queue.places.Acquire(waiting, 1); err != nil {
			g.part(region)
			return nil, g.refusal(waiting, " for cloud region "+region)
		}
		t.line = queue
	}
	if err := g.door.Acquire(waiting, 1); err != nil {
		t.Leave()
		return nil, g.refusal(waiting, "")
	}
	defer g.door.Release(1)
	if err := t.take(waiting); err != nil {
		t.Leave()
		return nil, err
	}
	return t, nil
}

// Leave releases the place.
func (t *Turn) Leave() {
	if t.placed {
		t.gate.places.Release(1)
		t.placed = false
	}
	if t.line != nil {
		t.line.places.Release(1)
		t.gate.part(t.region)
		t.line = nil
	}
}

// Yield releases the place while ask waits for a region, and then waits for a
// place again. It keeps the place if the renderings without one would hold too
// much memory together. held is the number of bytes that this rendering holds.
// The error is that of ask, or of the kinds of Enter. After an error the
// rendering must end, since it may have no place.
func (t *Turn) Yield(ctx context.Context, held int, ask func() error) error {
	g := t.gate
	if g == nil || !g.aside.TryAcquire(int64(held)) {
		return ask()
	}
	defer g.aside.Release(int64(held))
	g.places.Release(1)
	t.placed = false
	if err := ask(); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, g.wait, errCrowded)
	defer cancel()
	return t.take(waiting)
}

// take waits for a place. Renderings that return from a region skip the door,
// so at most one new rendering is ahead of them.
func (t *Turn) take(waiting context.Context) error {
	if err := t.gate.places.Acquire(waiting, 1); err != nil {
		return t.gate.refusal(waiting, "")
	}
	t.placed = true
	return nil
}

var errCrowded = errors.New("the wait takes too long")

// refusal returns the error of a wait that has ended.
func (g *Gate) refusal(waiting context.Context, of string) error {
	cause := context.Cause(waiting)
	switch {
	case errors.Is(cause, errCrowded):
		return &nf.Error{
			Kind: nf.TooManyRequests, Op: "read", Subject: "package", RetryAfter: g.wait / 2,
			Err: fmt.Errorf("%d renderings%s are running; try again", g.number, of),
		}
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return nf.E(nf.Timeout, "read", "package", cause)
	}
	return nf.E(nf.Cancelled, "read", "package", cause)
}

// join returns the line of a region. The caller must call part afterwards.
func (g *Gate) join(region string) *line {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.regions[region]
	if l == nil {
		l = &line{places: semaphore.NewWeighted(g.number)}
		g.regions[region] = l
	}
	l.users++
	return l
}

func (g *Gate) part(region string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.regions[region]; l.users > 1 {
		l.users--
	} else {
		delete(g.regions, region)
	}
}
