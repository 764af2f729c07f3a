package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// NSDs returns the members that a network service descriptor (ETSI SOL001) describes, each
// with the package of its VNF descriptor. It returns nf.Invalid with a violation for each
// fault of the descriptor, and for each VNF without a package in the project.
type NSDs func(ctx context.Context, project, text string) ([]wire.ServiceMemberAdd, error)

// described returns a description of a network service in which the members of its NSD
// stand for it. The members of the request complete them.
func (ss services) described(ctx context.Context, project string, e wire.ServiceEdit) (wire.ServiceEdit, error) {
	if e.NSD == "" {
		return e, nil
	}
	if ss.nsds == nil {
		return e, nf.E(nf.Unsupported, "read", "the NSD", errors.New("descriptors of network services are not enabled"))
	}
	all, err := ss.nsds(ctx, nf.ProjectOf(project), e.NSD)
	if err != nil {
		return e, err
	}
	var wrong nf.Violations
	for i, m := range e.Members {
		at := slices.IndexFunc(all, func(of wire.ServiceMemberAdd) bool { return of.Name == m.Name })
		if at < 0 {
			names := wire.List(all, func(of wire.ServiceMemberAdd) string { return of.Name })
			wrong = append(wrong, nf.Violation{Field: fmt.Sprintf("members[%d].name", i), Message: fmt.Sprintf("%q is not a VNF of the NSD, which has %s", nf.Clip(m.Name, 64), strings.Join(names, ", "))})
			continue
		}
		all[at] = completed(all[at], m)
	}
	if len(wrong) > 0 {
		return e, nf.E(nf.Invalid, "read", "the members of the network service", wrong)
	}
	e.NSD, e.Members = "", all
	return e, nil
}

// completed returns a member of an NSD with the fields of a request, which precede those of
// the NSD.
func completed(of, with wire.ServiceMemberAdd) wire.ServiceMemberAdd {
	with.Package, with.Group = cmp.Or(with.Package, of.Package), cmp.Or(with.Group, of.Group)
	parameters := maps.Clone(of.Parameters)
	if parameters == nil {
		parameters = map[string]any{}
	}
	if maps.Copy(parameters, with.Parameters); len(parameters) > 0 {
		with.Parameters = parameters
	}
	for _, a := range of.Networks {
		if !slices.ContainsFunc(with.Networks, func(given wire.Attachment) bool { return given.Network == a.Network }) {
			with.Networks = append(with.Networks, a)
		}
	}
	return with
}

// describedPatch returns a patch in which the members of its NSD stand for it.
func (ss services) describedPatch(ctx context.Context, id string, change patch, given wire.ServiceEdit) (patch, error) {
	if given.NSD == "" {
		return change, nil
	}
	there, err := ss.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	e, err := ss.described(ctx, there.Project, given)
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(e.Members)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the members of the NSD: %w", err)
	}
	var members any
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, fmt.Errorf("cannot decode the members of the NSD: %w", err)
	}
	change = maps.Clone(change)
	delete(change, "nsd")
	change["members"] = members
	return change, nil
}
