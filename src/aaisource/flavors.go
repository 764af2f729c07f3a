package aaisource

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func (s *Source) allRegions(ctx context.Context, give giver) {
	if !s.cfg.Written.Flavors {
		return
	}
	all, err := s.cfg.Instances.Regions(ctx)
	if err != nil {
		give(aaisync.Subject{}, false, err)
		return
	}
	for _, r := range all {
		if subject, ok := s.nodes(r); !give(subject, ok, nil) {
			return
		}
	}
}

// nodes returns the subject of a cloud region, if the service has an access to it. Its
// version does not change with the nodes: they are read when the subject is compared.
func (s *Source) nodes(r nf.Region) (_ aaisync.Subject, isSubject bool) {
	out := aaisync.Subject{ID: RegionID(r.ID), Place: aai.Place{Owner: r.Owner, Region: r.ID}}
	out.Version = version(out.Place, s.cfg.Scheme, r.Created, r.Probe.Server)
	return out, r.Owner != "" && r.NoAccess() == ""
}

// flavors returns the flavors of a cloud region. There are none if the region's account may
// not list nodes: OOF could not ask for the region's capacity either.
func (s *Source) flavors(ctx context.Context, place aai.Place) ([]aai.Document, error) {
	offers, err := s.cfg.Regions.Capabilities(ctx, place.Region)
	if err != nil {
		return nil, err
	}
	return s.cfg.Scheme.Flavors(place, aai.ClassesOf(aai.NodesOf(offers.Rooms))), nil
}
