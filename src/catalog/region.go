package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// DefaultOwner is the cloud owner of regions that are registered without one.
const DefaultOwner = "k8splugin"

// Register probes a region and stores it. Instead of a probe, it logs in at the cloud of a
// region of OpenStack. It stores nothing if that fails, or if the id is taken (nf.Exists).
// Repeating a request returns the region as it is stored, or nf.Conflict if the request
// differs. If r.Access has a kubeconfig, the rest of the access is read from it; so it is
// in Enlist and UpdateRegion.
func (c *Catalog) Register(ctx context.Context, r nf.Region) (nf.Region, error) {
	r = withDefaults(r)
	subject := "cloud region " + r.ID
	if err := checkRegion("register", r); err != nil {
		return nf.Region{}, err
	}
	if there, err := c.regions.Get(ctx, r.ID); err == nil {
		switch repeated, err := r.Request.Repeats(there.Request, "register", subject); {
		case err != nil:
			return nf.Region{}, err
		case repeated:
			return there, nil
		}
		return nf.Region{}, nf.E(nf.Exists, "register", subject, nf.Violations{{Field: "cloud_region_id", Message: "is registered already"}})
	}
	access, err := c.read(r.Access)
	if err != nil {
		return nf.Region{}, nf.E(nf.KindOf(err), "register", subject, err)
	}
	var probe nf.Probe
	if r.Type == nf.OpenStackRegion {
		err = c.login(ctx, *r.VIM.OpenStack)
	} else {
		probe, err = c.cfg.Probe(ctx, access)
	}
	if err != nil {
		return nf.Region{}, nf.E(nf.KindOf(err), "register", subject, err)
	}
	now := c.cfg.Clock().UTC()
	r.Access, r.Probe, r.Removing, r.Created, r.Updated = access, probe, "", now, now
	if err := c.regions.Insert(ctx, r.ID, r); err != nil {
		return nf.Region{}, err
	}
	return r, nil
}

// login checks the URL of an OpenStack cloud, and logs in.
func (c *Catalog) login(ctx context.Context, o nf.OpenStack) error {
	if c.cfg.Check != nil { // only the URL is checked
		if err := c.cfg.Check(nf.Access{Server: o.AuthURL, Token: nf.Secret("none")}); err != nil {
			return err
		}
	}
	if c.cfg.Login == nil {
		return nf.E(nf.Unsupported, "use", "OpenStack", errors.New("no client is configured"))
	}
	return c.cfg.Login(ctx, o)
}

// loginAgain logs in at the OpenStack cloud of a region if the connection has changed.
func (c *Catalog) loginAgain(ctx context.Context, before, wanted nf.Region) error {
	if wanted.Type != nf.OpenStackRegion || sameCloud(before, wanted) {
		return nil
	}
	return c.login(ctx, *wanted.VIM.OpenStack)
}

// sameCloud reports whether two regions have the same connection to an OpenStack cloud, or
// none.
func sameCloud(a, b nf.Region) bool {
	of := func(r nf.Region) *nf.OpenStack {
		if r.VIM == nil {
			return nil
		}
		return r.VIM.OpenStack
	}
	return reflect.DeepEqual(of(a), of(b))
}

// Enlist stores a region without connecting to its cluster, so nothing is known
// about the cluster yet. It returns nf.Exists if the id is taken, and
// nf.Invalid if the access is rejected. A region that A&AI describes may have no access.
func (c *Catalog) Enlist(ctx context.Context, r nf.Region) (nf.Region, error) {
	r = withDefaults(r)
	if err := checkRegion("register", r); err != nil {
		return nf.Region{}, err
	}
	access, err := c.read(r.Access)
	if err == nil && c.cfg.Check != nil && r.NoAccess() == "" {
		err = c.cfg.Check(access)
	}
	if err != nil {
		return nf.Region{}, nf.E(nf.KindOf(err), "register", "cloud region "+r.ID, err)
	}
	now := c.cfg.Clock().UTC()
	r.Access, r.Probe, r.Removing, r.Created, r.Updated = access, nf.Probe{}, "", now, now
	return r, c.regions.Insert(ctx, r.ID, r)
}

