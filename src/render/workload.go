package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Workload is an object of a plan that has pods.
type Workload struct {
	Ref      nf.Ref // without a namespace: that of the plan
	Replicas int    // number of its pods; UnknownReplicas if it is not known
}

// UnknownReplicas is the number of pods of a workload whose number depends on the
// region, such as a DaemonSet.
const UnknownReplicas = -1

// Name returns the name by which an attachment selects the workload:
// "Deployment/web".
func (w Workload) Name() string { return w.Ref.Kind + "/" + w.Ref.Name }

// workloadKind says where objects of a kind have the template of their pods, and
// how many pods they have.
type workloadKind struct {
	template []string
	pods     func(spec map[string]any) int
	machine  bool // the template is that of a virtual machine instance of KubeVirt
}

var (
	templateOfSpec = []string{"spec", "template"}

	workloadKinds = map[string]workloadKind{
		"Pod":                   {pods: onePod},
		"Deployment.apps":       {template: templateOfSpec, pods: replicas},
		"StatefulSet.apps":      {template: templateOfSpec, pods: replicas},
		"ReplicaSet.apps":       {template: templateOfSpec, pods: replicas},
		"ReplicationController": {template: templateOfSpec, pods: replicas},
		"DaemonSet.apps":        {template: templateOfSpec, pods: unknownPods},
		"Job.batch":             {template: templateOfSpec, pods: jobPods},
		"CronJob.batch":         {template: []string{"spec", "jobTemplate", "spec", "template"}, pods: cronJobPods},

		"VirtualMachine.kubevirt.io":                   {template: templateOfSpec, pods: onePod, machine: true},
		"VirtualMachineInstance.kubevirt.io":           {pods: onePod, machine: true},
		"VirtualMachineInstanceReplicaSet.kubevirt.io": {template: templateOfSpec, pods: replicas, machine: true},
		"VirtualMachinePool.pool.kubevirt.io":          {template: []string{"spec", "virtualMachineTemplate", "spec", "template"}, pods: replicas, machine: true},
	}

	// otherKind are the objects of other kinds with a template of pods in the same
	// place, such as custom resources.
	otherKind = workloadKind{template: templateOfSpec, pods: unknownPods}
)

func onePod(map[string]any) int        { return 1 }
func unknownPods(map[string]any) int   { return UnknownReplicas }
func replicas(spec map[string]any) int { return count(spec, "replicas", 1) }
func jobPods(spec map[string]any) int {
	return min(parallel(spec), count(spec, "completions", parallel(spec)))
}
func parallel(spec map[string]any) int { return count(spec, "parallelism", 1) }

// cronJobPods returns the number of pods at one time. By default, a job does not
// wait for the end of the one before it.
func cronJobPods(spec map[string]any) int {
	if policy := spec["concurrencyPolicy"]; policy != "Forbid" && policy != "Replace" {
		return UnknownReplicas
	}
	return jobPods(descend(spec, "jobTemplate", "spec"))
}

// count returns the number in a field, or missing if it has none. It returns
// UnknownReplicas if the field is not a number.
func count(spec map[string]any, name string, missing int) int {
	switch n := spec[name].(type) {
	case nil:
		return missing
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return UnknownReplicas
}

// target is a workload and its place in a plan.
type target struct {
	Workload Workload
	planned  *Planned
	kind     workloadKind
}

// targets returns the workloads of the plan's stages, in order. Shared objects
// are omitted, since they are not changed.
func (p Plan) targets() (out []target) {
	scaled := p.autoscaled()
	for i := range p.Stages {
		for j := range p.Stages[i].Objects {
			o := &p.Stages[i].Objects[j]
			kind, found := kindOf(o.Object)
			if !found || o.Shared {
				continue
			}
			w := Workload{Ref: nf.RefOf(o.Object), Replicas: kind.pods(descend(o.Object.Object, "spec"))}
			if scaled[w.Name()] {
				w.Replicas = UnknownReplicas
			}
			out = append(out, target{w, o, kind})
		}
	}
	return out
}

// kindOf reports whether an object has pods, and returns its kind.
func kindOf(u *unstructured.Unstructured) (workloadKind, bool) {
	if kind, known := workloadKinds[u.GroupVersionKind().GroupKind().String()]; known {
		return kind, true
	}
	containers, _ := descend(u.Object, "spec", "template", "spec")["containers"].([]any)
	return otherKind, len(containers) > 0
}

// autoscaled returns the names of the workloads whose number of pods an
// autoscaler of the plan changes.
func (p Plan) autoscaled() map[string]bool {
	names := map[string]bool{}
	for _, u := range p.Objects() {
		if u.GetKind() == "HorizontalPodAutoscaler" {
			scaled := descend(u.Object, "spec", "scaleTargetRef")
			names[fmt.Sprintf("%v/%v", scaled["kind"], scaled["name"])] = true
		}
	}
	return names
}

// choose returns the targets that a selector of an attachment selects, or else
// the reason why it selects none.
func choose(all []target, selector string) (chosen []target, fault string) {
	kind, name, both := strings.Cut(selector, "/")
	if !both {
		kind, name = "", selector
	}
	chosen = slices.DeleteFunc(slices.Clone(all), func(t target) bool {
		return selector != "" && selector != nf.AllWorkloads &&
			(t.Workload.Ref.Name != name || both && !strings.EqualFold(t.Workload.Ref.Kind, kind))
	})
	switch {
	case len(all) == 0:
		return nil, "the package has no object with pods"
	case len(chosen) == 0:
		return nil, fmt.Sprintf("%q is not in the package; its objects with pods are %s", selector, namesOfTargets(all))
	case len(chosen) > 1 && selector == "":
		return nil, fmt.Sprintf("is required: the package has several objects with pods: %s", namesOfTargets(chosen))
	case len(chosen) > 1 && selector != nf.AllWorkloads:
		return nil, fmt.Sprintf("%q names several objects: %s", selector, namesOfTargets(chosen))
	}
	return chosen, ""
}

// Selected returns the objects with pods that selectors of attachments select, in the
// order of the plan.
func (p Plan) Selected(selectors []string) (out []nf.Ref) {
	all := p.targets()
	selected := map[*Planned]bool{}
	for _, selector := range selectors {
		chosen, _ := choose(all, selector)
		for _, t := range chosen {
			selected[t.planned] = true
		}
	}
	for _, t := range all {
		if selected[t.planned] {
			out = append(out, t.Workload.Ref)
		}
	}
	return out
}

func namesOfTargets(all []target) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Workload.Name()
	}
	return strings.Join(names, ", ")
}
