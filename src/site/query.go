package site

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Site returns a site. It returns nf.NotFound if the site does not exist.
func (s *Sites) Site(ctx context.Context, id string) (nf.Site, error) { return s.sites.Get(ctx, id) }

// Sites returns every site, ordered by id.
func (s *Sites) Sites(ctx context.Context) ([]nf.Site, error) { return s.sites.List(ctx, "") }

// Operation returns an operation of a site; an empty site stands for every
// site. It returns nf.NotFound if the operation does not exist. The operations of
// a removed site are kept for Config.Retention.
func (s *Sites) Operation(ctx context.Context, site, id string) (nf.Operation, error) {
	return s.ledger.Of(ctx, subjectOf(site), id)
}

// Operations yields the operations of a site after the cursor, in the order in which
// they were accepted; an empty site stands for every site.
func (s *Sites) Operations(ctx context.Context, site string, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	if site == "" {
		return s.ledger.In(ctx, nf.SiteSubject, from) // few of all operations
	}
	return s.ledger.From(ctx, subjectOf(site), from)
}

// Cancel requests that an operation stop. It returns nf.Conflict if the outcome
// of the operation is already decided. An empty site stands for every site.
func (s *Sites) Cancel(ctx context.Context, site, id string) (nf.Operation, error) {
	if op, err := s.Operation(ctx, site, id); err != nil {
		return op, err
	}
	return s.ledger.Cancel(ctx, id)
}

// Follow yields the events of an operation after the given number, and the
// operation whenever it changes. It ends when the operation is final, the loop
// stops, the context ends (which is not an error), or the workers have stopped. The
// final state comes after the last event. An empty site stands for every site.
func (s *Sites) Follow(ctx context.Context, site, id string, after int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		if _, err := s.Operation(ctx, site, id); err != nil {
			yield(nf.OperationUpdate{}, err)
			return
		}
		s.ledger.Updates(ctx, id, after)(yield)
	}
}
