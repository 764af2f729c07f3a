package site_test

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestCancelDecided cancels an operation when its outcome is decided, before and
// after it has updated its site.
func TestCancelDecided(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		kv := w.kv
		var s *site.Sites
		refusals := map[string]error{}
		w.kv = storetest.Failing{KV: kv, Fail: func(method, key string) error {
			if method != "Put" || key != "sites/edge" {
				return nil
			}
			ops, err := operationsOf(t, s, "edge")
			if err == nil && len(ops) == 1 && ops[0].Succeeding && !ops[0].State.Final() {
				_, refusals["while it updates its site"] = s.Operations().Cancel(t.Context(), "edge", ops[0].ID)
			}
			return err
		}}
		s, _ = w.start(t)
		op, err := s.Create(t.Context(), request())
		must(t, err)
		op, _ = end(t, s, op)
		_, refusals["after its end"] = s.Operations().Cancel(t.Context(), "edge", op.ID)
		for when, why := range map[string]string{"while it updates its site": "its outcome is decided: succeeded", "after its end": "it has ended: succeeded"} {
			err := refusals[when]
			wantKind(t, when, err, nf.Conflict)
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: the error is %v", when, err)
			}
		}
	})
}
