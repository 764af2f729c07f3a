package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Regions are the cloud regions that a placement chooses from.
type Regions interface {
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error]
	// RegionState returns the last known state of a region without contacting it.
	RegionState(r nf.Region) nf.RegionState
	// RegionCapabilities returns what a region offers, as it was read recently.
	RegionCapabilities(ctx context.Context, id string, fresh bool) (nf.RegionCapabilities, error)
}

const (
	mostExamined = 64 // regions that one placement reads at most
	examinedOnce = 8  // that it reads at once
)

// placer chooses the region of one new instance.
type placer struct {
	regions  Regions
	catalog  Catalog
	networks Networks // nil: none
	volumes  Volumes  // nil: none
	request  *nf.InstantiateRequest
	needs    needs

	candidates []nf.Candidate
	fits       map[string]float64 // share of the scarcest resource that is free, by region
}

// place returns how the region of a new instance was chosen: nil if the request names
// one. It returns nf.Unsupported with nf.ReasonNoRegion and a violation for each region
// if none fits.
func (pr *preparer) place(ctx context.Context, req *nf.InstantiateRequest) (*nf.Placed, error) {
	if req.Placement == nil {
		return nil, nil
	}
	if pr.regions == nil {
		return nil, nf.E(nf.Unsupported, "place", "instance", errors.New("this service chooses no regions; give cloud_region_id"))
	}
	needs, v := needsOf(req.Placement)
	if len(v) > 0 {
		return nil, nf.E(nf.Invalid, "instantiate", "package "+req.Package, v)
	}
	if pr.flavors != nil {
		needs.flavors, needs.flavorOf = flavorsOf(req.Inputs), pr.flavors
	}
	p := placer{regions: pr.regions, catalog: pr.catalog, networks: pr.networks, volumes: pr.volumes, request: req, needs: needs, fits: map[string]float64{}}
	if err := p.collect(ctx); err != nil {
		return nil, err
	}
	if err := p.count(ctx); err != nil {
		return nil, err
	}
	if err := p.examine(ctx); err != nil {
		return nil, err
	}
	return p.choose()
}

// collect adds the regions that the caller sees and the request does not exclude by name.
func (p *placer) collect(ctx context.Context) error {
	wanted, found := p.request.Placement.Regions, map[string]bool{}
	for region, err := range p.regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return err
		}
		if len(wanted) > 0 && !slices.Contains(wanted, region.ID) {
			continue
		}
		c, seen, err := p.judge(ctx, region)
		if err != nil {
			return err
		}
		if seen {
			found[region.ID] = true
			p.candidates = append(p.candidates, c)
		}
	}
	var v nf.Violations
	for i, id := range wanted {
		if !found[id] {
			v = append(v, nf.Violation{Field: fmt.Sprintf("placement.regions[%d]", i), Message: fmt.Sprintf("%q does not exist", id)})
		}
	}
	if len(v) > 0 {
		return nf.E(nf.NotFound, "place", "instance", v)
	}
	return nil
}

// judge judges a region by what is known without reading it. The reason is empty if the
// region is possible.
func (p *placer) judge(ctx context.Context, region nf.Region) (c nf.Candidate, seen bool, err error) {
	c.Region = region.ID
	if permit := p.request.Placement.Permit; permit != nil {
		var refused nf.PlacementReason
		if seen, refused, err = permit(ctx, region.ID); err != nil || !seen {
			return c, false, err
		}
		if c.Reason = refused; refused != "" {
			return c, true, nil
		}
	}
	if !p.needs.selector.Matches(labels.Set(region.Labels)) {
		c.Reason = nf.PlacementSelector
		return c, true, nil
	}
	for _, plugin := range p.request.Placement.Plugins {
		if there, declared := region.Plugins[plugin]; declared && !there {
			c.Reason, c.Detail = nf.PlacementPlugin, "declares the CNI plugin "+plugin+" as absent"
			return c, true, nil
		}
	}
	state := p.regions.RegionState(region)
	if region.Removing != "" || state.Condition == nf.RegionUnreachable {
		c.Reason, c.Detail = nf.PlacementUnreachable, state.Reason
		return c, true, nil
	}
	if err := p.judgeNetworks(ctx, &c); err != nil || c.Reason != "" {
		return c, true, err
	}
	return c, true, p.judgeVolumes(ctx, &c, cmp.Or(p.request.Namespace, region.DefaultNamespace, "default"))
}

