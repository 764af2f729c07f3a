package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestOldOperationsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(func(c *config) { c.Retention = 24 * time.Hour })
		first := e.up(t, "a")
		upgrade, err := e.Upgrade(t.Context(), first.Subject.ID, change("a", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, upgrade)
		gone := e.up(t, "b")
		terminate, err := e.Terminate(t.Context(), gone.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, terminate)

		<-time.After(23 * time.Hour) // virtual
		young := e.up(t, "c")
		if diff := cmp.Diff([]string{first.ID, upgrade.ID, gone.ID, terminate.ID, young.ID}, ids(t, e)); diff != "" {
			t.Fatalf("before their time (-want +got):\n%s", diff)
		}
		<-time.After(3 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{upgrade.ID, young.ID}, ids(t, e)); diff != "" {
			t.Errorf("the last operation of a living instance, and young ones, stay (-want +got):\n%s", diff)
		}
		for entry, err := range s.kv.List(t.Context(), "changes/", "") {
			if err != nil {
				t.Fatal(err)
			}
			if id := entry.Key[len("changes/"):][:len(upgrade.ID)]; id != upgrade.ID && id != young.ID {
				t.Errorf("changes of a forgotten operation: %s", entry.Key)
			}
		}
	})
}

// ids returns the operations' ids, in the order they were accepted.
func ids(t *testing.T, e *engine) []string {
	t.Helper()
	ops, err := e.Operations(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, op := range ops {
		out = append(out, op.ID)
	}
	return out
}
