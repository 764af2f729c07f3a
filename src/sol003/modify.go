package sol003

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Modify accepts a change of what is stored of a VNF. Nothing in the region changes: a new
// package becomes effective with the next instantiation, or by ChangePackage. Until then, an
// instantiated VNF keeps the package that it runs. Modify returns nf.Unsupported if there is
// no onboarded and enabled package of the project with the descriptor; and nf.Invalid for
// connections to VIMs while the VNF is not instantiated, and for a component that it does
// not have.
func (m *Manager) Modify(ctx context.Context, id string, req nf.ModifyVNFRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceModify, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		after := cloned(v)
		if req.Name != nil {
			after.Name = *req.Name
		}
		if req.Description != nil {
			after.Description = *req.Description
		}
		if req.VNFD != nil && *req.VNFD != v.VNFD.ID {
			p, err := m.resolve.packageOf(ctx, v.Project, *req.VNFD)
			if err != nil {
				return record{}, err
			}
			running := v.Running()
			use(&after, p)
			if after.Instantiated != nil {
				after.Instantiated.Package = running
			}
		}
		after.Metadata, after.Extensions, after.Configurable = merged(v.Metadata, req.Metadata), merged(v.Extensions, req.Extensions), merged(v.Configurable, req.Configurable)
		var err error
		if after.VIMs, err = m.resolve.reconnected(ctx, nf.VNFModify, v, connecting{req.VIMs, req.Check}); err != nil {
			return record{}, err
		}
		if err := configure(&after, req.VNFCs); err != nil {
			return record{}, err
		}
		return record{Task: task{After: after}}, checkTexts(string(nf.VNFModify), "VNF "+v.ID, after)
	})
}

// configure sets the configurable properties of components.
func configure(v *nf.VNF, wanted map[string]map[string]any) error {
	all := slices.Clone(components(*v))
	for id, patch := range wanted {
		at := slices.IndexFunc(all, func(c nf.VNFC) bool { return c.ID() == id })
		if at < 0 {
			return invalid(nf.VNFModify, *v, "vnfcInfoModifications", "%q is not a component of the VNF", nf.Clip(id, maxQuote))
		}
		all[at].Configurable = merged(all[at].Configurable, patch)
		if faults := nf.CheckUserData("vnfcInfoModifications", all[at].Configurable); len(faults) > 0 {
			return nf.E(nf.Invalid, string(nf.VNFModify), "VNF "+v.ID, faults)
		}
	}
	if len(wanted) > 0 {
		v.Instantiated.VNFCs = all
	}
	return nil
}

// connecting is what a request says of the connections of a VNF.
type connecting struct {
	vims  map[string]nf.VIMConnectionRequest
	check bool // the VIMs need not exist yet
}

// reconnected returns the connections of a VNF after a request has changed some. What the
// request leaves out of a connection stays. It returns nf.Invalid if the VNF is not
// instantiated, and nf.Conflict for another VIM than the one that the VNF runs on.
func (rs resolver) reconnected(ctx context.Context, verb nf.Verb, v nf.VNF, to connecting) (map[string]nf.VIMConnection, error) {
	if len(to.vims) == 0 {
		return v.VIMs, nil
	}
	if v.Instantiated == nil {
		return nil, invalid(verb, v, "vimConnectionInfo", "can be changed only while the VNF is instantiated")
	}
	wanted := v.Connected(to.vims)
	if to.check {
		return v.VIMs, rs.remains(ctx, verb, v, wanted)
	}
	given, _, err := rs.connections(ctx, wanted)
	if err != nil {
		return nil, err
	}
	out := map[string]nf.VIMConnection{}
	maps.Copy(out, v.VIMs)
	for key, c := range given {
		present, has := out[key]
		if has && present.Region == v.Instantiated.Region && c.Region != present.Region {
			return nil, moved(verb, v)
		}
		if present.Made {
			c.Made, c.Server = c.Region == present.Region, present.Server
		}
		if has && c.Region == present.Region {
			c.Type = orDefault(wanted[key].Type, present.Type)
		}
		c.Extra = merged(present.Extra, c.Extra)
		out[key] = c
	}
	return out, nil
}

// remains returns nf.Conflict if the connections of a request are with another VIM than the
// one that the VNF runs on. Others may be with VIMs that do not exist yet.
func (rs resolver) remains(ctx context.Context, verb nf.Verb, v nf.VNF, wanted map[string]nf.VIMConnectionRequest) error {
	r, err := rs.cfg.Regions.Region(ctx, v.Instantiated.Region)
	if err != nil {
		return err
	}
	for key, w := range wanted {
		if v.VIMs[key].Region == r.ID && !r.IsVIM(w.VIM) && !r.Serves(serverOf(w)) && !describes(w, r) {
			return moved(verb, v)
		}
	}
	return nil
}

// describes reports whether a connection of a request describes the project of a region, in
// its region of its OpenStack cloud.
func describes(w nf.VIMConnectionRequest, r nf.Region) bool {
	return r.Type == nf.OpenStackRegion && w.OpenStack(serverOf(w)).Scope() == r.VIM.OpenStack.Scope()
}

func moved(verb nf.Verb, v nf.VNF) error {
	return nf.E(nf.Conflict, string(verb), "VNF "+v.ID, errors.New("it cannot be moved to another VIM"))
}

// changedOf returns the attributes of a VNF that a modification, or a change of the
// package, has changed, as SOL003 names them; nil: none.
func changedOf(t task) json.RawMessage {
	b, a := t.Before, t.After
	changed := map[string]any{}
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"vnfInstanceName", b.Name, a.Name}, {"vnfInstanceDescription", b.Description, a.Description},
		{"vnfdId", b.VNFD.ID, a.VNFD.ID}, {"vnfProvider", b.VNFD.Provider, a.VNFD.Provider}, {"vnfProductName", b.VNFD.Product, a.VNFD.Product},
		{"vnfSoftwareVersion", b.VNFD.SoftwareVersion, a.VNFD.SoftwareVersion}, {"vnfdVersion", b.VNFD.Version, a.VNFD.Version},
		{"metadata", b.Metadata, a.Metadata}, {"extensions", b.Extensions, a.Extensions}, {"vnfConfigurableProperties", b.Configurable, a.Configurable},
	} {
		if !reflect.DeepEqual(f.before, f.after) {
			changed[f.name] = f.after
		}
	}
	if len(changed) == 0 {
		return nil
	}
	text, err := json.Marshal(changed)
	if err != nil {
		return nil // what was decoded can be encoded
	}
	return text
}
