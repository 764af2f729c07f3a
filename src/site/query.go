package site

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// Site returns a site. It returns nf.NotFound if the site does not exist.
func (s *Sites) Site(ctx context.Context, id string) (nf.Site, error) { return s.sites.Get(ctx, id) }

// Sites returns every site, ordered by id.
func (s *Sites) Sites(ctx context.Context) ([]nf.Site, error) { return s.sites.List(ctx, "") }

// Operations returns the operations on sites.
func (s *Sites) Operations() operation.OfKind { return s.ledger.OfKind(nf.SiteSubject) }
