package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cmd/sandbox/bare"
)

// cluster is a separate client of the sandbox's API server. Faults of lines do
// not affect it.
type cluster struct {
	http       *http.Client
	server     string
	kubeconfig string // the file's content
}

func newCluster(kubeconfig string) (*cluster, error) {
	server, err := bare.Open(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &cluster{server: server.URL, kubeconfig: server.Kubeconfig, http: &http.Client{Transport: server}}, nil
}

// through returns a kubeconfig for the cluster at another address. The API
// server's certificate is valid for all loopback addresses.
func (c *cluster) through(address string) string {
	return strings.ReplaceAll(c.kubeconfig, c.server, "https://"+address)
}

// upstream returns the API server's host and port.
func (c *cluster) upstream() string { return strings.TrimPrefix(c.server, "https://") }

// collections are the paths of instances' objects and of the objects that
// controllers create for them, by kind.
var collections = map[string]string{
	"ConfigMap": "/api/v1/configmaps", "Secret": "/api/v1/secrets", "Service": "/api/v1/services", "Pod": "/api/v1/pods",
	"Deployment": "/apis/apps/v1/deployments", "ReplicaSet": "/apis/apps/v1/replicasets", "Job": "/apis/batch/v1/jobs",
	"PersistentVolumeClaim": "/api/v1/persistentvolumeclaims", "Cluster": clusterObjects,
}

// objects returns the objects of instances in the namespaces with the prefix.
func (c *cluster) objects(ctx context.Context, prefix string) ([]object, error) {
	kinds := sortedKeys(collections)
	found := make([][]object, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	for i, kind := range kinds {
		group.Go(func() error {
			var list struct{ Items []object }
			err := c.get(ctx, collections[kind]+"?labelSelector="+ownerLabel, &list)
			for _, o := range list.Items {
				if o.Kind = kind; strings.HasPrefix(o.Metadata.Namespace, prefix) {
					found[i] = append(found[i], o)
				}
			}
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(found...), err
}

const attachments = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"

// defineNetworks makes the API server serve the objects of networks.
func (c *cluster) defineNetworks(ctx context.Context) error {
	return c.define(ctx, attachments, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"network-attachment-definitions.k8s.cni.cncf.io"},
		"spec":{"group":"k8s.cni.cncf.io","scope":"Namespaced","names":{"plural":"network-attachment-definitions","kind":"NetworkAttachmentDefinition"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"config":{"type":"string"}}}}}}}]}}`)
}

// define makes the API server serve a collection, unless it does, and waits until it does.
func (c *cluster) define(ctx context.Context, collection, definition string) error {
	if _, err := c.do(ctx, http.MethodGet, collection); err == nil {
		return nil
	}
	_, err := c.send(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	if err := unless(http.StatusConflict, err); err != nil { // another test may have defined it just now
		return err
	}
	for {
		_, err := c.do(ctx, http.MethodGet, collection)
		if err == nil || pause(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// links returns the names of the objects of networks with the prefix.
func (c *cluster) links(ctx context.Context, prefix string) ([]string, error) {
	return c.named(ctx, attachments, prefix)
}

// disks returns the names of the PersistentVolumes of volumes with the prefix.
func (c *cluster) disks(ctx context.Context, prefix string) ([]string, error) {
	return c.named(ctx, "/api/v1/persistentvolumes", diskOf(prefix))
}

// diskOf returns the name of the PersistentVolume of a volume.
func diskOf(volume string) string { return "k8splugin-" + volume }

// namespaces returns the names of the namespaces with the prefix.
func (c *cluster) namespaces(ctx context.Context, prefix string) ([]string, error) {
	return c.named(ctx, "/api/v1/namespaces", prefix)
}

// named returns the names in a collection that have the prefix.
func (c *cluster) named(ctx context.Context, collection, prefix string) ([]string, error) {
	var list struct{ Items []object }
	if err := c.get(ctx, collection, &list); err != nil {
		return nil, err
	}
	var out []string
	for _, o := range list.Items {
		if strings.HasPrefix(o.Metadata.Name, prefix) {
			out = append(out, o.Metadata.Name)
		}
	}
	return out, nil
}

func (c *cluster) get(ctx context.Context, path string, out any) error {
	body, err := c.do(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, out)
}

func (c *cluster) do(ctx context.Context, method, path string) ([]byte, error) {
	return c.send(ctx, method, path, "")
}

func (c *cluster) send(ctx context.Context, method, path, content string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, strings.NewReader(content))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot call the API server: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		return nil, errors.Join(&refusal{resp.StatusCode, fmt.Sprintf("cannot %s %s: status %d: %s", method, path, resp.StatusCode, body)}, err)
	}
	return body, nil
}

// refusal is an error that the API server has answered.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// unless returns the error, or nil if the API server has refused with the status.
func unless(status int, err error) error {
	if r, is := errors.AsType[*refusal](err); is && r.status == status {
		return nil
	}
	return err
}

// clear deletes the remaining namespaces of a run. It does not wait for the
// deletion.
func (c *cluster) clear(ctx context.Context, prefix string) error {
	names, err := c.namespaces(ctx, prefix)
	for _, name := range names {
		if _, gone := c.do(ctx, http.MethodDelete, "/api/v1/namespaces/"+name); gone != nil {
			err = errors.Join(err, gone)
		}
	}
	return err
}
