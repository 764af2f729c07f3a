package onap

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// PlannedHook is an object that a package creates at certain lifecycle events.
// Its secrets are not masked.
type PlannedHook struct {
	Name   string
	Kind   string
	Path   string         // the file in the chart
	Object map[string]any // the whole object
	Events []nf.HookEvent
}

// hook is ONAP's form of a PlannedHook.
type hook struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`
	Path     string         `json:"path"`
	Manifest string         `json:"manifest"` // without the instance's secrets; empty for a Secret
	Events   []nf.HookEvent `json:"events"`
}

// hooksOf returns the hooks of an instance, with its secrets masked.
func hooksOf(ctx context.Context, live Live, in nf.Instance) ([]hook, error) {
	planned, err := live.Hooks(ctx, in)
	if err != nil {
		return nil, err
	}
	secrets := nf.NewRedactor(append(in.Inputs.Secrets(in.Sensitive), in.Hidden...))
	var out []hook
	for _, p := range planned {
		text, err := yaml.Marshal(secrets.Value(p.Object))
		if err != nil {
			return nil, fmt.Errorf("cannot show the hook %s: %w", p.Name, err)
		}
		if p.Kind == "Secret" {
			text = nil
		}
		out = append(out, hook{Name: p.Name, Kind: p.Kind, Path: p.Path, Manifest: string(text), Events: p.Events})
	}
	return out, nil
}
