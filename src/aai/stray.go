package aai

import (
	"context"
	"net/url"
)

// collection is a list of objects of one type.
type collection struct{ path, element, key string }

// Strays returns the objects of the service in a tenant that known does not name: left
// by a record that was lost, or by a store that was restored. Without a tenant, they are
// the flavors of the region. Write deletes them, if nothing is wanted. Known is called
// after A&AI has been read, so that it knows of the objects that are created meanwhile.
func (w *Writer) Strays(ctx context.Context, p Place, known func(path string) bool) (Written, error) {
	if p.Tenant == "" {
		return w.strays(ctx, known, collection{p.RegionPath() + "/flavors", "flavor", "flavor-id"})
	}
	return w.strays(ctx, known, collection{p.TenantPath() + "/k8s-resources", "k8s-resource", "id"}, collection{p.TenantPath() + "/vservers", "vserver", "vserver-id"})
}

// StrayNetworks returns the networks of the service that known does not name.
func (w *Writer) StrayNetworks(ctx context.Context, known func(path string) bool) (Written, error) {
	return w.strays(ctx, known, collection{"/network/l3-networks", "l3-network", "network-id"})
}

func (w *Writer) strays(ctx context.Context, known func(path string) bool, all ...collection) (Written, error) {
	out := make(Written)
	for _, c := range all {
		objects, err := w.client.list(ctx, c.path, c.element, url.Values{ownerName: {w.owner}})
		if err != nil {
			return nil, denied(err)
		}
		for _, o := range objects {
			key, ok := o[c.key].(string)
			if path := join(c.path+"/"+c.element, key); ok && o[ownerName] == w.owner && !known(path) {
				out[path] = ""
			}
		}
	}
	return out, nil
}
