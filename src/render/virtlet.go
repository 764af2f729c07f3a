package render

import "fmt"

// Virtlet returns a warning for each workload whose pods are virtual machines of virtlet
// (docs/annotations.md of github.com/Mirantis/virtlet). Virtlet ended in 2019, and needs
// a container runtime that Kubernetes 1.24 removed. Such pods are applied as they are.
func (p Plan) Virtlet() []string {
	var out []string
	for _, t := range p.targets() {
		template := descend(t.planned.Object.Object, t.kind.template...)
		if descend(template, "metadata", "annotations")["kubernetes.io/target-runtime"] == "virtlet.cloud" {
			out = append(out, fmt.Sprintf("%s is a virtual machine of virtlet, which ended in 2019: it is applied, but nothing runs it; use a VirtualMachine of KubeVirt", t.Workload.Name()))
		}
	}
	return out
}
