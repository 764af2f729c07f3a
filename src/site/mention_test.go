package site_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestFailureListsTheInstance checks that a failure to terminate an instance
// lists the instance, since everyone who may read the region can read it.
func TestFailureListsTheInstance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		w.use("edge", "vnf-1")
		w.stuck = map[string]error{"vnf-1": errors.New("cannot terminate VNF instance vnf-1")}
		op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1"}})
		must(t, err)
		op, _ = end(t, s, op)
		if op.Failure == nil || !slices.Equal(op.Failure.Mentions, []string{"vnf-1"}) {
			t.Errorf("the failure is %+v", op.Failure)
		}
		for _, step := range op.Steps {
			if strings.Contains(step.Message, "vnf-1") != (len(step.Mentions) > 0) {
				t.Errorf("a step is %+v", step)
			}
		}
	})
}
