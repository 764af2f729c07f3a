package site_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestFailureOfAnInstance checks that a failure to terminate an instance, and its
// events and steps, name the instance only in their mentions, since everyone who
// may read the region can read them.
func TestFailureOfAnInstance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		w.use("vnf-1")
		w.stuck = map[string]error{"vnf-1": errors.New("cannot terminate VNF instance vnf-1: instances/vnf-1 is stuck")}
		op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1"}})
		must(t, err)
		op, events := end(t, s, op)
		const stuck = "cannot terminate VNF instance vnf-1: instances/vnf-1 is stuck"
		if op.Failure == nil || op.Failure.Said().String() != stuck || op.Steps[len(op.Steps)-1].Said().String() != stuck {
			t.Fatalf("the failure is %+v of %+v", op.Failure, op.Steps)
		}
		texts := []nf.Text{op.Failure.Said()}
		for _, step := range op.Steps {
			texts = append(texts, step.Said())
		}
		for _, e := range events {
			texts = append(texts, e.Said())
		}
		for _, text := range texts {
			if text.Mentions, err = nf.FilterMentions(text.Mentions, func(string) (bool, error) { return true, nil }); err != nil || strings.Contains(text.String(), "vnf-1") {
				t.Errorf("a reader who may not see the instance reads %q, %v", text, err)
			}
		}
	})
}

// vpn owns the instance vnf-2.
type vpn struct{}

// Owner implements site.Owners.
func (vpn) Owner(_ context.Context, instance string) (nf.Subject, error) {
	if instance != "vnf-2" {
		return nf.Subject{}, nil
	}
	return nf.Subject{Kind: nf.ServiceSubject, ID: "vpn"}, nil
}

// TestRemoveWithMember checks that no instance is terminated if one of them is a member of a
// network service.
func TestRemoveWithMember(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t, func(c *config) { c.Owners = vpn{} })
		build(t, s)
		w.use("vnf-1", "vnf-2")
		_, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1", "vnf-2"}})
		if nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), "is a member of network service vpn") || strings.Contains(err.Error(), "vnf-1") {
			t.Errorf("the removal of a member: %v", err)
		}
	})
}

// TestRemoveWithOtherUser checks that the removal of an instance does not remove a
// user of another kind that has the same id.
func TestRemoveWithOtherUser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		w.use("vnf-1", "network/vnf-1")
		_, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1"}})
		if nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), "its region is used by network vnf-1") || nf.TextOf(err).Mentions != nil {
			t.Errorf("the error is %v, and mentions %v", err, nf.TextOf(err).Mentions)
		}
	})
}
