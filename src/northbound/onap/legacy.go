package onap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Legacy is an instance that ONAP's own plugin created and that is imported into
// this service.
type Legacy struct {
	ID               string
	Release          string // active release name; empty: the request's, or the profile's
	Bundle           bundle.Key
	Region           string
	RequestedRelease string // release name in the request
	Labels           map[string]string
	Override         map[string]string
	Timeouts         map[string]int64 // of hooks in seconds, by event such as "pre-install"; others have the default
	Configs          []LegacyConfig
}

// LegacyConfig is a configuration of a legacy instance.
type LegacyConfig struct {
	Name        string
	Number      int  // its version counter
	Deleted     bool // its objects were deleted
	Template    string
	Description string
	Package     string // package composed from its template; empty: it is not applied to the instance
	Values      map[string]any
}

// Spec returns the engine's spec of the instance, with the annotations that
// this API needs. Generation identifies the history of its configurations.
// Unless amended is true, the configurations are recorded but not applied.
func (l Legacy) Spec(c bundle.Composed, generation string, amended bool) (nf.Spec, error) {
	q := instanceRequest{
		Definition: l.Bundle.Name, Version: l.Bundle.Version, Profile: l.Bundle.Profile,
		Release: l.RequestedRelease, Region: l.Region, Labels: l.Labels, Overrides: l.Override,
	}
	spec, err := specOf(q, c, l.ID)
	if err != nil {
		return spec, err
	}
	spec.Release = cmp.Or(l.Release, spec.Release)
	spec.AAI.Writer = nf.AAIAdapter // it was created through /v1/instance
	spec.Annotations[generationAnnotation] = generation
	times := maps.Clone(hookTimeouts)
	maps.Copy(times, l.Timeouts)
	for event := range hookTimeouts {
		seconds := min(max(times[event], 0), int64(nf.MaxTimeout/time.Second))
		spec.Annotations[nf.HookTimeoutAnnotation+event] = (time.Duration(seconds) * time.Second).String()
	}
	for _, config := range l.Configs {
		annotation, err := json.Marshal(storedConfig{Version: config.Number, Deleted: config.Deleted, Template: config.Template, Description: config.Description})
		if err != nil {
			return spec, fmt.Errorf("cannot store the configuration %q: %w", config.Name, err)
		}
		spec.Annotations[configAnnotation+config.Name] = string(annotation)
		if amended && !config.Deleted && config.Package != "" {
			spec.Amendments = append(spec.Amendments, *amendment(config.Name, config.Package, config.Values, spec.Inputs))
		}
	}
	return spec, nil
}

// Manages reports whether this API manages an instance.
func Manages(in nf.Instance) bool {
	_, ours := in.Annotations[requestAnnotation]
	return ours
}

// HasConfig reports whether an instance has the given generation and has, or
// had, the configuration.
func HasConfig(in nf.Instance, generation, name string) bool {
	_, known := in.Annotations[configAnnotation+name]
	return known && in.Annotations[generationAnnotation] == generation
}
