package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// nsdFile is the name of an NSD in faults: the field of the request.
const nsdFile = "nsd"

// nsds reads the descriptors of network services. It finds the packages that the caller may
// see.
type nsds struct {
	packages interface {
		PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error]
	}
}

// members implements native.NSDs.
func (n nsds) members(ctx context.Context, project, text string) ([]wire.ServiceMemberAdd, error) {
	d, err := tosca.ReadNSD(nsdFile, []byte(text))
	if err != nil {
		return nil, err
	}
	packages, err := n.byVNFD(ctx, project)
	if err != nil {
		return nil, err
	}
	var out []wire.ServiceMemberAdd
	var wrong nf.Violations
	for _, m := range d.Members {
		of, found := packages[m.VNFD]
		if !found {
			wrong = append(wrong, nf.Violation{File: nsdFile, Line: m.Line, Message: fmt.Sprintf("no onboarded and enabled package of project %s has the VNF descriptor %q of %s", project, nf.Clip(m.VNFD, 64), m.Name)})
			continue
		}
		add := wire.ServiceMemberAdd{Name: m.Name, Group: m.Group, InstanceEdit: wire.InstanceEdit{Package: of.ID, Parameters: map[string]any{}}}
		for name, value := range map[string]string{nf.FlavorParameter: m.Flavor, nf.LevelParameter: m.Level} {
			if value != "" {
				add.Parameters[name] = value
			}
		}
		for _, link := range m.Links {
			add.Networks = append(add.Networks, wire.Attachment{Network: link})
		}
		out = append(out, add)
	}
	if len(wrong) > 0 {
		return nil, nf.E(nf.Invalid, "use", "the network service descriptor", wrong)
	}
	return out, nil
}

// byVNFD returns the packages of a project that can be used by the ids of their VNF
// descriptors. Of several, it is the newest one.
func (n nsds) byVNFD(ctx context.Context, project string) (map[string]nf.Package, error) {
	out := map[string]nf.Package{}
	for p, err := range n.packages.PackagesFrom(ctx, nf.Cursor{Where: []nf.Attribute{{Name: nf.AttributeProject, Value: project}}}) {
		if err != nil {
			return nil, err
		}
		if p.VNFD == nil || p.State() != nf.PackageOnboarded || p.Disabled || p.Removing != "" {
			continue
		}
		if other, there := out[p.VNFD.ID]; !there || p.Created.After(other.Created) {
			out[p.VNFD.ID] = p
		}
	}
	return out, nil
}
