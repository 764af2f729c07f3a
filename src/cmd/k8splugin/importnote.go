package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
)

// What ONAP's API notes in the annotations of an instance that it has made; it
// knows by them one that was brought over.
const (
	requestNote    = "onap/request"
	profileNote    = "onap/profile"
	generationNote = "onap/generation"
	configNote     = "onap/config/"
	timeoutNote    = "hook-timeout/"
)

// importedGeneration is the generation of an instance as it was brought over.
const importedGeneration = "imported"

// instanceIDKey is the override that tells a chart its instance's id.
const instanceIDKey = "k8s-rb-instance-id"

// requestMemo is the request of an instance, as clients have sent it.
type requestMemo struct {
	Definition string            `json:"rb-name"`
	Version    string            `json:"rb-version"`
	Profile    string            `json:"profile-name"`
	Release    string            `json:"release-name"`
	Region     string            `json:"cloud-region"`
	Labels     map[string]string `json:"labels"`
	Overrides  map[string]string `json:"override-values"`
}

// configMemo is what is noted of a configuration.
type configMemo struct {
	Version     int    `json:"version"`
	Deleted     bool   `json:"deleted,omitempty"`
	Template    string `json:"template"`
	Description string `json:"description,omitempty"`
}

// takenOver is an instance of ONAP's with what it is made of here.
type takenOver struct {
	onapstore.Instance

	composed bundle.Composed
	configs  []configured
}

// configured is a configuration of an instance with what it is made of here.
type configured struct {
	onapstore.Configuration

	packages map[string]string // of the templates that are there
}

// adoption returns the request that makes an instance ours. Without amendments
// its configurations are known, and nothing is known of their objects.
func (o takenOver) adoption(amended bool) (nf.AdoptRequest, error) {
	spec := nf.Spec{
		Package: o.composed.Package,
		Release: cmp.Or(o.Release, o.Request.Release, o.composed.Profile.Release, o.composed.Profile.Name),
		Inputs: nf.Inputs{
			Overrides: maps.Clone(o.Request.Overrides), KubeVersion: o.composed.Profile.KubeVersion, ObjectLabels: o.composed.Profile.Labels,
		},
		Annotations: map[string]string{generationNote: importedGeneration},
	}
	if spec.Inputs.Overrides == nil {
		spec.Inputs.Overrides = map[string]string{}
	}
	spec.Inputs.Overrides[instanceIDKey] = o.ID
	if err := o.note(spec.Annotations); err != nil {
		return nf.AdoptRequest{}, err
	}
	if amended {
		spec.Amendments = o.amendments(spec.Inputs)
	}
	return nf.AdoptRequest{
		InstantiateRequest: nf.InstantiateRequest{
			Spec: spec, ID: o.ID, Region: o.Request.Region, Namespace: o.namespace(), Options: nf.Options{NoWait: true},
		},
		Claim: nf.Claim{Labels: map[string]string{nf.OwnerLabel: o.ID}},
	}, nil
}

func (o takenOver) namespace() string {
	return cmp.Or(o.Namespace, o.composed.Profile.Namespace, "default")
}

// note writes what ONAP's API is to know of an instance.
func (o takenOver) note(annotations map[string]string) error {
	q := o.Request
	notes := map[string]any{
		requestNote: requestMemo{q.Definition, q.Version, q.Profile, q.Release, q.Region, q.Labels, q.Overrides},
		profileNote: map[string]any{"extra": o.composed.Profile.Extra},
	}
	for _, c := range o.configs {
		memo := configMemo{Version: c.Current, Deleted: !c.InForce}
		if n := len(c.Versions); n > 0 {
			memo.Template, memo.Description = c.Versions[n-1].Template, c.Versions[n-1].Description
		}
		notes[configNote+c.Name] = memo
	}
	for key, note := range notes {
		text, err := json.Marshal(note)
		if err != nil {
			return fmt.Errorf("cannot note %s: %w", key, err)
		}
		annotations[key] = string(text)
	}
	for event, otherwise := range map[string]int64{
		"pre-install": 60, "post-install": 600, "pre-upgrade": 60, "post-upgrade": 600, "pre-delete": 60, "post-delete": 600,
	} {
		seconds, recorded := o.Timeouts[event]
		if !recorded {
			seconds = otherwise
		}
		annotations[timeoutNote+event] = (time.Duration(min(max(seconds, 0), int64(nf.MaxTimeout/time.Second))) * time.Second).String()
	}
	return nil
}

// amendments are what the configurations in force lay over the instance. The
// values of one replace whole top-level values of the instance's.
func (o takenOver) amendments(base nf.Inputs) []nf.Amendment {
	var out []nf.Amendment
	for _, c := range o.configs {
		v, ok := c.inForce()
		pkg := c.packages[v.Template]
		if !ok || pkg == "" {
			continue
		}
		var values map[string]any
		_ = json.Unmarshal(v.Values, &values) // it was read before
		overrides := maps.Clone(base.Overrides)
		maps.DeleteFunc(overrides, func(path, _ string) bool {
			_, replaced := values[topOf(path)]
			return replaced
		})
		out = append(out, nf.Amendment{Name: c.Name, Package: pkg, Inputs: nf.Inputs{
			Parameters: values, Overrides: overrides, KubeVersion: base.KubeVersion, ObjectLabels: base.ObjectLabels,
		}})
	}
	return out
}

// inForce returns the version of a configuration that counts; false when none
// does.
func (c configured) inForce() (onapstore.Version, bool) {
	if n := len(c.Versions); c.InForce && n > 0 {
		return c.Versions[n-1], true
	}
	return onapstore.Version{}, false
}

// topOf returns the first key of a path as Helm's --set writes it.
func topOf(path string) string {
	var key strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '\\':
			if i++; i < len(path) {
				key.WriteByte(path[i])
			}
		case '.', '[':
			return key.String()
		default:
			key.WriteByte(c)
		}
	}
	return key.String()
}
