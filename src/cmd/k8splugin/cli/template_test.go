package cli

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// rendered renders every package as one object with the inputs, and a hook.
func rendered(_ context.Context, archive []byte, req nf.InstantiateRequest, secrets bool) (nf.Preview, error) {
	if req.Inputs.Parameters["wrong"] != nil {
		return nf.Preview{}, nf.E(nf.Invalid, "render", "package", nf.Violations{{File: "web.yaml", Line: 5, Field: "parameters.wrong", Message: "is not declared"}})
	}
	return nf.Preview{
		Warnings: []string{"parameter depth is not used"},
		Manifests: []nf.Manifest{
			{Stage: "configMap", File: "web.yaml", Line: 3, Object: map[string]any{
				"kind": "ConfigMap", "metadata": map[string]any{"name": req.Name, "namespace": req.Namespace},
				"data": map[string]any{"zip": string(archive[:2]), "release": req.Release, "secrets": secrets, "inputs": req.Inputs},
			}},
			{File: "job.yaml", Line: 1, Events: []nf.HookEvent{nf.PreInstall, nf.PreUpgrade}, Object: map[string]any{"kind": "Job"}},
		},
	}, nil
}

const templateJSON = `{"changes":[],"warnings":[],"objects":[{"stage":"secret","file":"a.yaml","line":2,"object":{"apiVersion":"v1","kind":"Secret","data":{"a":"********"},"immutable":true}}]}`

func TestTemplate(t *testing.T) {
	play(t, map[string]commandCase{
		"package-template": {
			reason: "a folder needs no server", args: []string{"package", "template", "PKG", "--name", "fw", "-n", "edge", "--set", "size=3", "--set", "a[0]=x", "--network", "KUBE/network.yaml", "--show-secrets"},
		},
		"package-template-json":  {reason: "for programs", args: []string{"package", "template", "PKG", "-o", "json"}},
		"package-template-wrong": {reason: "errors as those of lint", args: []string{"package", "template", "PKG", "--set", "wrong=1"}},
		"package-template-none":  {reason: "a path is not an id", args: []string{"package", "template", "./nowhere"}},
		"package-template-id": {
			reason: "a package of the server is fetched", args: []string{"package", "template", "firewall", "--release", "r"},
			replies: replies{"GET /v1/packages/firewall/content": {media: "application/zip", body: "PK"}},
		},
		"package-template-region": {
			reason: "the server renders for a region", args: []string{"package", "template", "firewall", "--region", "east", "-n", "edge", "--set", "size=3"},
			replies: replies{"POST /v1/vnf_instances?dry_run=true&objects=true": {body: templateJSON}},
		},
		"package-template-region-folder":  {reason: "which has no folder", args: []string{"package", "template", "./firewall", "--region", "east"}},
		"package-template-region-secrets": {reason: "and masks", args: []string{"package", "template", "firewall", "--region", "east", "--show-secrets"}},
	})
}
