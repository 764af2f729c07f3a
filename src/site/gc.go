package site

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// collector returns the collector of the sites' stale records. A site's last
// operation is needed as long as the site exists.
func (s *Sites) collector() operation.Collector {
	return operation.Collector{Ledger: s.ledger, Kind: nf.SiteSubject, Retention: s.cfg.Retention, Find: s.findStale, Expire: s.Names}
}

// findStale implements operation.Collector.
func (s *Sites) findStale(ctx context.Context, found operation.StaleRecords) error {
	// Order matters: an operation is recorded before its site names it.
	sites, err := s.sites.List(ctx, "")
	if err != nil {
		return err
	}
	live := map[string]bool{}
	needed := map[string]bool{} // secrets
	err = s.ledger.Scan(ctx, nf.SiteSubject, found, func(op nf.Operation) {
		if !op.State.Final() {
			live[op.ID], needed[under(op.Site.UID, op.ID)] = true, true
		}
	})
	if err != nil {
		return err
	}
	locked := map[string]bool{}
	for _, in := range sites {
		needed[in.Material], locked[in.UID] = true, in.Busy != ""
		if in.Busy != "" && !live[in.Busy] {
			found["lock of site "+in.ID+" by "+in.Busy] = func(ctx context.Context) error { return s.unlock(ctx, in) }
		}
	}
	return s.addSecrets(ctx, found, needed, locked)
}

// addSecrets finds secrets that no site or operation needs. A locked site keeps
// its former secrets until it is unlocked.
func (s *Sites) addSecrets(ctx context.Context, found operation.StaleRecords, needed, locked map[string]bool) error {
	for m, err := range s.secrets.All(ctx, "") {
		if err != nil {
			return err
		}
		uid, _, _ := strings.Cut(m.ID, "/")
		if needed[m.ID] || locked[uid] {
			continue
		}
		found["secrets "+m.ID] = func(ctx context.Context) error { return nf.IgnoreNotFound(s.secrets.Delete(ctx, m.ID)) }
	}
	return nil
}

// unlock unlocks a site whose operation has ended or does not exist. This happens
// if the store applies the lock late, after the request was withdrawn. The
// secrets of the request are then deleted already; the site gets its former ones
// again.
func (s *Sites) unlock(ctx context.Context, in nf.Site) error {
	secrets, err := s.secrets.List(ctx, in.UID+"/")
	if err != nil {
		return err
	}
	lost := !slices.ContainsFunc(secrets, func(m secretsRecord) bool { return m.ID == in.Material })
	_, err = s.sites.Update(ctx, in.ID, func(now *nf.Site) error {
		if now.Busy != in.Busy {
			return nil
		}
		if lost && len(secrets) > 0 {
			now.Material, now.Secrets = secrets[0].ID, slices.Sorted(maps.Keys(secrets[0].Secrets))
		}
		now.State, now.Busy, now.Claim, now.Updated = nf.SiteFailed, "", "", s.now()
		return nil
	})
	return nf.IgnoreNotFound(err)
}
