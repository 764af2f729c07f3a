package onapimport

import (
	"cmp"
	"encoding/json"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
)

// importedGeneration is the generation of imported instances.
const importedGeneration = "imported"

// takenOver is an instance of ONAP's plugin and its packages in this service.
type takenOver struct {
	onapstore.Instance

	composed bundle.Composed
	configs  []configured
}

// configured is a configuration of an instance and its packages in this
// service.
type configured struct {
	onapstore.Configuration

	packages map[string]string // by template, for those that exist
}

// adoption returns the request that adopts an instance. If amended is false,
// its configurations are recorded without their objects.
func (o takenOver) adoption(amended bool) (nf.AdoptRequest, error) {
	spec, err := o.legacy().Spec(o.composed, importedGeneration, amended)
	if err != nil {
		return nf.AdoptRequest{}, err
	}
	return nf.AdoptRequest{
		InstantiateRequest: nf.InstantiateRequest{
			Spec: spec, ID: o.ID, Region: o.Request.Region, Namespace: o.namespace(), Options: nf.Options{NoWait: true},
		},
		Selector: nf.AdoptionSelector{Labels: map[string]string{nf.OwnerLabel: o.ID}},
	}, nil
}

func (o takenOver) namespace() string {
	return cmp.Or(o.Namespace, o.composed.Profile.Namespace, "default")
}

// legacy returns the instance in the form that the ONAP API of this service
// uses.
func (o takenOver) legacy() onap.Legacy {
	q := o.Request
	l := onap.Legacy{
		ID: o.ID, Release: o.Release, Bundle: bundle.Key{Name: q.Definition, Version: q.Version, Profile: q.Profile},
		Region: q.Region, RequestedRelease: q.Release, Labels: q.Labels, Override: q.Overrides, Timeouts: o.Timeouts,
	}
	for _, c := range o.configs {
		config := onap.LegacyConfig{Name: c.Name, Number: c.Current, Deleted: !c.InForce}
		if n := len(c.Versions); n > 0 {
			last := c.Versions[n-1]
			config.Template, config.Description, config.Package = last.Template, last.Description, c.packages[last.Template]
			_ = json.Unmarshal(last.Values, &config.Values) // parsed before
		}
		l.Configs = append(l.Configs, config)
	}
	return l
}