// judgeVolumes sets the reason of a region without a volume that the request uses and the
// caller may read, or whose volume is bound to another claim.
func (p *placer) judgeVolumes(ctx context.Context, c *nf.Candidate, namespace string) error {
	if p.volumes == nil {
		return nil // mounting says so
	}
	for _, use := range p.request.Volumes {
		v, err := p.volumes.Get(ctx, nf.SharedID(c.Region, use.Volume))
		if nf.IgnoreNotFound(err) != nil {
			return err
		}
		has := err == nil
		if mount := p.request.Placement.Mount; has && mount != nil {
			if has, err = mount(ctx, v); err != nil {
				return err
			}
		}
		if !has {
			c.Reason, c.Detail = nf.PlacementVolume, "has no volume "+use.Volume
			return nil
		}
		switch _, err = p.volumes.Claim(ctx, v, namespace, use.Claim); nf.KindOf(err) {
		case nf.Conflict, nf.NotFound:
			c.Reason, c.Detail = nf.PlacementVolume, "has a volume "+use.Volume+" that is in use, or is not available"
			return nil
		case nf.Unreachable, nf.Timeout:
			c.Reason, c.Detail = nf.PlacementUnreachable, nf.ReasonOf(err)
			return nil
		default:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeNetworks sets the reason of a region without a network that the request attaches
// to and the caller may read. The networks of the package are not known yet.
func (p *placer) judgeNetworks(ctx context.Context, c *nf.Candidate) error {
	if p.networks == nil {
		return nil // attaching says so
	}
	for _, a := range p.request.Networks {
		if p.defines(a.Network) {
			continue
		}
		n, err := p.networks.Get(ctx, nf.SharedID(c.Region, a.Network))
		if nf.IgnoreNotFound(err) != nil {
			return err
		}
		has := err == nil
		if attach := p.request.Placement.Attach; has && attach != nil {
			if has, err = attach(ctx, n); err != nil {
				return err
			}
		}
		if !has {
			c.Reason, c.Detail = nf.PlacementNetwork, "has no network "+a.Network
			return nil
		}
	}
	return nil
}

// defines reports whether the request defines a network, which is then created if it is
// missing.
func (p *placer) defines(network string) bool {
	return slices.ContainsFunc(p.request.Networks, func(a nf.Attachment) bool { return a.Network == network && a.Create != nil })
}

// count counts the instances of the regions that are possible, and orders the candidates:
// those that are possible first, with the fewest instances, and then by id.
func (p *placer) count(ctx context.Context) error {
	instances := func(kind nf.SubjectKind, _ nf.Scope) bool { return kind == nf.InstanceSubject }
	for i := range p.candidates {
		c := &p.candidates[i]
		if c.Reason != "" {
			continue
		}
		for _, err := range p.catalog.HolderIDs(ctx, nf.Holding{Region: c.Region}, instances, nf.Cursor{}) {
			if err != nil {
				return err
			}
			c.Instances++
		}
	}
	slices.SortStableFunc(p.candidates, func(a, b nf.Candidate) int {
		return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(a.Instances, b.Instances), cmp.Compare(a.Region, b.Region))
	})
	return nil
}

// standing orders candidates: those that are possible, those that were excluded for a reason
// of their own, and those that the selector excludes.
func standing(c nf.Candidate) int {
	if c.Reason == "" || c.Reason == nf.PlacementChosen {
		return 0
	}
	if c.Reason == nf.PlacementRanked {
		return 1
	}
	if c.Reason == nf.PlacementSelector {
		return 3
	}
	return 2
}

// examine reads the regions that are possible, in their order, until one fits. With
// nf.PreferRoom it reads them all.
func (p *placer) examine(ctx context.Context) error {
	var possible []*nf.Candidate
	for i := range p.candidates {
		if p.candidates[i].Reason == "" {
			possible = append(possible, &p.candidates[i])
		}
	}
	all := p.request.Placement.Prefer == nf.PreferRoom
	if all && len(possible) > mostExamined {
		return nf.E(nf.TooLarge, "place", "instance", nf.Violations{{Field: "placement.selector",
			Message: fmt.Sprintf("leaves %d cloud regions; %s compares at most %d", len(possible), nf.PreferRoom, mostExamined)}})
	}
	possible = possible[:min(len(possible), mostExamined)]
	for batch := range slices.Chunk(possible, examinedOnce) {
		if len(p.fits) > 0 && !all {
			return nil
		}
		if !p.needs.live() {
			p.fits[batch[0].Region] = 0
			return nil
		}
		shares := make([]float64, len(batch))
		var reads sync.WaitGroup
		for i, c := range batch {
			reads.Go(func() { shares[i] = p.read(ctx, c) })
		}
		reads.Wait()
		if err := context.Cause(ctx); err != nil {
			return nf.E(nf.Cancelled, "place", "instance", err)
		}
		for i, c := range batch {
			if c.Reason == "" {
				p.fits[c.Region] = shares[i]
			}
		}
	}
	return nil
}

// read compares what a region offers with the needs. It sets the reason of the candidate
// if they do not fit, and returns the free share of the scarcest resource.
func (p *placer) read(ctx context.Context, c *nf.Candidate) float64 {
	offers, err := p.regions.RegionCapabilities(ctx, c.Region, false)
	if err != nil {
		c.Reason, c.Detail = nf.PlacementUnreachable, nf.ReasonOf(err)
		return 0
	}
	c.Reason, c.Detail = p.needs.lacking(offers)
	return p.needs.share(offers)
}

// choose names the first region that fits.
func (p *placer) choose() (*nf.Placed, error) {
	out := &nf.Placed{Prefer: cmp.Or(p.request.Placement.Prefer, nf.PreferFewest)}
	var best *nf.Candidate
	for i := range p.candidates {
		c := &p.candidates[i]
		share, fits := p.fits[c.Region]
		if c.Reason != "" || !fits {
			continue
		}
		if best == nil || out.Prefer == nf.PreferRoom && share > p.fits[best.Region] {
			best = c
		}
	}
	if best != nil {
		best.Reason, out.Region = nf.PlacementChosen, best.Region
	}
	for i := range p.candidates {
		if c := &p.candidates[i]; c.Reason == "" {
			c.Reason = nf.PlacementRanked
		}
	}
	slices.SortStableFunc(p.candidates, func(a, b nf.Candidate) int { return cmp.Compare(standing(a), standing(b)) })
	out.Omitted = max(len(p.candidates)-nf.MaxCandidates, 0)
	out.Candidates = p.candidates[:len(p.candidates)-out.Omitted]
	if best == nil {
		return nil, noRegion(out)
	}
	return out, nil
}

// noRegion returns the error of a placement that no region fits.
func noRegion(p *nf.Placed) error {
	v := nf.Violations{}
	for _, c := range p.Candidates {
		message := string(c.Reason)
		if c.Detail != "" {
			message += ": " + c.Detail
		}
		v = append(v, nf.Violation{Field: "placement", Region: c.Region, Reason: c.Reason, Message: "cloud region " + c.Region + " does not fit: " + message})
	}
	if len(v) == 0 {
		v = nf.Violations{{Field: "placement", Message: "there is no cloud region to choose from"}}
	}
	return &nf.Error{Kind: nf.Unsupported, Op: "place", Subject: "instance", Reason: nf.ReasonNoRegion, Err: v}
}
