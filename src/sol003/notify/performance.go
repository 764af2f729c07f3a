package notify

import (
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// available is a PerformanceInformationAvailableNotification.
type available struct {
	common

	Job    string      `json:"pmJobId"`
	Object nf.PMObject `json:"objectType"`
	VNF    string      `json:"objectInstanceId"`
	VNFCs  []string    `json:"subObjectInstanceIds,omitempty"`
}

// crossed is a ThresholdCrossedNotification.
type crossed struct {
	common

	Threshold string      `json:"thresholdId"`
	Direction string      `json:"crossingDirection"`
	Object    nf.PMObject `json:"objectType"`
	VNF       string      `json:"objectInstanceId"`
	VNFC      string      `json:"subObjectInstanceId,omitempty"`
	Metric    string      `json:"performanceMetric"`
	Value     float64     `json:"performanceValue"`
}

// performance returns the document of a notice of a PM job or of a threshold.
func (d documents) performance(with common, vnf string, n nf.PMNotice) any {
	with.Subscription = ""
	with.Links = map[string]wire.VNFLink{"objectInstance": d.link(nf.VNFLifecycle, "vnf_instances", vnf)}
	if n.Report != "" {
		with.Links["pmJob"] = d.link(nf.VNFPerformance, "pm_jobs", n.Target.ID)
		with.Links["performanceReport"] = d.link(nf.VNFPerformance, "pm_jobs/"+n.Target.ID+"/reports", n.Report)
		return available{with, n.Target.ID, n.Target.Object, vnf, n.Target.VNFCs}
	}
	with.Links["threshold"] = d.link(nf.VNFPerformance, "thresholds", n.Target.ID)
	out := crossed{with, n.Target.ID, "DOWN", n.Target.Object, vnf, n.Entry.VNFC, n.Entry.Name(), n.Entry.Value}
	if n.Up {
		out.Direction = "UP"
	}
	return out
}
