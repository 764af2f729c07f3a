package openstack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// nfv is the parameter that has the values of the VNF descriptor, as the default user data
// of Tacker makes it.
const nfv = "nfv"

// The groups and the values of the parameter nfv.
const (
	groupVDU   = "VDU"
	groupPoint = "CP"

	valueFlavor  = "computeFlavourId"
	valueImage   = "vcImageId"
	valueZone    = "locationConstraints"
	valueCount   = "desired_capacity"
	valueNetwork = "network"
	valueIPs     = "fixed_ips"
)

// Parameters returns the values of the parameters of a stack: nfv, if the template uses it,
// and the additional parameters that the template declares. additionalParams.nfv is merged
// into nfv. Parameters returns nf.Invalid if the template is not one of Heat, and if it uses
// a value of nfv that is not known.
func Parameters(s nf.Stack) (map[string]any, error) {
	var hot struct {
		Version    string         `yaml:"heat_template_version"`
		Parameters map[string]any `yaml:"parameters"`
		Resources  map[string]any `yaml:"resources"`
	}
	if err := yaml.Unmarshal(s.Template, &hot); err != nil {
		return nil, nf.E(nf.Invalid, "read", "the template of "+s.Name, errors.New("it is not YAML of the form of a Heat template"))
	}
	if hot.Version == "" || len(hot.Resources) == 0 {
		return nil, nf.E(nf.Invalid, "read", "the template of "+s.Name, errors.New("it has no heat_template_version, or no resources"))
	}
	out := map[string]any{}
	for name := range hot.Parameters {
		if value, given := s.Params.Given[name]; given && name != nfv {
			out[name] = value
		}
	}
	if _, declared := hot.Parameters[nfv]; !declared {
		return out, nil
	}
	paths := pathsOf(hot.Resources)
	values := map[string]any{}
	for _, p := range paths {
		put(values, p, valueOf(s.Params, p))
	}
	if given, isObject := s.Params.Given[nfv].(map[string]any); isObject {
		values, _ = nf.MergePatch(values, given).(map[string]any) // an object, as the patch is
	}
	out[nfv] = values
	return out, missing(s, paths, values)
}

// path is a value of nfv that a template uses: the group, the name of a node template, the
// value, and perhaps an index and a field.
type path []string

// pathsOf returns the values of nfv that resources use, sorted.
func pathsOf(resources map[string]any) []path {
	var out []path
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, inner := range v {
				if list, isList := inner.([]any); isList && key == "get_param" && len(list) >= 4 && list[0] == nfv {
					p := path{}
					for _, item := range list[1:] {
						p = append(p, fmt.Sprint(item))
					}
					out = append(out, p)
					continue
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(resources)
	slices.SortFunc(out, func(a, b path) int { return slices.Compare(a, b) })
	return slices.CompactFunc(out, slices.Equal[path])
}

// valueOf returns a value of nfv; nil if it is not known.
func valueOf(p nf.StackParams, at path) any {
	group, name, value := at[0], at[1], at[2]
	vdu, isVDU := p.VDUs[name]
	point, isPoint := p.Points[name]
	text := ""
	switch {
	case group == groupVDU && value == valueImage:
		text = p.Images[name]
	case group == groupVDU && isVDU && value == valueFlavor:
		text = vdu.Flavor
	case group == groupVDU && isVDU && value == valueZone:
		text = vdu.Zone
	case group == groupVDU && isVDU && value == valueCount:
		return vdu.Count
	case group == groupPoint && isPoint && value == valueNetwork:
		text = point.Network
	case group == groupPoint && value == valueIPs:
		ips := []any{}
		for _, ip := range point.IPs {
			ips = append(ips, map[string]any{"ip_address": ip})
		}
		return ips
	}
	if text == "" {
		return nil
	}
	return text
}

// put sets the value of a path. Addresses are one value, whatever the rest of the path is.
func put(values map[string]any, at path, value any) {
	last := len(at) - 1
	if at[0] == groupPoint && at[2] == valueIPs {
		last = 2
	}
	for _, key := range at[:last] {
		inner, isObject := values[key].(map[string]any)
		if !isObject {
			inner = map[string]any{}
			values[key] = inner
		}
		values = inner
	}
	values[at[last]] = value
}

// missing returns nf.Invalid for the values that a template uses and that are not known.
// An availability zone and fixed addresses need not be.
func missing(s nf.Stack, paths []path, values map[string]any) error {
	var wrong nf.Violations
	for _, p := range paths {
		if slices.Contains(p, valueZone) || slices.Contains(p, valueIPs) {
			continue
		}
		var value any = values
		for _, key := range p {
			object, _ := value.(map[string]any)
			value = object[key]
		}
		if value == nil {
			wrong = append(wrong, nf.Violation{Field: "additionalParams." + nfv + "." + clip(strings.Join(p, ".")), Message: "is used by the template; " + cmp.Or(sources[p[2]], "only the request can give it")})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return nf.E(nf.Invalid, "make", "stack "+s.Name, wrong)
}

// sources say where the values of nfv come from.
var sources = map[string]string{
	valueFlavor:  "the VDU has no requested_additional_capability_name in the VNFD",
	valueImage:   "the node template has no sw_image_data in the VNFD",
	valueCount:   "the VNFD has no VDU of this name",
	valueNetwork: "extVirtualLinks has no network for the connection point",
}
