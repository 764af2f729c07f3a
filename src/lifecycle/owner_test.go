package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// owners say that one network service owns each instance.
type owners struct{}

func (owners) Owner(context.Context, string) (nf.Subject, error) {
	return nf.Subject{Kind: nf.ServiceSubject, ID: "vpn"}, nil
}

// oneOwned is an instance that a network service owns.
type oneOwned struct{ id *string }

func (o oneOwned) Owner(_ context.Context, instance string) (nf.Subject, error) {
	if instance != *o.id {
		return nf.Subject{}, nil
	}
	return nf.Subject{Kind: nf.ServiceSubject, ID: "vpn"}, nil
}

// TestCascadeOwner checks that nothing is terminated if a member of a network service is among
// what would be.
func TestCascadeOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member string
		s := newSite(t)
		e := s.start(func(c *config) { c.DeletionGuard.Share, c.Owners = 1, oneOwned{&member} })
		id := e.up(t, "cluster.edge_x", withCluster()).Subject.ID
		e.up(t, "y", inWest)
		member = e.up(t, "z", inWest, func(r *nf.InstantiateRequest) { r.Name = "member" }).Subject.ID
		if _, err := e.Terminate(t.Context(), id, nf.TerminateRequest{Cascade: true}); nf.ReasonOf(err) != nf.ReasonHeld || !strings.Contains(err.Error(), "network service vpn") {
			t.Errorf("a cascade over a member: %v", err)
		}
		if got := s.cluster.asked("delete"); len(got) > 0 {
			t.Errorf("it did %v", got)
		}
	})
}

// TestOwner checks that only the owner of an instance terminates it.
func TestOwner(t *testing.T) {
	s := newSite(t)
	e := s.start(func(c *config) { c.Owners = owners{} })
	id := e.up(t, "a").Subject.ID
	_, previewed := e.PreviewTerminate(t.Context(), id, nf.TerminateRequest{})
	_, err := e.Terminate(t.Context(), id, nf.TerminateRequest{Cascade: true})
	for _, err := range []error{previewed, err} {
		if nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonHeld || !strings.Contains(err.Error(), "network service vpn") {
			t.Errorf("the termination of a member gives %v", err)
		}
	}
	op, err := e.Terminate(t.Context(), id, nf.TerminateRequest{By: nf.Subject{Kind: nf.ServiceSubject, ID: "vpn"}})
	if err != nil {
		t.Fatal(err)
	}
	if op = e.end(t, op); op.State != nf.Succeeded {
		t.Errorf("the owner's termination is %s", op.State)
	}
}
