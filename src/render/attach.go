package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Attach returns the plan with its pods attached to networks. Each element of
// wanted has an Attachment, and the place that it comes from: Field, File and Lines.
// connect makes the connection of an attachment for one workload, and is called
// once for each workload that the attachment selects. The fields of its violations
// are relative to the attachment's.
//
// The elements of a pod's annotation keep their order, and the new ones follow. An
// attachment that is there already is not added again, so Attach can be repeated.
// Hooks and shared objects are not attached.
//
// The error is nf.Violations, or another error of connect.
func (p Plan) Attach(wanted []nf.Connection, connect func(nf.Attachment, Workload) (nf.Connection, error)) (Plan, error) {
	out := p.clone()
	all := out.targets()
	connections := map[*Planned][]nf.Connection{}
	var wrong nf.Violations
	for _, want := range wanted {
		if fault := CheckInterface(want.Interface); want.Interface != "" && fault != "" {
			wrong = append(wrong, want.Violation("interface", fault))
		}
		chosen, v := chosenBy(want, all)
		wrong = append(wrong, v...)
		for _, t := range chosen {
			c, err := connect(want.Attachment, t.Workload)
			if v := nf.ViolationsOf(err); v != nil {
				wrong = append(wrong, under(want, v, t.Workload, len(chosen) > 1)...)
				continue
			}
			if err != nil {
				return Plan{}, err
			}
			c.At, c.Names = want.At, want.Names
			connections[t.planned] = append(connections[t.planned], c)
		}
	}
	for _, t := range all {
		if c := connections[t.planned]; len(c) > 0 && len(wrong) == 0 {
			t.planned.Object = t.planned.Object.DeepCopy()
			wrong = append(wrong, t.attach(out.Namespace, c)...)
			out.Warnings = warn(out.Warnings, t, c)
		}
	}
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	return out, nil
}

// chosenBy returns the workloads that a connection selects, or violations.
func chosenBy(want nf.Connection, all []target) (chosen []target, wrong nf.Violations) {
	chosen, fault := choose(all, want.Workload)
	if fault != "" {
		return nil, nf.Violations{want.Violation("workload", fault)}
	}
	if v := checkMany(want); v != nil && len(chosen) > 1 {
		return nil, v
	}
	return chosen, nil
}

// checkMany returns violations for what only one of several workloads can have.
func checkMany(want nf.Connection) (wrong nf.Violations) {
	const message = "cannot be that of several workloads; select one of them"
	if len(want.IPs) > 0 {
		wrong = append(wrong, want.Violation("ips", message))
	}
	if want.MAC != "" {
		wrong = append(wrong, want.Violation("mac", message))
	}
	return wrong
}

// under returns violations with the place of the attachment in front. If the
// attachment selects several workloads, the messages name the one.
func under(want nf.Connection, violations nf.Violations, w Workload, several bool) nf.Violations {
	out := slices.Clone(violations)
	for i, v := range out {
		if several {
			out[i] = v.Saying(nf.Textf("%s: %s", w.Name(), v.Said()))
		}
		place := want.Violation(v.Field, "")
		out[i].Field, out[i].File, out[i].Line = place.Field, place.File, place.Line
	}
	return out
}

var interfacePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$`)

// CheckInterface returns why a text cannot be the name of a further interface of a
// pod, or "".
func CheckInterface(name string) (fault string) {
	switch {
	case !interfacePattern.MatchString(name):
		return fmt.Sprintf("%q is not the name of an interface: 1 to 15 lower-case letters, digits or '-', a letter or digit at both ends", nf.Clip(name, 64))
	case name == "eth0":
		return "eth0 is the interface of the cluster network"
	case name == "lo":
		return "lo is the loopback interface"
	case strings.HasPrefix(name, "pod"):
		return "names that begin with pod are those of KubeVirt"
	}
	return ""
}

// warn adds a warning for a Deployment with a fixed address that is updated by
// starting the new pod before the old one ends.
func warn(warnings []string, t target, connections []nf.Connection) []string {
	fixed := slices.ContainsFunc(connections, func(c nf.Connection) bool { return len(c.IPs) > 0 || c.MAC != "" })
	strategy := descend(t.planned.Object.Object, "spec", "strategy")
	surge := descend(strategy, "rollingUpdate")["maxSurge"]
	if !fixed || t.Workload.Ref.Kind != "Deployment" || strategy["type"] == "Recreate" || surge == int64(0) || surge == "0%" {
		return warnings
	}
	text := fmt.Sprintf("%s has a fixed address, and its update starts the new pod before the old one ends; use the strategy Recreate", t.Workload.Name())
	if slices.Contains(warnings, text) {
		return warnings
	}
	return append(warnings, text)
}
