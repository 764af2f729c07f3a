package fault

import (
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The types of faults.
const (
	crashLoop = "CrashLoop"  // containers of a component end again and again
	nodeLost  = "NodeLost"   // the node of a component does not respond
	podDown   = "VnfcDown"   // a component does not run or is not ready
	unhealthy = "VnfNotWell" // objects of the VNF are missing or not ready, and its components do not say why
)

// The event types of SOL003.
const (
	processingError = "PROCESSING_ERROR_ALARM"
	equipment       = "EQUIPMENT_ALARM"
)

// reasons are the reasons of pods that are not simply down.
var reasons = map[string]string{
	"CrashLoopBackOff": crashLoop,
	"NodeLost":         nodeLost, "DeletionByTaintManager": nodeLost, // the node's controller evicts pods
}

// causes are the probable causes of faults.
var causes = map[string]string{
	crashLoop: "Containers of the VNFC end repeatedly",
	nodeLost:  "The node of the VNFC is not available",
	podDown:   "The VNFC is not ready",
	unhealthy: "Objects of the VNF are not ready",
}

const (
	mostDetails   = 10
	longestDetail = 512 // bytes
)

// find returns the faults of a VNF by their keys, as alarms without ids and times. A fault
// of several pods of a workload is one.
func find(v nf.VNF, health nf.InstanceHealth, pods []nf.Pod) map[string]nf.Alarm {
	if health.State != nf.Unhealthy || v.Instantiated == nil {
		return nil
	}
	found, well := map[string]nf.Alarm{}, map[string]int{} // pods that are ready, by workload
	for _, p := range pods {
		if p.Status == nf.Current {
			well[p.Workload.Key()]++
		}
	}
	for _, p := range pods {
		if p.Status == nf.Current || p.Done {
			continue
		}
		kind := reasons[p.Reason]
		if kind == "" {
			kind = podDown
		}
		key := kind + " " + p.Workload.Key()
		a, known := found[key]
		if !known {
			a = alarmOf(v, kind, p)
			if well[p.Workload.Key()] == 0 {
				a.Severity = nf.AlarmCritical
			}
		}
		found[key] = with(a, v, p)
	}
	if len(found) == 0 {
		a := base(v, unhealthy)
		a.Details = []string{nf.Clip(health.Message, longestDetail)}
		found[unhealthy] = a
	}
	return found
}

// base returns an alarm of a VNF.
func base(v nf.VNF, kind string) nf.Alarm {
	return nf.Alarm{
		VNF: v.ID, Project: v.Project, Region: v.Instantiated.Region, Severity: nf.AlarmMajor, Event: processingError, Fault: kind, Cause: causes[kind],
	}
}

// alarmOf returns the alarm of a pod's fault.
func alarmOf(v nf.VNF, kind string, p nf.Pod) nf.Alarm {
	a := base(v, kind)
	a.ResourceID, a.ResourceKind, a.ResourceType = p.Name, p.Kind, "COMPUTE"
	if kind == nodeLost && p.Node != "" {
		a.Event, a.ResourceID, a.ResourceKind = equipment, p.Node, "Node"
	}
	for _, key := range slices.Sorted(maps.Keys(v.VIMs)) {
		if v.VIMs[key].Region == v.Instantiated.Region {
			a.VIM = key
			break
		}
	}
	return a
}

// with adds a pod to an alarm.
func with(a nf.Alarm, v nf.VNF, p nf.Pod) nf.Alarm {
	for _, c := range v.Instantiated.VNFCs {
		if c.Resource == p.Name {
			a.VNFCs = append(a.VNFCs, c.ID())
			slices.Sort(a.VNFCs)
		}
	}
	if len(a.Details) < mostDetails {
		a.Details = append(a.Details, nf.Clip(p.Name+": "+p.Message, longestDetail))
	}
	return a
}
