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

// Former is an instance that ONAP's own plugin has made, as far as this API goes
// on with it.
type Former struct {
	ID       string
	Release  string // that is in force; empty: the request's, or the profile's
	Bundle   bundle.Key
	Region   string
	Asked    string // the release that the request named
	Labels   map[string]string
	Override map[string]string
	Timeouts map[string]int64 // of hooks, in seconds, by "pre-install" and so on; the default where there is none
	Configs  []FormerConfig
}

// FormerConfig is a configuration of such an instance.
type FormerConfig struct {
	Name        string
	Number      int  // of the version that its counter is at
	Deleted     bool // its objects are deleted
	Template    string
	Description string
	Package     string // what its template is composed to; empty: it is not laid over the instance
	Values      map[string]any
}

// Spec returns what the instance is to this API and to the engine, with the
// notes by which the API knows it. Generation names the history of its
// configurations. Without amendments they are known, and lie over nothing.
func (f Former) Spec(c bundle.Composed, generation string, amended bool) (nf.Spec, error) {
	q := instanceRequest{
		Definition: f.Bundle.Name, Version: f.Bundle.Version, Profile: f.Bundle.Profile,
		Release: f.Asked, Region: f.Region, Labels: f.Labels, Overrides: f.Override,
	}
	spec, err := specOf(q, c, f.ID)
	if err != nil {
		return spec, err
	}
	spec.Release = cmp.Or(f.Release, spec.Release)
	spec.Annotations[generationNote] = generation
	times := maps.Clone(hookTimeouts)
	maps.Copy(times, f.Timeouts)
	for event := range hookTimeouts {
		seconds := min(max(times[event], 0), int64(nf.MaxTimeout/time.Second))
		spec.Annotations[timeoutNote+event] = (time.Duration(seconds) * time.Second).String()
	}
	for _, config := range f.Configs {
		note, err := json.Marshal(memo{Version: config.Number, Deleted: config.Deleted, Template: config.Template, Description: config.Description})
		if err != nil {
			return spec, fmt.Errorf("cannot note the configuration %q: %w", config.Name, err)
		}
		spec.Annotations[configNote+config.Name] = string(note)
		if amended && !config.Deleted && config.Package != "" {
			spec.Amendments = append(spec.Amendments, *amendment(config.Name, config.Package, config.Values, spec.Inputs))
		}
	}
	return spec, nil
}

// Knows reports whether an instance is one of this API's.
func Knows(in nf.Instance) bool {
	_, ours := in.Annotations[requestNote]
	return ours
}

// KnowsConfig reports whether an instance of a generation has, or had, a
// configuration.
func KnowsConfig(in nf.Instance, generation, name string) bool {
	_, known := in.Annotations[configNote+name]
	return known && in.Annotations[generationNote] == generation
}
