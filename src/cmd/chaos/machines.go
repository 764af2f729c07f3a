package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const clusterObjects = "/apis/cluster.x-k8s.io/v1beta2/clusters"

// defineClusters makes the API server serve the clusters of Cluster API.
func (c *cluster) defineClusters(ctx context.Context) error {
	const open = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	return c.define(ctx, clusterObjects, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"clusters.cluster.x-k8s.io"},
		"spec":{"group":"cluster.x-k8s.io","scope":"Namespaced","names":{"plural":"clusters","kind":"Cluster"},
		"versions":[{"name":"v1beta2","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":`+open+`}}]}}`)
}

// machines stands in for the controllers of Cluster API: every Cluster in the namespaces of
// the run is available at once, and is the sandbox itself. There are no machines.
type machines struct {
	cluster *cluster
	counts  *counts
	prefix  string
}

// run moves the clusters until the context ends.
func (m machines) run(ctx context.Context) error {
	for pause(ctx, 200*time.Millisecond) == nil {
		if err := m.moveAll(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (m machines) moveAll(ctx context.Context) error {
	var list struct{ Items []clusterResource }
	if err := m.cluster.get(ctx, clusterObjects, &list); err != nil {
		return err
	}
	for _, one := range list.Items {
		if !strings.HasPrefix(one.Metadata.Namespace, m.prefix) {
			continue
		}
		var refused *refusal
		if err := m.move(ctx, one); errors.As(err, &refused) {
			m.counts.add("clusters that changed in the meantime", 1)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// clusterResource is a Cluster.
type clusterResource struct {
	Metadata struct {
		Namespace  string   `json:"namespace"`
		Name       string   `json:"name"`
		Generation int      `json:"generation"`
		Finalizers []string `json:"finalizers"`
		Deleted    string   `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Generation int `json:"observedGeneration"`
	} `json:"status"`
}

// move moves a Cluster to the state that it must have: available, with a Secret that has the
// kubeconfig, or deleted.
func (m machines) move(ctx context.Context, one clusterResource) error {
	meta := one.Metadata
	secrets := "/api/v1/namespaces/" + meta.Namespace + "/secrets"
	path := strings.Replace(clusterObjects, "/clusters", "/namespaces/"+meta.Namespace+"/clusters/"+meta.Name, 1)
	patch := func(subresource, content string) error {
		_, err := m.cluster.send(ctx, http.MethodPatch, path+subresource, content)
		return err
	}
	switch {
	case meta.Deleted != "":
		_, err := m.cluster.do(ctx, http.MethodDelete, secrets+"/"+meta.Name+"-kubeconfig")
		if err = unless(http.StatusNotFound, err); err != nil {
			return err
		}
		return patch("", `{"metadata":{"finalizers":null}}`)
	case len(meta.Finalizers) == 0:
		return patch("", `{"metadata":{"finalizers":["cluster.cluster.x-k8s.io"]}}`)
	case one.Status.Generation == meta.Generation:
		return nil
	}
	_, err := m.cluster.send(ctx, http.MethodPost, secrets, fmt.Sprintf(`{"metadata":{"name":"%s-kubeconfig","labels":{"cluster.x-k8s.io/cluster-name":%q}},"type":"cluster.x-k8s.io/secret","data":{"value":%q}}`,
		meta.Name, meta.Name, base64.StdEncoding.EncodeToString([]byte(m.cluster.kubeconfig))))
	if err = unless(http.StatusConflict, err); err != nil {
		return err
	}
	m.counts.add("clusters made available", 1)
	const done = `"status":"True","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"`
	return patch("/status", fmt.Sprintf(`{"status":{"observedGeneration":%d,"phase":"Provisioned","initialization":{"infrastructureProvisioned":true,"controlPlaneInitialized":true},
		"conditions":[{"type":"ControlPlaneInitialized",%s},{"type":"Available",%s}]}}`, meta.Generation, done, done))
}
