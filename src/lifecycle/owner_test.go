package lifecycle_test

import (
	"context"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// owners say that one network service owns each instance.
type owners struct{}

func (owners) Owner(context.Context, string) (nf.Subject, error) {
	return nf.Subject{Kind: nf.ServiceSubject, ID: "vpn"}, nil
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
