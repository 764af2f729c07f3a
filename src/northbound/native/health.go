package native

import (
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Healths returns the health of instances without contacting their regions.
type Healths interface {
	// InstanceHealth returns the health of an instance as last observed. It
	// does not block.
	InstanceHealth(in nf.Instance) nf.InstanceHealth
}

// Drifts returns the drift of instances without contacting their regions.
type Drifts interface {
	// InstanceDrift returns the drift of an instance as last compared. It does not
	// block.
	InstanceDrift(in nf.Instance) nf.InstanceDrift
}

// InstanceDrift implements Drifts.
func (unwatched) InstanceDrift(nf.Instance) nf.InstanceDrift { return nf.InstanceDrift{} }

// unwatched is the default for Healths and Drifts.
type unwatched struct{}

// InstanceHealth implements Healths.
func (unwatched) InstanceHealth(nf.Instance) nf.InstanceHealth {
	return nf.InstanceHealth{State: nf.HealthUnknown, Message: "health monitoring of instances is not enabled"}
}

// summarize returns an instance as it is shown in lists.
func (is instances) summarize(in nf.Instance) wire.InstanceSummary {
	return wire.InstanceSummaryOf(in).WithHealth(is.healths.InstanceHealth(in)).WithDrift(is.drifts.InstanceDrift(in))
}

// healthFilter returns the filter for the request's health parameter.
func (is instances) healthFilter(r *http.Request) func(nf.Instance) bool {
	query := r.URL.Query()
	if !query.Has("health") {
		return func(nf.Instance) bool { return true }
	}
	want := nf.HealthState(query.Get("health"))
	return func(in nf.Instance) bool { return is.healths.InstanceHealth(in).State == want }
}
