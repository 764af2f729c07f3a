package cluster

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func budget(t *testing.T, ns, name, available string) *unstructured.Unstructured {
	t.Helper()
	return objects(t, "vnf-1", ns, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: `+name+`}, spec: {minAvailable: `+available+`, selector: {matchLabels: {app: web}}}}`)[0]
}

// TestEvict evicts pods that a disruption budget guards.
func TestEvict(t *testing.T) {
	c, ns := sandbox(t)
	web := workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,")
	guard := budget(t, ns, "guard", "2")
	await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", web, guard), nf.Current)
	pods := func() []nf.HealPod {
		t.Helper()
		var out []nf.HealPod
		all, err := c.Pods(t.Context(), instance("vnf-1"), refs(web))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.Status == nf.Current {
				out = append(out, nf.HealPod{Ref: p.Ref, UID: p.UID, Workload: p.Workload})
			}
		}
		return out
	}
	first := pods()[0]
	evict := func(pod nf.HealPod, task nf.HealTask) (nf.Change, error) {
		return c.Evict(t.Context(), instance("vnf-1"), pod, task)
	}
	short := nf.HealTask{Patience: time.Second}
	_, err := evict(first, short)
	if nf.KindOf(err) != nf.Failed || nf.ReasonOf(err) != nf.ReasonBudget || !strings.Contains(err.Error(), "The disruption budget guard needs 2 healthy pods") {
		t.Errorf("the budget is named: %v", err)
	}
	if _, err = c.Evict(t.Context(), instance("vnf-2"), first, short); nf.KindOf(err) != nf.Conflict {
		t.Errorf("a pod of another instance: %v", err)
	}
	if _, err := c.As(ns+"/without-rights").Evict(t.Context(), instance("vnf-1"), first, short); nf.ReasonOf(err) != nf.ReasonForbidden || !strings.Contains(err.Error(), `cannot get resource "pods"`) {
		t.Errorf("a missing permission is named: %v", err)
	}
	mustApply(t, c, "vnf-1", budget(t, ns, "other", "0"))
	if _, err = evict(first, short); nf.ReasonOf(err) != nf.ReasonBudget || !strings.Contains(err.Error(), "guard and other both select it") {
		t.Errorf("two budgets: %v", err)
	}
	change, err := evict(first, nf.HealTask{Force: true})
	if err != nil || change.Action != nf.Deleted {
		t.Fatalf("force: %+v, %v", change, err)
	}
	await(t.Context(), t, c, "vnf-1", []nf.Change{change}, nf.Absent)
	if change, err = evict(first, short); err != nil || change.Action != nf.Unchanged {
		t.Errorf("a pod that is gone: %+v, %v", change, err)
	}

	if _, err := c.Delete(t.Context(), instance("vnf-1"), refs(budget(t, ns, "other", "0"))); err != nil {
		t.Fatal(err)
	}
	mustApply(t, c, "vnf-1", budget(t, ns, "guard", "1"))
	for len(pods()) < 2 {
		<-time.After(10 * time.Millisecond)
	}
	if _, err := evict(pods()[1], nf.HealTask{Force: true, Grace: new(time.Duration(0))}); err != nil {
		t.Errorf("without a grace period: %v", err)
	}
	for len(pods()) < 2 {
		<-time.After(10 * time.Millisecond)
	}
	second := pods()[0]
	if change, err = evict(second, nf.HealTask{Patience: time.Minute}); err != nil || change.Action != nf.Deleted {
		t.Fatalf("with a budget that allows it: %+v, %v", change, err)
	}
	await(t.Context(), t, c, "vnf-1", []nf.Change{change}, nf.Absent)
}
