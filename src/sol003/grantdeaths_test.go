package sol003_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// nfvo is an NFVO whose answers differ: its nth grant is for zone n.
type nfvo struct {
	takes   time.Duration // until it decides; 0: at once
	refuses bool

	mu    sync.Mutex
	asked int
}

func (n *nfvo) decide(number int) (nf.Grant, error) {
	if n.refuses {
		return nf.Grant{}, nf.E(nf.Forbidden, "get", "a grant", nil)
	}
	return nf.Grant{ID: fmt.Sprint(number), Zones: map[string]string{"VDU1": fmt.Sprint("zone-", number)}}, nil
}

// Ask implements sol003.Granter.
func (n *nfvo) Ask(context.Context, nf.GrantRequest) (g nf.Grant, pending nf.PendingGrant, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if n.takes > 0 {
		return g, nf.PendingGrant{At: fmt.Sprint(n.asked)}, nil
	}
	g, err = n.decide(n.asked)
	return g, pending, err
}

// Await implements sol003.Granter.
func (n *nfvo) Await(ctx context.Context, _ nf.GrantRequest, pending nf.PendingGrant) (nf.Grant, error) {
	number := 0
	if _, err := fmt.Sscan(pending.At, &number); err != nil || number > n.asked {
		return nf.Grant{}, nf.E(nf.Unsupported, "get", "the grant at "+pending.At, err)
	}
	delay.For(ctx, n.takes, nil)
	if ctx.Err() != nil {
		return nf.Grant{}, nf.E(nf.Unreachable, "get", "the grant", context.Cause(ctx))
	}
	return n.decide(number)
}

// unknown describes the VNFs and instances whose zone is not that of the grant of their
// instantiation.
func (n *nfvo) unknown(t *testing.T, w *world) (out []string) {
	t.Helper()
	if n == nil {
		return nil
	}
	vnfs := store.NewTable[nf.VNF](w.kv, "vnfs/", "VNF")
	for o, err := range store.NewTable[nf.Occurrence](w.kv, "occurrences/", "occurrence").All(t.Context(), "") {
		must(t, err)
		v, err := vnfs.Get(t.Context(), o.VNF)
		must(t, err)
		if o.State != nf.OccurrenceCompleted {
			continue
		}
		w.engine.mu.Lock()
		placed := fmt.Sprint(any(w.engine.instances[o.VNF].Inputs.OOF))
		w.engine.mu.Unlock()
		zone := "zone-" + o.Grant
		profiles := fmt.Sprint([]map[string]any{{nf.ComputeProfilesKey: []any{map[string]any{"workload": "web", "profile": map[string]any{"node": map[string]any{"topology.kubernetes.io/zone": zone}}}}}})
		if v.Instantiated.Zones["VDU1"] != zone || placed != profiles {
			out = append(out, fmt.Sprintf("the zone of grant %s: the VNF is in %v, and the instance in %s", o.Grant, v.Instantiated.Zones, placed))
		}
	}
	return out
}

// crashingNFVO is the NFVO as a process reaches it that may die.
type crashingNFVO struct {
	nfvo    *nfvo
	process *operationtest.Process
}

var _ sol003.Granter = crashingNFVO{}

// asking is the answer to a request for a grant.
type asking struct {
	grant   nf.Grant
	pending nf.PendingGrant
}

func (n crashingNFVO) Ask(ctx context.Context, req nf.GrantRequest) (nf.Grant, nf.PendingGrant, error) {
	a, err := operationtest.Call(n.process, "ask for the grant", func() (a asking, err error) {
		a.grant, a.pending, err = n.nfvo.Ask(ctx, req)
		return a, err
	}, nil)
	return a.grant, a.pending, err
}

func (n crashingNFVO) Await(ctx context.Context, req nf.GrantRequest, pending nf.PendingGrant) (nf.Grant, error) {
	return operationtest.Call(n.process, "await the grant", func() (nf.Grant, error) { return n.nfvo.Await(ctx, req, pending) }, nil)
}

// TestGrantDeaths lets a process die or stall at each call of an occurrence that needs a
// grant. The NFVO is perhaps asked twice, but only one of its grants has an effect.
func TestGrantDeaths(t *testing.T) {
	cases := map[string]struct {
		takes   time.Duration
		refuses bool
	}{"Granted": {0, false}, "GrantedLater": {10 * time.Second, false}, "Refused": {0, true}, "RefusedLater": {10 * time.Second, true}}
	scenarios := map[string]operationtest.Scenario{}
	for name, tc := range cases {
		scenarios[name] = operationtest.Scenario{Deaths: 40, World: func(t *testing.T) operationtest.World {
			t.Helper()
			w := newWorld(t)
			m, stop := w.start(t)
			d := disturbed{vnf: prepared(t, m, instantiation), request: instantiation, nfvo: &nfvo{takes: tc.takes, refuses: tc.refuses}}
			stop()
			return w.crashing(t, d)
		}}
	}
	operationtest.Deaths(t, scenarios)
}

// TestPendingGrantResumed stops a replica while the NFVO decides. The next one waits for the
// same decision.
func TestPendingGrantResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, granter := newWorld(t), &nfvo{takes: 10 * time.Minute}
		grants := func(c *config) { c.Granter = granter }
		m, stop := w.start(t, grants)
		id := create(t, m)
		o, err := m.Instantiate(t.Context(), id, instantiate)
		must(t, err)
		<-time.After(time.Minute)
		stop()
		m, _ = w.start(t, grants)
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceCompleted || o.Grant != "1" || granter.asked != 1 {
			t.Errorf("the NFVO was asked %d times, and the occurrence is %s with grant %q: %+v", granter.asked, o.State, cmp.Or(o.Grant, "none"), o.Failure)
		}
	})
}
