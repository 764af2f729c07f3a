package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cmd/sandbox/bare"
)

// apiServer is a minimal client of the sandbox's API server.
type apiServer struct {
	http       *http.Client
	url        string
	kubeconfig string
}

func newAPIServer(kubeconfig string) (*apiServer, error) {
	server, err := bare.Open(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &apiServer{url: server.URL, kubeconfig: kubeconfig, http: &http.Client{Transport: server}}, nil
}

func (a *apiServer) do(ctx context.Context, method, path, contentType string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if method == http.MethodPatch { // as the service does: it ignores the response's content
		req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// bare sends one server-side apply request per object.
func (b *bench) bare(ctx context.Context, set objectSet) (time.Duration, error) {
	bodies := make([][]byte, len(set.objects))
	for i, o := range set.objects {
		var err error
		if bodies[i], err = o.owned(namespace); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.workers)
	for i, o := range set.objects {
		group.Go(func() error {
			return b.api.apply(ctx, o, namespace, bodies[i])
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// apply creates an object by a server-side apply request.
func (a *apiServer) apply(ctx context.Context, o object, namespace string, body []byte) error {
	path := fmt.Sprintf(o.path, namespace) + "/" + o.name + "?fieldManager=bench&fieldValidation=Strict"
	status, answer, err := a.do(ctx, http.MethodPatch, path, "application/apply-patch+yaml", body)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("cannot apply %s: status %d: %s", o.name, status, answer)
	}
	return err
}

// apply runs kubectl on the files.
func (b *bench) apply(ctx context.Context, set objectSet) (time.Duration, error) {
	began := time.Now()
	cmd := exec.CommandContext(ctx, b.kubectl, "--kubeconfig", b.api.kubeconfig, "--namespace", namespace,
		"apply", "--server-side", "--filename", set.folder)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("cannot run kubectl: %w: %s", err, output)
	}
	return time.Since(began), nil
}

// createNamespace creates the namespace unless it exists.
func (a *apiServer) createNamespace(ctx context.Context) error {
	if err := a.postNamespace(ctx, namespace, http.StatusCreated, http.StatusConflict); err != nil {
		return err
	}
	return a.pollUntil(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", pollInterval, found)
}

// postNamespace requests a namespace. It returns an error unless the status is a
// wanted one.
func (a *apiServer) postNamespace(ctx context.Context, name string, wanted ...int) error {
	return a.post(ctx, "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name), wanted...)
}

// post creates an object. It returns an error unless the status is a wanted one.
func (a *apiServer) post(ctx context.Context, path, body string, wanted ...int) error {
	status, answer, err := a.do(ctx, http.MethodPost, path, "application/json", []byte(body))
	if err != nil || !slices.Contains(wanted, status) {
		return errors.Join(fmt.Errorf("cannot create an object of %s: status %d: %s", path, status, answer), err)
	}
	return nil
}

// clear deletes all objects of the namespace, and waits until controllers have
// deleted the objects that they created.
func (a *apiServer) clear(ctx context.Context) error {
	const core, apps, discovery = "/api/v1/namespaces/" + namespace, "/apis/apps/v1/namespaces/" + namespace, "/apis/discovery.k8s.io/v1/namespaces/" + namespace
	for _, path := range []string{apps + "/deployments", core + "/services", core + "/secrets", core + "/configmaps"} {
		status, answer, err := a.do(ctx, http.MethodDelete, path+"?propagationPolicy=Background&labelSelector=app.kubernetes.io/part-of%3Dbench", "", nil)
		if err != nil || status >= http.StatusBadRequest {
			return errors.Join(fmt.Errorf("cannot clear %s: status %d: %s", path, status, answer), err)
		}
	}
	for _, path := range []string{apps + "/deployments", apps + "/replicasets", core + "/pods", core + "/services", discovery + "/endpointslices"} {
		if err := a.pollUntil(ctx, path+"?limit=1", pollInterval, none); err != nil {
			return err
		}
	}
	// Wait a little longer, because deletions are still in the controllers'
	// queues.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}

// found and none are conditions for until.
func found(status int, _ []byte) bool { return status == http.StatusOK }

func none(status int, list []byte) bool {
	return status == http.StatusOK && !bytes.Contains(list, []byte(`"uid"`))
}

const pollInterval = 50 * time.Millisecond

// pollUntil requests a path at an interval until the response is as wanted.
func (a *apiServer) pollUntil(ctx context.Context, path string, interval time.Duration, wanted func(status int, answer []byte) bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		status, answer, err := a.do(ctx, http.MethodGet, path, "", nil)
		if err != nil || wanted(status, answer) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (a *apiServer) version(ctx context.Context) (string, error) {
	_, answer, err := a.do(ctx, http.MethodGet, "/version", "", nil)
	if err != nil {
		return "", err
	}
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	err = json.Unmarshal(answer, &v)
	return v.GitVersion, err
}
