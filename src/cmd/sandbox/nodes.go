package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// api is a client of the sandbox's servers.
type api struct {
	server string
	token  string
	http   http.Client
}

// dial returns a client for a kubeconfig from writeAccess. It does not connect.
func dial(path string) (*api, error) {
	k, err := readKubeconfig(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.Clusters[0].Cluster.CA)
	return &api{
		server: k.Clusters[0].Cluster.Server,
		token:  k.Users[0].User.Token,
		http: http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}},
		},
	}, nil
}

// get requests a path of the API server, or the URL of another server. It
// decodes the response into out unless out is nil. A status other than 200 is
// an error.
func (a *api) get(ctx context.Context, url string, out any) error {
	return a.do(ctx, http.MethodGet, url, nil, out)
}

func (a *api) post(ctx context.Context, url string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("cannot encode a request for %s: %w", url, err)
	}
	return a.do(ctx, http.MethodPost, url, body, nil)
}

func (a *api) do(ctx context.Context, method, url string, body []byte, out any) error {
	if strings.HasPrefix(url, "/") {
		url = a.server + url
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot call %s: %w", url, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(url, a.server+"/") {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot call %s: %w", url, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("cannot read the answer of %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s responded %s: %s", url, res.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// node holds the fields of a Node that are used here.
type node struct {
	Spec struct {
		Taints []struct{} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// unusable reports whether pods cannot be scheduled on the node yet: it is not
// Ready, or still has taints.
func (n node) unusable() bool {
	ready := slices.Contains(n.Status.Conditions, condition{Type: "Ready", Status: "True"})
	return !ready || len(n.Spec.Taints) > 0
}

// populate creates the nodes that KWOK simulates. It returns when pods can be
// created in the default namespace and scheduled, also on the hosts.
func (p *plane) populate(ctx context.Context, api *api) error {
	kept, err := api.nodes(ctx)
	if err != nil {
		return err
	}
	for i := len(kept); i < p.options.nodes; i++ {
		if err := api.post(ctx, "/api/v1/nodes", newNode(fmt.Sprintf("node-%d", i+1))); err != nil {
			return err
		}
	}
	err = pollUntil(ctx, func() (bool, error) {
		nodes, err := api.nodes(ctx)
		if err != nil || len(nodes) < p.options.hosts || slices.ContainsFunc(nodes, node.unusable) {
			return false, errors.Join(err, p.casualties())
		}
		return api.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cannot make the nodes ready: %w", err)
	}
	p.log.say("%d nodes are ready", max(p.options.nodes, p.options.hosts, len(kept)))
	return nil
}

func (a *api) nodes(ctx context.Context) ([]node, error) {
	var list struct {
		Items []node `json:"items"`
	}
	err := a.get(ctx, "/api/v1/nodes", &list)
	return list.Items, err
}

// newNode returns a node for KWOK to simulate. It has room for as many pods as
// its address range.
func newNode(name string) any {
	room := map[string]string{"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "250"}
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
			"labels": map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "kwok",
			},
		},
		"status": map[string]any{"allocatable": room, "capacity": room},
	}
}
