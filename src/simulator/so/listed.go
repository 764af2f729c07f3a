package so

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Listed is the part of A&AI that belongs to an instance.
type Listed struct {
	Paths     []string            // of k8s-resources and vservers, below A&AI's version
	Objects   []string            // "kind name" of each k8s-resource, sorted
	Addresses map[string][]string // of each vserver, by its name, as "interface address"

	uneven string // how the relations of the vf-module and the generic-vnf differ
}

// listed reads the objects that are related to the vf-module. Each of them must be in the
// tenant.
func (s step) listed(ctx context.Context, v VNF) (Listed, error) {
	out := Listed{Addresses: map[string][]string{}}
	module, err := s.mustObject(ctx, v.modulePath())
	if err != nil {
		return out, err
	}
	vnf, err := s.mustObject(ctx, v.path())
	if err != nil {
		return out, err
	}
	for _, kind := range []string{"k8s-resource", "vserver"} {
		of := module.related(kind)
		if other := vnf.related(kind); !slices.Equal(of, other) {
			out.uneven = fmt.Sprintf("relates the vf-module to %d objects of type %s, and the generic-vnf to %d", len(of), kind, len(other))
		}
		out.Paths = append(out.Paths, of...)
	}
	for _, path := range out.Paths {
		if !strings.HasPrefix(path, v.tenantPath()+"/") {
			return out, &Difference{Step: s.name, Request: "GET " + aaiVersion + path, What: "it is not in the tenant " + v.Tenant}
		}
		if err := s.addListed(ctx, path, &out); err != nil {
			return out, err
		}
	}
	slices.Sort(out.Objects)
	return out, nil
}

// addListed reads one object of an instance. One that was deleted since is left out.
func (s step) addListed(ctx context.Context, path string, out *Listed) error {
	if strings.Contains(path, "/k8s-resources/") {
		o, found, err := s.object(ctx, path)
		if found {
			out.Objects = append(out.Objects, o.Kind+" "+o.Name)
		}
		return err
	}
	r, err := s.aai(ctx, http.MethodGet, path+"?depth=all", nil)
	if err != nil || r.status == http.StatusNotFound {
		return err
	}
	var server struct {
		Name       string `json:"vserver-name"`
		Interfaces struct {
			All []struct {
				Name string `json:"interface-name"`
				V4   []struct {
					Address string `json:"l3-interface-ipv4-address"`
				} `json:"l3-interface-ipv4-address-list"`
				V6 []struct {
					Address string `json:"l3-interface-ipv6-address"`
				} `json:"l3-interface-ipv6-address-list"`
			} `json:"l-interface"`
		} `json:"l-interfaces"`
	}
	if err := r.want(http.StatusOK); err != nil {
		return err
	}
	if err := r.read(&server); err != nil {
		return err
	}
	addresses := []string{}
	for _, i := range server.Interfaces.All {
		for _, a := range i.V4 {
			addresses = append(addresses, i.Name+" "+a.Address)
		}
		for _, a := range i.V6 {
			addresses = append(addresses, i.Name+" "+a.Address)
		}
	}
	slices.Sort(addresses)
	out.Addresses[server.Name] = addresses
	return nil
}

// Inventory reads the part of A&AI that belongs to a VNF, all of which is related to the
// vf-module and to the generic-vnf.
func (d *Driver) Inventory(ctx context.Context, v VNF) (Listed, error) {
	return d.step("SO reads A&AI").await(ctx, v, nil)
}

// await waits until A&AI has exactly the given objects of an instance, given as "kind
// name", or any if they are nil, and an address of each vserver. Pods, which a package does not
// name, may be there in addition. All are related to the vf-module and to the generic-vnf.
func (s step) await(ctx context.Context, v VNF, want []string) (got Listed, err error) {
	if want != nil {
		want = slices.Compact(slices.Sorted(slices.Values(want)))
	}
	var missing string
	err = s.poll(ctx, func(ctx context.Context) (bool, error) {
		got, err = s.listed(ctx, v)
		if err != nil {
			return false, err
		}
		if missing = got.uneven; missing != "" || want == nil {
			return missing == "", nil
		}
		named := slices.DeleteFunc(slices.Clone(got.Objects), func(one string) bool { return strings.HasPrefix(one, "Pod ") && !slices.Contains(want, one) })
		if missing = difference(want, named); missing == "" {
			missing = got.unaddressed()
		}
		return missing == "", nil
	})
	if err != nil && missing != "" {
		err = fmt.Errorf("%w: A&AI %s", err, missing)
	}
	return got, err
}

// unaddressed returns that a vserver has no address yet, or "".
func (l Listed) unaddressed() string {
	for name, addresses := range l.Addresses {
		if len(addresses) == 0 {
			return "lacks the addresses of vserver " + name
		}
	}
	return ""
}

// difference returns the first element that only one of the two sets has, as a text.
func difference(want, got []string) string {
	for _, one := range want {
		if !slices.Contains(got, one) {
			return "lacks " + one
		}
	}
	for _, one := range got {
		if !slices.Contains(want, one) {
			return "has " + one + " in addition"
		}
	}
	return ""
}

// related returns the objects that A&AI has of an instance now, as pods may have changed,
// and those that it had.
func (s step) related(ctx context.Context, v VNF, had Listed) ([]string, error) {
	module, _, err := s.object(ctx, v.modulePath())
	all := slices.Concat(had.Paths, module.related("k8s-resource"), module.related("vserver"))
	return slices.Compact(slices.Sorted(slices.Values(all))), err
}

// text returns the addresses as one text.
func (l Listed) text() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.Addresses)) {
		all = append(all, name+" ("+strings.Join(l.Addresses[name], ", ")+")")
	}
	if len(all) == 0 {
		return "no vservers"
	}
	return "vservers " + strings.Join(all, ", ")
}
