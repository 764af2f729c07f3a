package lifecycle_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// acted carries out an action.
func acted(req nf.ActRequest, onFailure nf.OnFailure) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		req.OnFailure, req.Key = onFailure, key
		return e.Act(ctx, e.only(ctx).ID, req)
	}
}

// refuseScale has web refuse five replicas, but not its former number.
func refuseScale(s *site) { s.cluster.rejects = map[string]string{"web": "5"} }

// wounded makes an instance that has lost objects, and has two pods.
func wounded(t *testing.T, s *site, e *engine) {
	e.up(t, "db-old_web", named)
	s.cluster.lose("old")
	s.cluster.lose("web")
	s.cluster.lose("db")
	s.cluster.pods = []nf.Pod{podOf("web-1"), podOf("web-2")}
}

func scaled(t *testing.T, _ *site, e *engine) {
	e.up(t, "db_old", named)
	e.act(t, e.only(t.Context()).ID, scaleTo(5, "db", "old"))
}
