package so

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Network is a virtual link, as SO requests it from the service.
type Network struct {
	Region, Tenant string // empty: those of the VNF
	Name, Driver   string
	Spec           map[string]any
	Subnets        []string // in A&AI, as "start/mask"
	VLANs          []string // in A&AI
}

// Links are the values of a flow of virtual links.
type Links struct {
	Network Network
	Second  Network   // a network with the same name in another region; none if it has no region
	Refused []Network // networks that the region cannot have, because a kind or an underlay is missing
	VNF     Request   // a VNF that attaches to the network; its package has one workload
}

// holders of a network: SO's adapter creates it once for each of them.
const (
	firstHolder  = "so-first"
	secondHolder = "so-second"
)

// virtualLink is a network, as the service returns it.
type virtualLink struct {
	ID    string `json:"network_id"`
	State string `json:"state"`
	Count int    `json:"use_count"`
}

func (n Network) id() string { return n.Region + "." + n.Name }

func (n Network) path() string { return "/v1/networks/" + url.PathEscape(n.id()) }

func (n Network) entry() string { return "/network/l3-networks/l3-network/" + url.PathEscape(n.id()) }

// of returns the network with the region and the tenant of a VNF, unless it has its own.
func (n Network) of(v VNF) Network {
	if n.Region == "" {
		n.Region, n.Tenant = v.Region, v.Tenant
	}
	return n
}

// Networks creates a virtual link twice, has a VNF use it, and releases it: the last user
// deletes it. A&AI is compared at each step. Networks that a region cannot have are rejected
// before anything is created.
func (d *Driver) Networks(ctx context.Context, v VNF, l Links) error {
	l.Network = l.Network.of(v)
	for _, n := range l.Refused {
		if err := d.refused(ctx, n.of(v)); err != nil {
			return err
		}
	}
	if err := d.createLink(ctx, v, l.Network, firstHolder, 1); err != nil {
		return err
	}
	if err := d.createLink(ctx, v, l.Network, secondHolder, 2); err != nil {
		return err
	}
	if l.Second.Region != "" {
		if err := d.createLink(ctx, v, l.Second, firstHolder, 1); err != nil {
			return err
		}
	}
	if err := d.useLink(ctx, v, l); err != nil {
		return err
	}
	if l.Second.Region == "" {
		return nil
	}
	return d.DeleteNetwork(ctx, v, l.Second)
}

// CreateNetwork creates a network for SO, and waits until A&AI has it.
func (d *Driver) CreateNetwork(ctx context.Context, v VNF, n Network) error {
	return d.createLink(ctx, v, n.of(v), firstHolder, 1)
}

// DeleteNetwork deletes a network that only SO holds, and waits until A&AI does not have it.
func (d *Driver) DeleteNetwork(ctx context.Context, v VNF, n Network) error {
	n = n.of(v)
	if err := d.releaseLink(ctx, n, firstHolder, http.StatusNoContent); err != nil {
		return err
	}
	return d.linkGone(ctx, n)
}

// useLink attaches a VNF to the network, releases both holders, and deletes the VNF.
func (d *Driver) useLink(ctx context.Context, v VNF, l Links) error {
	if err := d.Plan(ctx, v); err != nil {
		return err
	}
	l.VNF.Attach = []map[string]any{{"network": l.Network.Name}}
	in, err := d.CreateVNF(ctx, v, l.VNF)
	if err != nil {
		return d.backOut(ctx, v, err)
	}
	if err := d.countLink(ctx, l.Network, 3); err != nil {
		return err
	}
	if err := d.releaseLink(ctx, l.Network, firstHolder+"&if_unused=true", http.StatusConflict); err != nil {
		return err
	}
	for i, holder := range []string{firstHolder, secondHolder} {
		if err := d.releaseLink(ctx, l.Network, holder, http.StatusOK); err != nil {
			return err
		}
		if err := d.countLink(ctx, l.Network, 2-i); err != nil {
			return err
		}
	}
	if err := d.DeleteVNF(ctx, v, in); err != nil {
		return err
	}
	if err := d.Clear(ctx, v); err != nil {
		return err
	}
	return d.linkGone(ctx, l.Network)
}

// refused requests a network that the region cannot have.
func (d *Driver) refused(ctx context.Context, n Network) error {
	s := d.step("SO creates a network that the region cannot have")
	r, err := s.post(ctx, n, firstHolder)
	if err != nil {
		return err
	}
	if r.status/100 != 4 {
		return r.differs("status %d, want an error of the client: %s", r.status, r.body[:min(len(r.body), maxShown)])
	}
	if r, err = s.send(ctx, d.cfg.Service, message{http.MethodGet, n.path(), nil, acceptJSON()}); err == nil {
		err = r.want(http.StatusNotFound)
	}
	if err == nil {
		err = s.gone(ctx, []string{n.entry()})
	}
	if err == nil {
		s.done("%s is rejected, and nothing was created", n.id())
	}
	return err
}

func acceptJSON() map[string]string { return map[string]string{"Accept": "application/json"} }

func (s step) post(ctx context.Context, n Network, holder string) (reply, error) {
	headers := acceptJSON()
	headers["Content-Type"] = "application/json"
	return s.send(ctx, s.d.cfg.Service, message{http.MethodPost, "/v1/networks", map[string]any{
		"name": n.Name, "cloud_region_id": n.Region, "driver": n.Driver, "spec": n.Spec, "holder": holder,
	}, headers})
}

