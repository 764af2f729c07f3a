package clusterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// handedOver is the body of the request that hands a region over.
type handedOver struct {
	Region     string `json:"cloud_region_id"`
	Parent     string `json:"parent_cloud_region_id"`
	Namespace  string `json:"namespace"`
	Cluster    string `json:"cluster"`
	Kubeconfig []byte `json:"kubeconfig"` // base64
}

// handOverNote is stored with the request, and not sent.
type handOverNote struct {
	Instance string `json:"instance"` // that registered the region
}

// handOver stores the request that hands the kubeconfig of a region over, unless it was
// handed over already. After a crash between the request and the region's record, the
// kubeconfig is handed over a second time.
func (r *Registrar) handOver(ctx context.Context, held func(context.Context) error, region nf.Region) error {
	p := *region.Parent
	if p.Workload.HandOver == "" {
		return nil
	}
	kubeconfig, err := kubeconfigOf(region)
	if err != nil {
		return err
	}
	key := digest(append([]byte(p.Workload.HandOver+"\n"), kubeconfig...))
	if p.Last == key {
		return nil
	}
	request, err := handOverRequest(region, kubeconfig)
	if err != nil {
		return err
	}
	if err := held(ctx); err != nil {
		return err
	}
	_, err = r.cfg.Outbox.Put(ctx, request)
	stored := err == nil
	if !stored && nf.KindOf(err) != nf.Exists {
		return err
	}
	changed, err := r.cfg.Regions.UpdateRegion(ctx, region.ID, func(g *nf.Region) error {
		switch {
		case g.Parent == nil || !g.Parent.Is(p):
			return nf.E(nf.NotFound, "update", "cloud region "+g.ID, nil)
		case g.Parent.Sent > p.Sent: // another replica was faster
			return nil
		}
		now := *g.Parent
		now.Sent++
		if stored { // the request that exists may have former credentials, or those of a region that was removed
			now.Last = key
		}
		g.Parent = &now
		return nil
	})
	if err != nil {
		return again(nf.IgnoreNotFound(err))
	}
	return r.handOver(ctx, held, changed)
}

// handOverRequest returns the next request that hands the kubeconfig of a region over.
func handOverRequest(region nf.Region, kubeconfig []byte) (outbox.Request, error) {
	p := *region.Parent
	body, err := json.Marshal(handedOver{region.ID, p.Region, p.Workload.Namespace, p.Workload.Cluster, kubeconfig})
	if err != nil {
		return outbox.Request{}, fmt.Errorf("cannot encode the kubeconfig of cloud region %s: %w", region.ID, err)
	}
	note, err := json.Marshal(handOverNote{p.Instance})
	if err != nil {
		return outbox.Request{}, fmt.Errorf("cannot encode the note of cloud region %s: %w", region.ID, err)
	}
	return outbox.Request{
		Key: region.ID, Number: p.Sent + 1, Method: http.MethodPost, URL: p.Workload.HandOver, Body: body, Note: note,
		Header: map[string]string{"Content-Type": "application/json"},
	}, nil
}

// kubeconfigOf returns a kubeconfig with the access of a region.
func kubeconfigOf(region nf.Region) ([]byte, error) {
	a := region.Access
	cluster := map[string]any{"server": a.Server}
	user := map[string]any{}
	for field, value := range map[string][]byte{"certificate-authority-data": a.CA} {
		if len(value) > 0 {
			cluster[field] = value
		}
	}
	for field, value := range map[string]string{"tls-server-name": a.ServerName, "proxy-url": string(a.Proxy)} {
		if value != "" {
			cluster[field] = value
		}
	}
	if a.Insecure {
		cluster["insecure-skip-tls-verify"] = true
	}
	for field, value := range map[string][]byte{"client-certificate-data": a.Certificate, "client-key-data": a.Key} {
		if len(value) > 0 {
			user[field] = value
		}
	}
	for field, value := range map[string]string{"token": string(a.Token), "username": a.Username, "password": string(a.Password)} {
		if value != "" {
			user[field] = value
		}
	}
	id := region.ID
	out, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": id,
		"clusters": []any{map[string]any{"name": id, "cluster": cluster}},
		"users":    []any{map[string]any{"name": id, "user": user}},
		"contexts": []any{map[string]any{"name": id, "context": map[string]any{"cluster": id, "user": id}}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the kubeconfig of cloud region %s: %w", id, err)
	}
	return out, nil
}
