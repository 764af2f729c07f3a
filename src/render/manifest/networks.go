package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// attachments returns the attachments of the metadata. It omits those in which a fault
// was reported, or a value is unknown, and those whose network is empty.
func (e *expander) attachments(m metadata) (out []nf.Connection) {
	for i, n := range m.networks {
		e.file = m.at.file
		r := entryReader{e: e, field: fmt.Sprintf("networks[%d]", i)}
		if a, ok := r.read(n); ok {
			out = append(out, nf.Connection{Attachment: a, At: r.place(n)})
		}
	}
	return out
}

// read returns an attachment, and whether it is complete.
func (r *entryReader) read(n *yaml.Node) (a nf.Attachment, ok bool) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "", "must be a mapping")
		return a, false
	}
	for f := range fields(n) {
		switch f.key.Value {
		case "network":
			a.Network = r.name(f, nf.NetworkSubject)
		case "workload":
			a.Workload = r.text(f.value, ".workload")
		case "interface":
			if a.Interface = r.text(f.value, ".interface"); a.Interface != "" && render.CheckInterface(a.Interface) != "" {
				r.wrong(f.value, ".interface", "%s", render.CheckInterface(a.Interface))
			}
		case "ips":
			a.IPs = r.texts(f, ".ips")
		case "mac":
			a.MAC = r.text(f.value, ".mac")
		case "default_route":
			a.DefaultRoute = r.texts(f, ".default_route")
		case "bandwidth":
			a.Bandwidth = r.bandwidth(f.value)
		case "create":
			a.Create = r.creation(f.value)
		default:
			r.unknownKey(f.key, "", "network", "workload", "interface", "ips", "mac", "default_route", "bandwidth", "create")
		}
	}
	if get(n, "network") == nil {
		r.wrong(n, ".network", "is missing")
	}
	return a, !r.hollow && a.Network != ""
}

// name reads the name of a network or a volume.
func (r *entryReader) name(f field, kind nf.SubjectKind) string {
	at := "." + f.key.Value
	name := r.text(f.value, at)
	if name != "" {
		for _, v := range nf.CheckSharedName("", name, kind) {
			r.wrong(f.value, at, "%s", v.Message)
		}
	}
	return name
}

// texts reads a list of texts, or a variable that is one. It omits empty ones, so that
// an address can be optional.
func (r *entryReader) texts(f field, at string) (out []string) {
	v := r.value(f.value)
	list, is := v.([]any)
	if v != nil && !is {
		r.wrong(f.value, at, "must be a list of texts, got %s", typeOf(v))
	}
	for i, item := range list {
		n := f.value
		if n.Kind == yaml.SequenceNode {
			n = n.Content[i]
		}
		text, is := item.(string)
		switch {
		case item == (unknown{}):
			r.hollow = true
		case item != nil && !is:
			r.wrong(n, fmt.Sprintf("%s[%d]", at, i), "must be a text, got %s", typeOf(item))
		case text != "":
			out = append(out, text)
		}
	}
	return out
}

// bandwidth reads limits of traffic.
func (r *entryReader) bandwidth(n *yaml.Node) *nf.Bandwidth {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, ".bandwidth", "must be a mapping")
		return nil
	}
	var b nf.Bandwidth
	rates := map[string]*int64{
		"ingress_rate": &b.IngressRate, "ingress_burst": &b.IngressBurst, "egress_rate": &b.EgressRate, "egress_burst": &b.EgressBurst,
	}
	for f := range fields(n) {
		rate := rates[f.key.Value]
		if rate == nil {
			r.unknownKey(f.key, ".bandwidth", "ingress_rate", "ingress_burst", "egress_rate", "egress_burst")
			continue
		}
		v := r.value(f.value)
		number, is := v.(int64)
		if v != nil && (!is || number < 0) {
			r.wrong(f.value, ".bandwidth."+f.key.Value, "must be a number of bits")
		}
		*rate = number
	}
	return &b
}

// creation reads the definition of a network. Its driver checks the spec.
func (r *entryReader) creation(n *yaml.Node) *nf.Creation {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, ".create", "must be a mapping")
		return nil
	}
	var c nf.Creation
	for f := range fields(n) {
		switch f.key.Value {
		case "driver":
			c.Driver = r.text(f.value, ".create.driver")
		case "spec":
			v := r.value(f.value)
			spec, is := v.(map[string]any)
			if v != nil && !is {
				r.wrong(f.value, ".create.spec", "must be a mapping, got %s", typeOf(v))
			}
			c.Spec = r.json(spec)
		case "keep":
			v := r.value(f.value)
			keep, is := v.(bool)
			if v != nil && !is {
				r.wrong(f.value, ".create.keep", "must be true or false")
			}
			c.Keep = keep
		default:
			r.unknownKey(f.key, ".create", "driver", "spec", "keep")
		}
	}
	for _, name := range []string{"driver", "spec"} {
		if get(n, name) == nil {
			r.wrong(n, ".create."+name, "is missing")
		}
	}
	return &c
}

// json returns a specification as JSON; nil if a value in it is unknown.
func (r *entryReader) json(spec map[string]any) json.RawMessage {
	if holdsUnknown(spec) {
		r.hollow = true
		return nil
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil // it has only values of JSON
	}
	return text
}

// holdsUnknown reports whether a value has an unknown one in it.
func holdsUnknown(value any) bool {
	switch v := value.(type) {
	case unknown:
		return true
	case []any:
		return slices.ContainsFunc(v, holdsUnknown)
	case map[string]any:
		for _, inner := range v {
			if holdsUnknown(inner) {
				return true
			}
		}
	}
	return false
}

// checkWorkloads reports attachments of workloads that the package does not have. The
// groups contain all objects of the package.
func checkWorkloads(all []nf.Connection, plan render.Plan, r *report) {
	for _, c := range all {
		if fault := plan.Unselected(c.Workload); fault != "" {
			v := c.Violation("workload", "")
			r.add(place{v.File, v.Line}, v.Field, "%s", fault)
		}
	}
}