// createLink creates a network for a holder, which is one of a number, and compares it with
// A&AI.
func (d *Driver) createLink(ctx context.Context, v VNF, n Network, holder string, count int) error {
	s := d.step("SO creates the network")
	r, err := s.post(ctx, n, holder)
	var made virtualLink
	if err == nil {
		err = r.want(createdStatus(r, count))
	}
	if err == nil {
		err = r.read(&made)
	}
	if err != nil {
		return err
	}
	if made.ID != n.id() {
		return r.differs("its id is %q", made.ID)
	}
	if err := d.countLink(ctx, n, count); err != nil {
		return err
	}
	if err := s.awaitLink(ctx, v, n); err != nil {
		return err
	}
	s.done("A&AI has %s, with %d users", n.id(), count)
	return nil
}

// createdStatus returns the status of the response to the creation of a network, which has a
// number of holders then.
func createdStatus(r reply, holders int) int {
	if holders > 1 || r.repeated && r.status == http.StatusOK {
		return http.StatusOK
	}
	return http.StatusCreated
}

// countLink compares the number of users of a network.
func (d *Driver) countLink(ctx context.Context, n Network, count int) error {
	s := d.step("SO reads the network")
	var got virtualLink
	r, err := s.send(ctx, d.cfg.Service, message{http.MethodGet, n.path(), nil, acceptJSON()})
	if err == nil {
		err = r.want(http.StatusOK)
	}
	if err == nil {
		err = r.read(&got)
	}
	if err == nil && got.Count != count {
		err = r.differs("it has %d users, want %d", got.Count, count)
	}
	return err
}

// entry is an l3-network of A&AI.
type entry struct {
	object

	Subnets struct {
		All []struct {
			Start string `json:"network-start-address"`
			Mask  string `json:"cidr-mask"`
		} `json:"subnet"`
	} `json:"subnets"`
	VLANs struct {
		All []struct {
			ID string `json:"segmentation-id"`
		} `json:"segmentation-assignment"`
	} `json:"segmentation-assignments"`
}

// awaitLink waits until A&AI has a network with its subnets and VLANs, related to its
// region and its tenant.
func (s step) awaitLink(ctx context.Context, v VNF, n Network) error {
	place := v
	place.Region, place.Tenant = n.Region, n.Tenant
	var missing string
	err := s.poll(ctx, func(ctx context.Context) (bool, error) {
		r, err := s.aai(ctx, http.MethodGet, n.entry()+"?depth=all", nil)
		if err != nil || r.status == http.StatusNotFound {
			missing = "lacks " + n.entry()
			return false, err
		}
		var got entry
		if err := r.want(http.StatusOK); err != nil {
			return false, err
		}
		if err := r.read(&got); err != nil {
			return false, err
		}
		missing = n.compare(got, place)
		return missing == "", nil
	})
	if err != nil && missing != "" {
		err = fmt.Errorf("%w: A&AI %s", err, missing)
	}
	return err
}

// compare returns the first difference between a network and its entry in A&AI, or "".
func (n Network) compare(got entry, place VNF) string {
	var subnets, vlans []string
	for _, one := range got.Subnets.All {
		subnets = append(subnets, one.Start+"/"+one.Mask)
	}
	for _, one := range got.VLANs.All {
		vlans = append(vlans, one.ID)
	}
	for _, text := range []string{
		difference(n.Subnets, subnets), difference(n.VLANs, vlans),
		difference([]string{place.regionPath()}, got.related("cloud-region")),
	} {
		if text != "" {
			return text
		}
	}
	if n.Tenant != "" && !slices.Contains(got.related("tenant"), place.tenantPath()) {
		return "lacks the edge to the tenant " + n.Tenant
	}
	return ""
}

// releaseLink ends the hold of a holder.
func (d *Driver) releaseLink(ctx context.Context, n Network, holder string, status int) error {
	s := d.step("SO deletes the network")
	r, err := s.send(ctx, d.cfg.Service, message{http.MethodDelete, n.path() + "?holder=" + holder, nil, acceptJSON()})
	// The operation of an attempt before may run, or have ended.
	if err == nil && (!r.repeated || r.status != http.StatusNotFound && r.status != http.StatusConflict) {
		err = r.want(status)
	}
	if err == nil {
		s.done("%s for %s: status %d", n.id(), holder, r.status)
	}
	return err
}

// linkGone waits until a network is gone, from A&AI too. To delete it again is an error of
// the client.
func (d *Driver) linkGone(ctx context.Context, n Network) error {
	s := d.step("SO waits for the end of the network")
	err := s.poll(ctx, func(ctx context.Context) (bool, error) {
		r, err := s.send(ctx, d.cfg.Service, message{http.MethodGet, n.path(), nil, acceptJSON()})
		if err != nil || r.status != http.StatusNotFound {
			return false, err
		}
		_, found, err := s.object(ctx, n.entry())
		return !found, err
	})
	if err == nil {
		err = d.releaseLink(ctx, n, firstHolder, http.StatusNotFound)
	}
	if err == nil {
		s.done("%s is gone, and A&AI does not have it", n.id())
	}
	return err
}
