package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// content is the desired state of an instance: a package and its values. Each
// request has a unique generation, so that live objects show which request they
// come from.
type content struct {
	Package    string
	Generation int
	Replicas   int
	Image      string
}

// The images, as simulated by the sandbox.
const (
	goodImage  = "example.invalid/chaos:1"
	badImage   = "sandbox.invalid/no-such-image:1"
	neverReady = "sandbox.invalid/never-ready:1"
)

func (c content) parameters() map[string]any {
	return map[string]any{"generation": c.Generation, "replicas": c.Replicas, "image": c.Image}
}

// shape says which objects a package has in addition to a Deployment.
type shape struct {
	name       string
	configMaps []string
	secret     bool
	service    bool
	job        bool
	cluster    bool // of Cluster API, which becomes a region
}

// shapes returns the packages. An upgrade between the first three prunes objects; from
// wide to lean it deletes so many that it needs confirmation.
func shapes() []shape {
	return []shape{
		{name: "full", configMaps: []string{"settings", "extra"}, secret: true, service: true, job: true},
		{name: "lean", configMaps: []string{"settings"}, service: true},
		{name: "wide", configMaps: []string{"settings", "extra", "more"}, secret: true, service: true, job: true},
		{name: "edge", configMaps: []string{"settings"}, cluster: true},
	}
}

// shapeOf returns the shape with a name, or an empty one if there is none.
func shapeOf(name string) shape {
	for _, s := range shapes() {
		if s.name == name {
			return s
		}
	}
	return shape{}
}

// objects returns the objects of an instance with the content as sorted kinds
// and names.
func (c content) objects(instance string) []string {
	s := shapeOf(c.Package)
	out := []string{"Deployment " + instance + "-app"}
	for _, name := range s.configMaps {
		out = append(out, "ConfigMap "+instance+"-"+name)
	}
	if s.secret {
		out = append(out, "Secret "+instance+"-secret")
	}
	if s.service {
		out = append(out, "Service "+instance+"-app")
	}
	if s.job {
		out = append(out, fmt.Sprintf("Job %s-job-%d", instance, c.Generation))
	}
	if s.cluster {
		out = append(out, "Cluster "+clusterOf(instance))
	}
	slices.Sort(out)
	return out
}

const metadata = `name: %s
variables:
  generation: {type: integer, required: true}
  replicas: {type: integer, default: 1}
  image: {type: string, required: true}
resources:
- name: settings
  manifest: [settings.yaml]
- name: app
  manifest: [app.yaml]
`

const jobEntry = `- name: job
  job: [job.yaml]
`

const configMap = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: "${vnf_name}-%s"}
data: {generation: "${generation}", replicas: "${replicas}", package: %s}
`

const secret = `---
apiVersion: v1
kind: Secret
metadata: {name: "${vnf_name}-secret"}
stringData: {generation: "${generation}"}
`

const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "${vnf_name}-app"}
spec:
  replicas: $replicas
  selector: {matchLabels: {app: "${vnf_name}"}}
  template:
    metadata: {labels: {app: "${vnf_name}"}}
    spec: {containers: [{name: main, image: "${image}"}]}
`

const service = `---
apiVersion: v1
kind: Service
metadata: {name: "${vnf_name}-app"}
spec: {selector: {app: "${vnf_name}"}, ports: [{name: http, port: 80}]}
`

const job = `apiVersion: batch/v1
kind: Job
metadata: {name: "${vnf_name}-job-${generation}"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/job}]}}}
`

const clusterObject = `---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${vnf_name}-edge"}
spec: {controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}}
`

// clusterOf names the Cluster of an instance.
func clusterOf(instance string) string { return instance + "-edge" }

// archive returns the package.
func (s shape) archive() ([]byte, error) {
	settings, app := &strings.Builder{}, &strings.Builder{}
	for _, name := range s.configMaps {
		fmt.Fprintf(settings, configMap, name, s.name)
	}
	if s.secret {
		settings.WriteString(secret)
	}
	app.WriteString(deployment)
	if s.service {
		app.WriteString(service)
	}
	if s.cluster {
		app.WriteString(clusterObject)
	}
	meta, files := fmt.Sprintf(metadata, s.name), map[string]string{"settings.yaml": settings.String(), "app.yaml": app.String()}
	if s.job {
		meta += jobEntry
		files["job.yaml"] = job
	}
	files["metadata.yaml"] = meta
	var buffer bytes.Buffer
	z := zip.NewWriter(&buffer)
	for _, name := range sortedKeys(files) {
		w, err := z.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
