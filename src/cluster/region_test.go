package cluster

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// TestRegionGoesAndReturns takes a real API server away and gives it back.
func TestRegionGoesAndReturns(t *testing.T) {
	c, r, ns := recorded(t)
	apply := func(value string) error {
		_, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{configMap(t, "vnf-1", ns, "a", value)})
		return err
	}
	if err := apply("1"); err != nil {
		t.Fatal(err)
	}
	heal := r.Refuse()
	var err error
	for nf.ReasonOf(err) != "breaker" {
		err = apply("2")
		wantKind(t, err, nf.Unreachable)
	}
	r.Reset()
	if err := apply("2"); nf.ReasonOf(err) != "breaker" || nf.RetryAfterOf(err) == 0 {
		t.Errorf("a region that is away is left alone for a while: %v", err)
	}
	heal()
	for err := apply("2"); err != nil; err = apply("2") {
		wantKind(t, err, nf.Unreachable)
		<-time.After(nf.RetryAfterOf(err))
	}
	if v := get(t, c, nf.RefOf(configMap(t, "vnf-1", ns, "a", ""))).Object["data"].(map[string]any)["key"]; v != "2" {
		t.Errorf("a is %q, want what was applied last", v)
	}
}

func TestBlackHoleHurtsNobodyElse(t *testing.T) {
	dead, r, ns := recorded(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	mustApply(t, dead, "vnf-1", u)
	heal := r.BlackHole(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := dead.Apply(ctx, instance("vnf-1"), []*unstructured.Unstructured{u})
		done <- err
	}()
	alive, _, elsewhere := recorded(t)
	mustApply(t, alive, "vnf-1", configMap(t, "vnf-1", elsewhere, "a", "1"))
	cancel()
	wantKind(t, <-done, nf.Cancelled)
	heal()
	diff(t, "what comes back is what it was", map[string]nf.Action{"a": nf.Unchanged}, actions(mustApply(t, dead, "vnf-1", u)))
}

// TestRun watches a real region whose access another client replaces.
func TestRun(t *testing.T) {
	ns := newNamespace(t)
	access := make(chan nf.Access, 1)
	access <- accessTo(t, clustertest.Kubeconfig(t))
	regions := func(ctx context.Context) ([]nf.Region, error) {
		current := <-access
		access <- current
		return []nf.Region{{ID: "east", Access: current}}, ctx.Err()
	}
	asked := make(chan Call, 100)
	p := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Observe: func(c Call) { asked <- c }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx, regions) }()

	call := <-asked
	state := p.State("east")
	if call.Region != "east" || call.Code != "200" || call.Took <= 0 || state.Condition != nf.RegionAvailable || state.Credential.Kind == "" {
		t.Errorf("a real region is asked and available: %+v, %+v", call, state)
	}
	c := p.clusters()["east"]
	made := mustApply(t, c, "vnf-1", configMap(t, "vnf-1", ns, "a", "1"))
	var last error
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), made) {
		if last = err; h.Status == nf.Current {
			changed := <-access
			changed.ServerName = "localhost" // which its certificate has, too
			access <- changed
		}
	}
	wantKind(t, last, nf.Unreachable)
	if nf.ReasonOf(last) != "replaced" {
		t.Errorf("a watch ends when its region has another access: %v", last)
	}
	if _, err := p.clusters()["east"].Health(t.Context(), instance("vnf-1"), refs(configMap(t, "vnf-1", ns, "a", "1"))); err != nil {
		t.Errorf("the region is there under its new access: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	p.Forget("east")
}
