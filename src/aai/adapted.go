package aai

import (
	"context"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// adapterOwner is the data-owner of the objects of SO's adapter for CNFs. Their
// data-source is Source.
const adapterOwner = "CnfAdapter"

// Adapted returns the paths of the objects of a cloud region that SO's adapter has
// written, by the id of the VNF instance whose label they have.
func (w *Writer) Adapted(ctx context.Context, p Place) (map[string][]string, error) {
	tenants, err := w.client.list(ctx, p.RegionPath()+"/tenants", "tenant", nil)
	if err != nil {
		return nil, denied(err)
	}
	out := make(map[string][]string)
	for _, t := range tenants {
		p.Tenant = textOf(t, "tenant-id")
		path := p.TenantPath() + "/k8s-resources"
		found, err := w.client.list(ctx, path, "k8s-resource", url.Values{ownerName: {adapterOwner}, "data-source": {Source}})
		if err != nil {
			return nil, denied(err)
		}
		for _, o := range found {
			instance := labelOf(o, nf.OwnerLabel)
			if id := textOf(o, "id"); id != "" && instance != "" && o[ownerName] == adapterOwner && o["data-source"] == Source {
				out[instance] = append(out[instance], join(path+"/k8s-resource", id))
			}
		}
	}
	return out, nil
}

// labelOf returns a label of a k8s-resource.
func labelOf(object map[string]any, name string) string {
	labels, _ := object["labels"].([]any)
	for _, l := range labels {
		text, _ := l.(string)
		if value, ok := strings.CutPrefix(text, name+"="); ok {
			return value
		}
	}
	return ""
}
