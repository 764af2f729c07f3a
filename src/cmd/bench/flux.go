package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"
)

const fluxNamespace = "bench-flux"

// fluxLoad creates the instances by Flux's kustomize-controller: a Kustomization
// for each.
func (b *bench) fluxLoad(ctx context.Context, l load) (r loadResult, err error) {
	artifact, err := fluxArtifact()
	if err != nil {
		return r, err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(artifact) }))
	defer server.Close()
	if err := b.prepareFlux(ctx, server.URL, artifact); err != nil {
		return r, err
	}
	err = b.withFlux(ctx, func(ctx context.Context, pid int) (err error) {
		if r, err = b.spend(pid, func() error { return b.kustomize(ctx, l) }); err != nil {
			return err
		}
		return b.removeAll(ctx, fluxPath("kustomizations")) // which have finalizers of the controller
	})
	return r, err
}

// kustomize creates a Kustomization for each instance and waits until all are
// ready.
func (b *bench) kustomize(ctx context.Context, l load) error {
	_, err := each(ctx, 0, l.instances, l.clients, func(ctx context.Context, i int) error {
		name := loadNamespace(i)
		return b.api.post(ctx, fluxPath("kustomizations"), fmt.Sprintf(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":%q},`+
			`"spec":{"interval":"1h","timeout":"1m","retryInterval":"1s","prune":false,"wait":false,"path":"./","sourceRef":{"kind":"ExternalArtifact","name":"load"},`+
			`"postBuild":{"substitute":{"namespace":%q}}}}`, name, name), http.StatusCreated)
	})
	if err != nil {
		return err
	}
	return b.api.pollUntil(ctx, fluxPath("kustomizations"), time.Second, func(_ int, answer []byte) bool { return fluxReady(answer) == l.instances })
}

// fluxArtifact returns the objects of an instance and its namespace as Flux's
// sources pack them.
func fluxArtifact() ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	objects := []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "${namespace}"}}}
	for _, kind := range loadKinds {
		body := newObject(kind).body
		metadata := maps.Clone(body["metadata"].(map[string]any))
		metadata["namespace"] = "${namespace}"
		body["metadata"] = metadata
		objects = append(objects, body)
	}
	var err error
	for i, o := range objects {
		text, e := json.Marshal(o)
		err = errors.Join(err, e, files.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.yaml", i), Mode: 0o644, Size: int64(len(text))}))
		_, e = files.Write(text)
		err = errors.Join(err, e)
	}
	err = errors.Join(err, files.Close(), zipped.Close())
	return packed.Bytes(), err
}

// fluxReady counts the Kustomizations of a list that are ready.
func fluxReady(list []byte) int {
	var kustomizations struct {
		Items []struct {
			Status struct {
				Conditions []struct{ Type, Status string } `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if json.Unmarshal(list, &kustomizations) != nil {
		return 0
	}
	ready := 0
	for _, k := range kustomizations.Items {
		for _, c := range k.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				ready++
			}
		}
	}
	return ready
}

// fluxKinds are the kinds that kustomize-controller watches, by plural.
var fluxKinds = map[string]string{"kustomizations": "Kustomization", "externalartifacts": "ExternalArtifact", "ocirepositories": "OCIRepository",
	"gitrepositories": "GitRepository", "buckets": "Bucket"}

func fluxGroup(plural string) string {
	if plural == "kustomizations" {
		return "kustomize.toolkit.fluxcd.io"
	}
	return "source.toolkit.fluxcd.io"
}

func fluxPath(plural string) string {
	return "/apis/" + fluxGroup(plural) + "/v1/namespaces/" + fluxNamespace + "/" + plural
}

// prepareFlux defines Flux's kinds, without their schemas, and creates a source
// whose artifact is at a URL. It first removes that of an earlier load.
func (b *bench) prepareFlux(ctx context.Context, url string, artifact []byte) error {
	for plural, kind := range fluxKinds {
		definition := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s"},`+
			`"spec":{"group":%[2]q,"scope":"Namespaced","names":{"plural":%[1]q,"kind":%[3]q},"versions":[{"name":"v1","served":true,"storage":true,`+
			`"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
			plural, fluxGroup(plural), kind)
		if err := b.api.post(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, http.StatusCreated, http.StatusConflict); err != nil {
			return err
		}
		if err := b.api.pollUntil(ctx, fluxPath(plural), pollInterval, found); err != nil {
			return err
		}
	}
	if err := b.api.postNamespace(ctx, fluxNamespace, http.StatusCreated, http.StatusConflict); err != nil {
		return err
	}
	if err := b.removeAll(ctx, fluxPath("externalartifacts")); err != nil {
		return err
	}
	source := `{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"ExternalArtifact","metadata":{"name":"load"},"spec":{}}`
	if err := b.api.post(ctx, fluxPath("externalartifacts"), source, http.StatusCreated); err != nil {
		return err
	}
	status := fmt.Appendf(nil, `{"status":{"artifact":{"url":"%s/load.tar.gz","path":"load.tar.gz","revision":"1","digest":"sha256:%x","lastUpdateTime":%[4]q,"size":%[3]d},`+
		`"conditions":[{"type":"Ready","status":"True","reason":"Succeeded","message":"stored","lastTransitionTime":%[4]q}]}}`,
		url, sha256.Sum256(artifact), len(artifact), time.Now().UTC().Format(time.RFC3339))
	code, answer, err := b.api.do(ctx, http.MethodPatch, fluxPath("externalartifacts")+"/load/status", "application/merge-patch+json", status)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("cannot set the artifact: status %d: %s", code, answer)
	}
	return err
}

// removeAll deletes the objects of a collection, and waits until they are gone.
func (b *bench) removeAll(ctx context.Context, path string) error {
	if _, _, err := b.api.do(ctx, http.MethodDelete, path, "", nil); err != nil {
		return err
	}
	return b.api.pollUntil(ctx, path+"?limit=1", pollInterval, none)
}

// withFlux runs kustomize-controller while do runs, whose context ends if the
// controller does.
func (b *bench) withFlux(ctx context.Context, do func(ctx context.Context, pid int) error) error {
	folder, err := os.MkdirTemp("", "bench-flux-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	health, err := freeAddress()
	if err != nil {
		return err
	}
	var log bytes.Buffer
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(running, b.flux, "--metrics-addr=0", "--health-addr="+health, "--log-level=error", "--concurrent=32",
		"--concurrent-ssa=16", "--kube-api-qps=5000", "--kube-api-burst=10000", "--feature-gates=ExternalArtifact=true")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.api.kubeconfig, "RUNTIME_NAMESPACE="+fluxNamespace, "TMPDIR="+folder)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start kustomize-controller: %w", err)
	}
	var ended errgroup.Group
	ended.Go(func() error {
		err := cmd.Wait()
		cancel(fmt.Errorf("kustomize-controller has ended: %w", err))
		return err
	})
	err = (&service{url: "http://" + health, client: http.DefaultClient}).ready(running)
	if err == nil {
		err = do(running, cmd.Process.Pid)
	}
	if err != nil {
		err = errors.Join(err, context.Cause(running))
	}
	cancel(nil)
	_ = ended.Wait() // it was killed
	if err != nil {
		err = fmt.Errorf("%w; its log: %s", err, log.Bytes())
	}
	return err
}