// Region returns one region.
func (c *Catalog) Region(ctx context.Context, id string) (nf.Region, error) {
	return c.regions.Get(ctx, id)
}

// Regions returns every region, ordered by id.
func (c *Catalog) Regions(ctx context.Context) ([]nf.Region, error) {
	return c.regions.List(ctx, "")
}

// RegionsFrom yields the regions after the cursor, ordered by id.
func (c *Catalog) RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error] {
	return c.regions.After(ctx, from)
}

// read returns the access with the fields that its kubeconfig describes, if it
// has one. The credential of the kubeconfig rotates as the access says.
func (c *Catalog) read(a nf.Access) (nf.Access, error) {
	if len(a.Kubeconfig) == 0 {
		return a, nil
	}
	if c.cfg.Parse == nil {
		return a, nf.E(nf.Unsupported, "read", "kubeconfig", errors.New("no parser is configured"))
	}
	out, err := c.cfg.Parse(a.Kubeconfig)
	if err != nil {
		return nf.Access{}, err
	}
	if a.Server != "" && strings.TrimRight(a.Server, "/") != strings.TrimRight(out.Server, "/") {
		return nf.Access{}, nf.E(nf.Invalid, "use", "kubeconfig", nf.Violations{{Field: "access.server", Message: "is not the server of the kubeconfig's current context"}})
	}
	out.Rotation = a.Rotation
	if v := out.CheckRotation(); len(v) > 0 {
		return nf.Access{}, nf.E(nf.Invalid, "use", "kubeconfig", v)
	}
	return out, nil
}

// UpdateRegion edits a region. Changes of its id, origin, holds and times are ignored.
// A new access is probed first, as Register does; if that fails, the region is not changed.
// It returns nf.Conflict if the access was changed concurrently. The edit may be
// called more than once. A region that the edit leaves as it is keeps its time.
func (c *Catalog) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	before, err := c.regions.Get(ctx, id)
	if err != nil {
		return nf.Region{}, err
	}
	wanted := before
	if err := edit(&wanted); err != nil {
		return nf.Region{}, err
	}
	if err := checkRegion("update", wanted); err != nil {
		return nf.Region{}, err
	}
	access, probe := before.Access, before.Probe
	if !sameAccess(before.Access, wanted.Access) {
		if access, err = c.read(wanted.Access); err != nil {
			return nf.Region{}, nf.E(nf.KindOf(err), "update", "cloud region "+id, err)
		}
	}
	access = access.WithRenewal(before.Access) // the given credential may have expired
	if !before.Access.Equal(access) {
		if probe, err = c.cfg.Probe(ctx, access); err != nil {
			return nf.Region{}, nf.E(nf.KindOf(err), "update", "cloud region "+id, err)
		}
	}
	if err := c.loginAgain(ctx, before, wanted); err != nil {
		return nf.Region{}, nf.E(nf.KindOf(err), "update", "cloud region "+id, err)
	}
	return c.regions.Update(ctx, id, func(r *nf.Region) error {
		fixed := *r
		if err := edit(r); err != nil {
			return err
		}
		if !sameAccess(r.Access, wanted.Access) || !sameCloud(*r, wanted) {
			return nf.E(nf.Conflict, "update", "cloud region "+id, nf.Violations{{Field: "access", Message: "was changed by another request"}})
		}
		r.ID, r.Origin, r.Removing, r.Created = fixed.ID, fixed.Origin, fixed.Removing, fixed.Created
		r.Access, r.Probe, r.Updated = access.WithRenewal(fixed.Access), probe, fixed.Updated
		if !sameAccess(r.Access, fixed.Access) || !reflect.DeepEqual(withoutAccess(*r), withoutAccess(fixed)) {
			r.Updated = c.cfg.Clock().UTC()
		}
		return nil
	})
}

func withoutAccess(r nf.Region) nf.Region {
	r.Access = nf.Access{}
	return r
}

