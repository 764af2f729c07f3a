package main

import (
	"cmp"
	"encoding/json"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
)

// importedGeneration is the generation of an instance as it was brought over.
const importedGeneration = "imported"

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
	spec, err := o.former().Spec(o.composed, importedGeneration, amended)
	if err != nil {
		return nf.AdoptRequest{}, err
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

// former returns the instance as ONAP's API here goes on with it.
func (o takenOver) former() onap.Former {
	q := o.Request
	f := onap.Former{
		ID: o.ID, Release: o.Release, Bundle: bundle.Key{Name: q.Definition, Version: q.Version, Profile: q.Profile},
		Region: q.Region, Asked: q.Release, Labels: q.Labels, Override: q.Overrides, Timeouts: o.Timeouts,
	}
	for _, c := range o.configs {
		config := onap.FormerConfig{Name: c.Name, Number: c.Current, Deleted: !c.InForce}
		if n := len(c.Versions); n > 0 {
			last := c.Versions[n-1]
			config.Template, config.Description, config.Package = last.Template, last.Description, c.packages[last.Template]
			_ = json.Unmarshal(last.Values, &config.Values) // it was read before
		}
		f.Configs = append(f.Configs, config)
	}
	return f
}
