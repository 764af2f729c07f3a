package main

import (
	"context"
	"fmt"
	"net/http"
)

// holder names the client among the holders of its volumes.
const holder = "chaos"

// addResources adds the resources that the instance of a workload uses to the request for
// it.
func addResources(w workload, body map[string]any) {
	if w.link != "" {
		body["networks"] = []any{map[string]any{"network": w.link, "workload": appOf(w.name), "create": linkDefinition()}}
	}
	if w.volume != "" {
		body["volumes"] = []any{map[string]any{"volume": w.volume, "claim": w.name + "-data"}}
	}
	if w.edge != "" {
		// All of them are the sandbox, which can have one service account of a region only.
		body["workload_clusters"] = []any{map[string]any{"cluster": clusterOf(w.name), "cloud_region_id": w.edge, "credentials": "secret"}}
	}
}

// linkDefinition defines the networks that instances share. The first instance creates a
// network, and the last one deletes it.
func linkDefinition() map[string]any {
	return map[string]any{"driver": "multus", "spec": map[string]any{"type": "macvlan", "master": "eth1"}}
}

// createVolume creates the volume of a workload, if it has one.
func (l *load) createVolume(ctx context.Context, w workload) error {
	if w.volume == "" {
		return nil
	}
	a, err := l.client.insist(ctx, call{method: http.MethodPost, path: "/v1/volumes", key: w.volume + "-volume", prefer: "wait=30", body: map[string]any{
		"name": w.volume, "cloud_region_id": w.place.Region, "size": "1Gi", "retention": "delete", "holder": holder,
		"source": map[string]any{"nfs": map[string]any{"server": "192.0.2.1", "path": "/export"}},
	}})
	return l.volumeAnswered(w, a, err, false)
}

// releaseVolume ends the hold of the client on the volume of a workload, whose instance no
// longer exists.
func (l *load) releaseVolume(ctx context.Context, w workload) error {
	if w.volume == "" {
		return nil
	}
	a, err := l.client.insist(ctx, call{method: http.MethodDelete, path: "/v1/volumes/" + w.place.Region + "." + w.volume + "?holder=" + holder})
	if a.status == http.StatusNotFound {
		a.status = http.StatusNoContent // the answer to an earlier attempt was lost
	}
	return l.volumeAnswered(w, a, err, true)
}

func (l *load) volumeAnswered(w workload, a answer, err error, released bool) error {
	if err != nil {
		return err
	}
	if a.status >= http.StatusBadRequest {
		return fmt.Errorf("volume %s: status %d: %s", w.volume, a.status, a.body)
	}
	l.counts.add(map[bool]string{false: "volumes created", true: "volumes released"}[released], 1)
	l.ledger.volume(w.place.Region+"."+w.volume, released)
	return nil
}
