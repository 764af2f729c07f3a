package cluster

import (
	"context"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// mostGets is the number of targets in a scope up to which each of them is read
// on its own. The cost of a list grows with the number of objects in the scope.
const mostGets = 16

// finder finds the targets that exist.
type finder struct {
	client  *client
	targets []target

	mu    sync.Mutex
	found map[string]*metav1.ObjectMeta // by Ref.Key
}

func newFinder(c *client, targets []target) *finder {
	return &finder{client: c, targets: targets, found: map[string]*metav1.ObjectMeta{}}
}

// owned returns the metadata of those targets that exist and are the owner's,
// by Ref.Key. It makes one list per scope.
func (f *finder) owned(ctx context.Context, owner nf.Subject) (map[string]*metav1.ObjectMeta, error) {
	wanted := keysOf(f.targets)
	var requests []func() error
	for _, p := range scopesOf(f.targets) {
		requests = append(requests, func() error {
			found, err := f.client.pick(ctx, p, ownedBy(owner), wanted)
			return f.client.region.fail(ctx, "list", p.kind.Kind+" objects", f.add(found, err))
		})
	}
	return f.run(requests)
}

// lookups returns the requests that find the targets, whatever their owner. They
// get the targets, or list a scope with more than mostGets of them.
func (f *finder) lookups(ctx context.Context) []func() error {
	asked := map[string][]target{}
	for _, t := range f.targets {
		key := t.kind.in(t.ref.Namespace).key()
		asked[key] = append(asked[key], t)
	}
	var requests []func() error
	for _, p := range scopesOf(f.targets) {
		wanted := asked[p.key()]
		fail := func(err error) error { return f.client.region.fail(ctx, "look for", p.kind.Kind+" objects", err) }
		if len(wanted) > mostGets {
			requests = append(requests, func() error {
				found, err := f.client.pick(ctx, p, "", keysOf(wanted))
				return fail(f.add(found, err))
			})
			continue
		}
		for _, t := range wanted {
			requests = append(requests, func() error {
				m, found, err := f.client.meta(ctx, t)
				if !found {
					return fail(err)
				}
				return f.add(map[string]*metav1.ObjectMeta{t.ref.Key(): m}, nil)
			})
		}
	}
	return requests
}

// run sends requests in parallel, and returns what they found.
func (f *finder) run(requests []func() error) (map[string]*metav1.ObjectMeta, error) {
	if err := each(f.client.parallel, len(requests), func(i int) error { return requests[i]() }); err != nil {
		return nil, err
	}
	return f.found, nil
}

// add adds the result of a request, and returns its error.
func (f *finder) add(found map[string]*metav1.ObjectMeta, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.found, found)
	return err
}
