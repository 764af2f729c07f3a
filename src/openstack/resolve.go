package openstack

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// resolved has the ids of what machines consist of.
type resolved struct {
	image, flavor string
	networks      []string
	groups        *[]string // of security; nil: the cloud's default
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F-]{32,36}$`)

// object is an object of a cloud that is found by id or name.
type object struct{ id, name string }

// resolve finds the objects that a spec names.
func (s *session) resolve(ctx context.Context, m nf.Machines) (resolved, error) {
	var out resolved
	var err error
	if out.image, err = s.findImage(ctx, m.Image); err != nil {
		return out, err
	}
	if out.flavor, err = s.findFlavor(ctx, m.Flavor); err != nil {
		return out, err
	}
	for _, wanted := range m.Networks {
		id, err := s.findNetwork(ctx, wanted)
		if err != nil {
			return out, err
		}
		out.networks = append(out.networks, id)
	}
	if len(m.SecurityGroups) == 0 {
		return out, nil
	}
	ids := []string{}
	for _, wanted := range m.SecurityGroups {
		id, err := s.findGroup(ctx, wanted)
		if err != nil {
			return out, err
		}
		ids = append(ids, id)
	}
	out.groups = &ids
	return out, nil
}

// find returns the id of the object with the id or, if there is none, of the only one
// with the name.
func (s *session) find(kind, wanted string, all []object) (string, error) {
	if slices.ContainsFunc(all, func(o object) bool { return o.id == wanted }) {
		return wanted, nil
	}
	all = slices.DeleteFunc(all, func(o object) bool { return o.name != wanted })
	subject := fmt.Sprintf("%s %q of cloud %s", kind, wanted, s.subject)
	switch len(all) {
	case 0:
		return "", nf.E(nf.NotFound, "find", subject, nil)
	case 1:
		return all[0].id, nil
	}
	return "", nf.E(nf.Conflict, "find", subject, errors.New("several have this name; give the id"))
}

func (s *session) findImage(ctx context.Context, wanted string) (string, error) {
	pages, err := images.List(s.image, images.ListOpts{Name: wanted}).AllPages(ctx)
	if err != nil {
		return "", s.wrong(ctx, "list the images of", err)
	}
	found, err := images.ExtractImages(pages)
	if err != nil {
		return "", s.wrong(ctx, "read the images of", err)
	}
	var all []object
	for _, i := range found {
		all = append(all, object{i.ID, i.Name})
	}
	if len(all) > 0 {
		return s.find("image", wanted, all)
	}
	if !uuid.MatchString(wanted) { // only an id may become a part of a path
		return s.find("image", wanted, nil)
	}
	one, err := images.Get(ctx, s.image, wanted).Extract()
	if err == nil {
		return one.ID, nil
	}
	if err = s.wrong(ctx, "get an image of", err); nf.KindOf(err) == nf.NotFound {
		return s.find("image", wanted, nil)
	}
	return "", err
}

func (s *session) findFlavor(ctx context.Context, wanted string) (string, error) {
	pages, err := flavors.ListDetail(s.compute, flavors.ListOpts{}).AllPages(ctx)
	if err != nil {
		return "", s.wrong(ctx, "list the flavors of", err)
	}
	found, err := flavors.ExtractFlavors(pages)
	if err != nil {
		return "", s.wrong(ctx, "read the flavors of", err)
	}
	var all []object
	for _, f := range found {
		all = append(all, object{f.ID, f.Name})
	}
	return s.find("flavor", wanted, all)
}

func (s *session) findNetwork(ctx context.Context, wanted string) (string, error) {
	var all []object
	for _, opts := range []networks.ListOpts{{ID: wanted}, {Name: wanted}} {
		pages, err := networks.List(s.network, opts).AllPages(ctx)
		if err != nil {
			return "", s.wrong(ctx, "list the networks of", err)
		}
		found, err := networks.ExtractNetworks(pages)
		if err != nil {
			return "", s.wrong(ctx, "read the networks of", err)
		}
		for _, n := range found {
			all = append(all, object{n.ID, n.Name})
		}
	}
	return s.find("network", wanted, all)
}

func (s *session) findGroup(ctx context.Context, wanted string) (string, error) {
	var all []object
	for _, opts := range []groups.ListOpts{{ID: wanted}, {Name: wanted}} {
		pages, err := groups.List(s.network, opts).AllPages(ctx)
		if err != nil {
			return "", s.wrong(ctx, "list the security groups of", err)
		}
		found, err := groups.ExtractGroups(pages)
		if err != nil {
			return "", s.wrong(ctx, "read the security groups of", err)
		}
		for _, g := range found {
			all = append(all, object{g.ID, g.Name})
		}
	}
	return s.find("security group", wanted, all)
}