// KeepToken stores a token that was renewed for a region's access, unless a token
// that expires later is stored. It does nothing if the region no longer exists or
// has another access: a replica that is late cannot replace a newer credential.
func (c *Catalog) KeepToken(ctx context.Context, id string, access nf.Access, token nf.RenewedToken) error {
	_, err := c.regions.Update(ctx, id, func(r *nf.Region) error {
		stored := r.Access.Renewed
		if r.Access.Equal(access) && (stored == nil || stored.Expires.Before(token.Expires)) {
			r.Access.Renewed = &token
		}
		return nil
	})
	return nf.IgnoreNotFound(err)
}

// EditRenewal edits what is stored of the renewal of an access's client certificate, and
// returns it. Edit may be called more than once. It stores nothing and returns zero if the
// region no longer exists or has another access.
func (c *Catalog) EditRenewal(ctx context.Context, id string, access nf.Access, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error) {
	var stored nf.CertificateRenewal
	_, err := c.regions.Update(ctx, id, func(r *nf.Region) error {
		if stored = (nf.CertificateRenewal{}); !r.Access.Equal(access) {
			return nil
		}
		if r.Access.CertificateRenewal != nil {
			stored = r.Access.CertificateRenewal.Clone()
		}
		edit(&stored)
		r.Access.CertificateRenewal = new(stored.Clone())
		return nil
	})
	if err != nil {
		return nf.CertificateRenewal{}, nf.IgnoreNotFound(err)
	}
	return stored, nil
}

// sameAccess reports whether two accesses are equal and were given in the same
// kubeconfig.
func sameAccess(a, b nf.Access) bool {
	return a.Equal(b) && bytes.Equal(a.Kubeconfig, b.Kubeconfig)
}

// RemoveRegion deregisters a region. It returns nf.Conflict while instances use
// it. The cluster itself is not changed.
func (c *Catalog) RemoveRegion(ctx context.Context, id string) error {
	_, err := c.regions.Remove(ctx, id)
	return c.inUse(ctx, "cloud region "+id, nf.Holding{Region: id}, err)
}

func withDefaults(r nf.Region) nf.Region {
	r.Owner, r.Type = cmp.Or(r.Owner, DefaultOwner), cmp.Or(r.Type, nf.KubernetesRegion)
	return r
}

func checkRegion(op string, r nf.Region) error {
	v := nf.CheckID("cloud_region_id", r.ID)
	v = append(v, nf.CheckID("cloud_owner", r.Owner)...)
	v = append(v, nf.CheckText("description", r.Description)...)
	v = append(v, nf.CheckLabels("labels", r.Labels)...)
	v = append(v, nf.CheckPlugins("cni_plugins", r.Plugins)...)
	v = append(v, nf.CheckInterfaces("interfaces", r.Interfaces)...)
	v = append(v, nf.CheckTenants("tenants", r.Tenants)...)
	v = append(v, nf.CheckAAIName("aai_tenant", r.AAITenant)...)
	v = append(v, checkType(r)...)
	if r.DefaultNamespace != "" {
		v = append(v, nf.CheckNamespace("default_namespace", r.DefaultNamespace)...)
	}
	switch {
	case r.NoAccess() != "":
		// Requests for it fail until A&AI, or an update, has an access. One of OpenStack has none.
	case r.Access.IsZero():
		v = append(v, nf.Violation{Field: "access", Message: "is missing; give it or kubeconfig"})
	case len(r.Access.Kubeconfig) == 0:
		v = append(v, r.Access.Validate(nil)...)
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, op, "cloud region "+r.ID, v)
	}
	return nil
}

// checkType returns the violations of the type of a region. A region of OpenStack is
// one that Tacker's API has registered, and has no access.
func checkType(r nf.Region) nf.Violations {
	switch {
	case r.Type == nf.KubernetesRegion:
		return nil
	case r.Type != nf.OpenStackRegion:
		return nf.Violations{{Field: "type", Message: fmt.Sprintf("%q is not a type of region; use %q", r.Type, nf.KubernetesRegion)}}
	case r.VIM == nil || r.VIM.OpenStack == nil:
		return nf.Violations{{Field: "type", Message: "\"openstack\" is the type of VIMs that Tacker's API registers"}}
	case !r.Access.IsZero():
		return nf.Violations{{Field: "access", Message: "is not possible: " + r.NoAccess()}}
	}
	return nil
}
