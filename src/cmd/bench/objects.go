package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// objectSet holds the objects of one size in the forms for every way.
type objectSet struct {
	size    int
	objects []object
	folder  string // one JSON file for each object, for kubectl
	archive []byte // the package, for the service
}

type object struct {
	kind, path string // path of its collection, with %s for the namespace
	name       string
	body       map[string]any
}

// newObjectSet returns a set. The service waits until its objects are in a state: applied
// or ready.
func newObjectSet(size int, wait string) (objectSet, error) {
	set := objectSet{size: size}
	for i := range size {
		set.objects = append(set.objects, newObject(i))
	}
	// Every way applies them in the service's order.
	kinds := []string{"Secret", "ConfigMap", "Service", "Deployment"}
	slices.SortStableFunc(set.objects, func(a, b object) int { return slices.Index(kinds, a.kind) - slices.Index(kinds, b.kind) })
	var err error
	if set.folder, err = os.MkdirTemp("", "bench-objects-"); err != nil {
		return set, fmt.Errorf("cannot make a folder for the objects: %w", err)
	}
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	metadata := &strings.Builder{}
	fmt.Fprintf(metadata, "name: bench-%d\nresources:\n- name: all\n  wait: %s\n  manifest:\n", size, wait)
	for i, o := range set.objects {
		name := fmt.Sprintf("%04d.json", i)
		content, err := json.Marshal(o.body)
		if err != nil {
			return set, err
		}
		if err := os.WriteFile(filepath.Join(set.folder, name), content, 0o600); err != nil {
			return set, err
		}
		if err := add(archive, name, content); err != nil {
			return set, err
		}
		fmt.Fprintf(metadata, "  - %s\n", name)
	}
	if err := add(archive, "metadata.yaml", []byte(metadata.String())); err != nil {
		return set, err
	}
	if err := archive.Close(); err != nil {
		return set, err
	}
	set.archive = buffer.Bytes()
	return set, nil
}

func add(archive *zip.Writer, name string, content []byte) error {
	w, err := archive.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

func (s objectSet) remove() { _ = os.RemoveAll(s.folder) }

// newObject returns the i-th object. Of every ten, six are ConfigMaps, two
// Services, one a Secret and one a Deployment.
func newObject(i int) object {
	name := fmt.Sprintf("object-%04d", i)
	labels := map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench"}
	o := object{name: name, body: map[string]any{
		"apiVersion": "v1", "metadata": map[string]any{"name": name, "labels": labels},
	}}
	switch i % 10 {
	case 6, 7:
		o.kind, o.path = "Service", "/api/v1/namespaces/%s/services"
		o.body["spec"] = map[string]any{"selector": labels, "ports": []any{map[string]any{"name": "http", "port": 80, "targetPort": 8080}}}
	case 8:
		o.kind, o.path = "Secret", "/api/v1/namespaces/%s/secrets"
		o.body["stringData"] = map[string]any{"token": strings.Repeat("s", 64)}
	case 9:
		o.kind, o.path = "Deployment", "/apis/apps/v1/namespaces/%s/deployments"
		o.body["apiVersion"] = "apps/v1"
		o.body["spec"] = deploymentSpec(labels)
	default:
		o.kind, o.path = "ConfigMap", "/api/v1/namespaces/%s/configmaps"
		o.body["data"] = map[string]any{"settings": strings.Repeat("key = value\n", 40)}
	}
	o.body["kind"] = o.kind
	return o
}

// owned returns the final bytes of the object in a namespace, with the label of an
// owner, as the service applies it.
func (o object) owned(namespace string) ([]byte, error) {
	final := maps.Clone(o.body)
	metadata := maps.Clone(o.body["metadata"].(map[string]any))
	labels := maps.Clone(metadata["labels"].(map[string]any))
	labels["k8splugin.io/rb-instance-id"] = "0123456789abcdef"
	metadata["labels"], metadata["namespace"] = labels, namespace
	final["metadata"] = metadata
	return json.Marshal(final)
}

func deploymentSpec(labels map[string]any) map[string]any {
	return map[string]any{
		"replicas": 1,
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "main", "image": "example.invalid/bench:1",
				"ports":     []any{map[string]any{"containerPort": 8080}},
				"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "16Mi"}},
			}}},
		},
	}
}
