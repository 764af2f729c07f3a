package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// process counts the events in the life of a process, and ends it.
type process struct {
	site  *site
	death death

	mu     sync.Mutex
	alive  bool // it has begun to count
	events int
	over   bool
	gone   chan struct{}
}

var errDead = errors.New("the process is dead")

func (p *process) born() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive = true
}

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// event counts one event and says how the process dies at it, if it does.
func (p *process) event() (how string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return "", errDead
	}
	if !p.alive {
		return "", nil
	}
	if p.events++; p.events != p.death.at {
		return "", nil
	}
	return p.death.how, nil
}

func (p *process) die() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		close(p.gone)
	}
	return errDead
}

// beforeWrite counts the writes to the store; leases are no event, for they have
// no part in the operation.
func (p *process) beforeWrite(method, key string) error {
	err := error(nil)
	if (method == "Put" || method == "Delete") && !strings.HasPrefix(key, "replicas/") {
		var how string
		if how, err = p.event(); how == before {
			err = p.die()
		} else if how != "" {
			p.mu.Lock()
			p.death.at = -1 // after the write
			p.mu.Unlock()
		}
	} else if p.dead() {
		err = errDead
	}
	if err != nil {
		return nf.E(nf.Unreachable, "write", key, err)
	}
	return nil
}

func (p *process) afterWrite(method, key string) error {
	if method != "Put" && method != "Delete" || strings.HasPrefix(key, "replicas/") {
		return nil
	}
	p.mu.Lock()
	now := p.death.at == -1
	p.mu.Unlock()
	if now {
		return nf.E(nf.Unreachable, "write", key, p.die())
	}
	return nil
}

// follow waits until the operation ends or the process dies.
func (p *process) follow(t *testing.T, e *engine, op nf.Operation) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-p.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, err := range e.Follow(ctx, op.ID) {
		if err != nil {
			return // dead
		}
	}
}

// mortalCluster is the cluster as a process sees it that dies.
type mortalCluster struct {
	*fakeCluster
	process *process
}

// call carries out a call of the process, as far as it lives.
func (c mortalCluster) call(whole, half func()) error {
	how, err := c.process.event()
	switch {
	case err != nil:
	case how == before:
		err = c.process.die()
	case how == during:
		half()
		err = c.process.die()
	default:
		if whole(); how == after {
			err = c.process.die()
		}
	}
	if err != nil {
		return nf.E(nf.Unreachable, "reach", "the region", err)
	}
	return nil
}

func (c mortalCluster) Apply(ctx context.Context, owner string, objects []*unstructured.Unstructured) (changes []nf.Change, err error) {
	dead := c.call(
		func() { changes, err = c.fakeCluster.Apply(ctx, owner, objects) },
		func() { _, err = c.fakeCluster.Apply(ctx, owner, objects[:len(objects)/2]) },
	)
	if dead != nil {
		return nil, dead
	}
	return changes, err
}

func (c mortalCluster) Delete(ctx context.Context, owner string, refs []nf.Ref) (changes []nf.Change, err error) {
	dead := c.call(
		func() { changes, err = c.fakeCluster.Delete(ctx, owner, refs) },
		func() { _, err = c.fakeCluster.Delete(ctx, owner, refs[:len(refs)/2]) },
	)
	if dead != nil {
		return nil, dead
	}
	return changes, err
}

func (c mortalCluster) Orphan(ctx context.Context, owner string, refs []nf.Ref) (changes []nf.Change, err error) {
	dead := c.call(
		func() { changes, err = c.fakeCluster.Orphan(ctx, owner, refs) },
		func() { _, err = c.fakeCluster.Orphan(ctx, owner, refs[:len(refs)/2]) },
	)
	if dead != nil {
		return nil, dead
	}
	return changes, err
}

func (c mortalCluster) EnsureNamespace(ctx context.Context, namespace, project string) (is nf.Namespace, err error) {
	if dead := c.call(func() { is, err = c.fakeCluster.EnsureNamespace(ctx, namespace, project) }, func() {}); dead != nil {
		return nf.Namespace{}, dead
	}
	return is, err
}

func (c mortalCluster) RemoveNamespace(ctx context.Context, namespace string) (kept []nf.Ref, err error) {
	if dead := c.call(func() { kept, err = c.fakeCluster.RemoveNamespace(ctx, namespace) }, func() {}); dead != nil {
		return nil, dead
	}
	return kept, err
}

func (c mortalCluster) Ensure(ctx context.Context, objects []*unstructured.Unstructured) (changes []nf.Change, err error) {
	half := objects[:len(objects)/2]
	if dead := c.call(func() { changes, err = c.fakeCluster.Ensure(ctx, objects) }, func() { _, _ = c.fakeCluster.Ensure(ctx, half) }); dead != nil {
		return nil, dead
	}
	return changes, err
}

func (c mortalCluster) Adopt(ctx context.Context, owner string, claim nf.Claim, refs []nf.Ref) (changes []nf.Change, err error) {
	half := refs[:len(refs)/2]
	if dead := c.call(func() { changes, err = c.fakeCluster.Adopt(ctx, owner, claim, refs) }, func() { _, _ = c.fakeCluster.Adopt(ctx, owner, claim, half) }); dead != nil {
		return nil, dead
	}
	return changes, err
}
