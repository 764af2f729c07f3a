package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestScaleOfAttached scales a workload with a fixed address, which only one pod can have.
func TestScaleOfAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		up := func(a nf.Attachment) string {
			op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web", Networks: []nf.Attachment{a}}})
			if err != nil {
				t.Fatal(err)
			}
			return e.end(t, op).Subject.ID
		}
		to := func(n int64) nf.ActRequest {
			return nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "Deployment/web", Replicas: &n}}}
		}
		fixed := up(nf.Attachment{Network: "oam", Workload: "web", IPs: []string{"10.1.0.9"}})
		_, err := e.Act(t.Context(), fixed, to(2))
		if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].Field != "workloads[0]" || !strings.Contains(err.Error(), "cannot have 2 pods with the attachment to network oam: ips: are too few") {
			t.Errorf("two pods with one address: %v", err)
		}
		if _, err := e.PreviewAct(t.Context(), fixed, to(2)); nf.KindOf(err) != nf.Invalid {
			t.Errorf("a dry run of it: %v", err)
		}
		for _, n := range []int64{0, 1} {
			if op := e.act(t, fixed, to(n)); op.State != nf.Succeeded {
				t.Errorf("%d pods: %s, %v", n, op.State, op.Failure)
			}
		}
		if op := e.act(t, fixed, nf.ActRequest{Verb: nf.Restart}); op.State != nf.Succeeded {
			t.Errorf("a restart: %s, %v", op.State, op.Failure)
		}
	})
}
