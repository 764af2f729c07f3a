package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Compute is a compute profile that a request asks for.
type Compute struct {
	nf.ComputeUse

	At       nf.Place
	Names    map[string]string // of fields below that of At, where they are not those of the use
	Optional bool              // without effect if the plan does not have the workload
}

// Violation returns a violation of a field of the use: "workload", "container" or "profile".
func (c Compute) Violation(field, message string) nf.Violation {
	if name, other := c.Names[field]; other {
		field = name
	}
	return c.At.Violation(field, message)
}

func (c Compute) violation(field, format string, args ...any) nf.Violation {
	return c.Violation(field, fmt.Sprintf(format, args...))
}

// AskedCompute returns the compute profiles that oof_parameters ask for. They have a name or a
// profile. The list of compute_profiles has entries of this form:
//
//	{"workload": "Deployment/web", "container": "web", "profile": "large"}
//
// In place of the name, profile can be an object. Flavors of ONAP's OOF are optional:
//
//	{"directives": [{"id": "web", "type": "vnfc", "directives": [{"type": "flavor_directives",
//	  "attributes": [{"attribute_name": "flavor", "attribute_value": "k8s-0123456789"}]}]}]}
//
// A value of another form than this is a variable and nothing else.
func AskedCompute(in nf.Inputs) (out []Compute, wrong nf.Violations) {
	for i, fields := range in.OOF {
		at := fmt.Sprintf("oof_parameters[%d].", i)
		if value, has := fields[nf.ComputeProfilesKey]; has {
			asked, faults := askedProfiles(at+nf.ComputeProfilesKey, value)
			out, wrong = append(out, asked...), append(wrong, faults...)
		}
		out = append(out, directed(at+nf.DirectivesKey, fields[nf.DirectivesKey])...)
	}
	if len(out) > nf.MaxProfiles {
		wrong = append(wrong, nf.Violation{Field: "oof_parameters", Message: fmt.Sprintf("have %d compute profiles; at most %d are allowed", len(out), nf.MaxProfiles)})
	}
	return out, wrong
}

func askedProfiles(field string, value any) (out []Compute, wrong nf.Violations) {
	list, is := value.([]any)
	if value != nil && !is {
		return nil, nf.Violations{{Field: field, Message: "must be a list of compute profiles"}}
	}
	for i, item := range list {
		c := Compute{At: nf.Place{Field: fmt.Sprintf("%s[%d]", field, i)}}
		fields, is := item.(map[string]any)
		if !is {
			wrong = append(wrong, c.At.Violation("", "must be an object"))
			continue
		}
		wrong = append(wrong, c.read(fields)...)
		out = append(out, c)
	}
	return out, wrong
}

// read reads an entry of the list.
func (c *Compute) read(fields map[string]any) (wrong nf.Violations) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, isText := fields[name].(string)
		at := map[string]*string{"workload": &c.Workload, "container": &c.Container, "profile": &c.Name}[name]
		switch {
		case at == nil:
			wrong = append(wrong, c.At.Violation(nf.Clip(name, 64), "unknown key; allowed: workload, container, profile"))
		case isText:
			*at = text
		case name != "profile":
			wrong = append(wrong, c.At.Violation(name, "must be a text"))
		default:
			var faults nf.Violations
			c.Profile, faults = ReadProfile(fields[name])
			for _, v := range faults {
				v.Field = below("profile", v.Field)
				wrong = append(wrong, c.At.Violation(v.Field, v.Message))
			}
		}
	}
	if text, isText := fields["profile"].(string); isText && text == "" || fields["profile"] == nil {
		wrong = append(wrong, c.At.Violation("profile", "must be the name of a compute profile, or a profile"))
	}
	return wrong
}

// below returns a field of a field.
func below(field, inner string) string {
	if inner == "" {
		return field
	}
	return field + "." + inner
}

// directed returns the flavors that OOF has chosen.
func directed(field string, value any) (out []Compute) {
	for i, d := range objectsOf(value) {
		id, _ := d["id"].(string)
		for j, inner := range objectsOf(d["directives"]) {
			if id == "" || inner["type"] != "flavor_directives" {
				continue
			}
			for k, attribute := range objectsOf(inner["attributes"]) {
				at := fmt.Sprintf("%s[%d].directives[%d].attributes[%d]", field, i, j, k)
				if flavor, _ := attribute["attribute_value"].(string); flavor != "" {
					out = append(out, Compute{
						ComputeUse: nf.ComputeUse{Workload: id, Name: flavor}, At: nf.Place{Field: at}, Optional: true,
						Names: map[string]string{"profile": "attribute_value", "workload": ""},
					})
				}
			}
		}
	}
	return out
}

// objectsOf returns the objects of a list; a null object for each other value.
func objectsOf(value any) []map[string]any {
	list, _ := value.([]any)
	out := make([]map[string]any, len(list))
	for i, item := range list {
		out[i], _ = item.(map[string]any)
	}
	return out
}
