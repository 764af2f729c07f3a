package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRemainingObjects terminates an instance with an object that the region does not
// delete, because its deletion would delete objects of others.
func TestRemainingObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db-web")
		s.cluster.remains = map[string]string{"db": "remains, because others need it"}
		op, err := e.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("%s %+v", op.State, op.Failure)
		}
		if diff := cmp.Diff([]string{"ConfigMap ns/db remains, because others need it", "namespace ns remains: it contains ConfigMap ns/db"}, op.Warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	})
}
