package site

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// sweep is one search for stale records of sites.
type sweep struct {
	s *Sites

	needed map[string]bool // secrets
	locked map[string]bool // sites, by UID
}

var _ operation.Sweep = (*sweep)(nil)

// Subjects implements operation.Sweep.
func (w *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return w.s.locks.Scan(ctx, named, func(in nf.Site) { w.needed[in.SecretsRecord], w.locked[in.UID] = true, in.Busy != "" }, w.s.giveUp)
}

// Operation implements operation.Sweep.
func (w *sweep) Operation(op nf.Operation) {
	if !op.State.Final() {
		w.needed[under(op.Site.UID, op.ID)] = true
	}
}

// Find implements operation.Sweep. It finds secrets that no site or operation
// needs. A locked site keeps its former secrets until it is unlocked.
func (w *sweep) Find(ctx context.Context, found operation.StaleRecords) error {
	for m, err := range w.s.secrets.All(ctx, "") {
		if err != nil {
			return err
		}
		uid, _, _ := strings.Cut(m.ID, "/")
		if w.needed[m.ID] || w.locked[uid] {
			continue
		}
		found["secrets "+m.ID] = func(ctx context.Context) error { return nf.IgnoreNotFound(w.s.secrets.Delete(ctx, m.ID)) }
	}
	return nil
}

// giveUp edits a site whose operation was given up. The secrets of the request are
// then deleted already; the site gets its former ones again.
func (s *Sites) giveUp(ctx context.Context, in *nf.Site) error {
	secrets, err := s.secrets.List(ctx, in.UID+"/")
	if err != nil {
		return err
	}
	lost := !slices.ContainsFunc(secrets, func(m secretsRecord) bool { return m.ID == in.SecretsRecord })
	if lost && len(secrets) > 0 {
		in.SecretsRecord, in.Secrets = secrets[0].ID, slices.Sorted(maps.Keys(secrets[0].Secrets))
	}
	in.State = nf.SiteFailed
	return nil
}
