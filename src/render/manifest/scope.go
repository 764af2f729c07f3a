package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// unknown is a value that is not known yet, or whose fault has been reported.
type unknown struct{}

// scope resolves variables to their values.
type scope struct {
	declared map[string]nf.Variable // nil if the package has no variables field
	values   map[string]lookup      // all given values
	failed   map[string]bool        // reported; their values are unknown
	blank    bool                   // no values yet: all are unknown
	warnings []string

	names   []string          // known names of variables, sorted
	guesses map[string]string // what suggest has returned
}

const (
	builtIn    = "built-in"
	parameters = "parameters"
	network    = "network_parameters"
)

// builtins are the names of the variables that the service sets.
var builtins = []string{"namespace", "vnf_id", "vnf_name", "cloud_region_id", "cloud_owner"}

func emptyScope(p *parsedPackage) *scope {
	s := &scope{declared: p.declared(), blank: true}
	s.collect()
	return s
}

// collect collects the known names of variables.
func (s *scope) collect() {
	s.guesses = map[string]string{}
	s.names = slices.Clone(builtins)
	if s.declared != nil {
		s.names = slices.AppendSeq(s.names, maps.Keys(s.declared))
	} else {
		s.names = slices.AppendSeq(s.names, maps.Keys(s.values))
	}
	slices.Sort(s.names)
}

// suggest returns the variable of which a name without a value is probably a
// misspelling, or "".
func (s *scope) suggest(name string) string {
	guess, known := s.guesses[name]
	if !known && len(s.guesses) < maxGuesses {
		guess = nearest(name, s.names)
		s.guesses[name] = guess
	}
	return guess
}

// maxGuesses bounds how many names are compared with all variables.
const maxGuesses = 200

// newScope returns the scope of an instance, and checks its inputs against the
// declarations.
func newScope(p *parsedPackage, in render.Input, r *report) *scope {
	s := &scope{declared: p.declared(), values: map[string]lookup{}, failed: map[string]bool{}}
	inputs, err := plainJSON(in.Inputs)
	if err != nil {
		r.add(place{}, parameters, "are not JSON")
	}
	set := map[string]any{}
	for name, value := range in.Builtins {
		set[name] = value
	}
	s.addValues(builtIn, set)
	s.addValues(parameters, inputs.Parameters)
	for _, values := range inputs.OOF {
		delete(values, nf.ComputeProfilesKey) // inputs are a copy
		s.addValues("oof_parameters", values)
	}
	s.addValues(network, inputs.Network)
	s.collect()
	for _, name := range slices.Sorted(maps.Keys(inputs.Parameters)) {
		if set[name] != nil || slices.Contains(builtins, name) {
			r.add(place{}, parameters+"."+name, "is set by the service")
			delete(inputs.Parameters, name)
		}
	}
	if unknown := p.unknown(inputs.Parameters); in.Strict {
		r.found = append(r.found, unknown[:min(len(unknown), maxFound)]...)
	} else {
		s.warnings = unknown.warnings()
	}
	for _, v := range p.meta.variables {
		s.checkDeclared(v, p.uses[v.Name], r)
	}
	return s
}

// noEffect are the violations about parameters that have no effect.
type noEffect []nf.Violation

// warnings returns the violations as warnings.
func (n noEffect) warnings() (out []string) {
	for _, v := range n {
		out = append(out, v.String())
	}
	return capped(out, "parameters that change nothing")
}

// unknown finds parameters that have no effect.
func (p *parsedPackage) unknown(given map[string]any) (out noEffect) {
	message := "the package uses no such variable"
	known := slices.Sorted(maps.Keys(p.uses))
	if declared := p.declared(); declared != nil {
		message = "the package declares no such variable"
		known = slices.Sorted(maps.Keys(declared))
	}
	known = slices.DeleteFunc(known, func(name string) bool { return slices.Contains(builtins, name) })
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, is := slices.BinarySearch(known, name); is || given[name] == nil {
			continue
		}
		guess := ""
		if len(out) < maxShown {
			guess = nearest(name, known)
		}
		out = append(out, nf.Violation{Field: parameters + "." + nf.Clip(name, maxQuote), Message: message + suggestionText(guess)})
	}
	return out
}

// addValues adds the values of a source, except for names that have a value already.
// Null counts as no value. The source is named as in the API.
func (s *scope) addValues(source string, values map[string]any) {
	for name, value := range values {
		if _, given := s.values[name]; !given && value != nil {
			s.values[name] = lookup{value: value, found: true, source: source}
		}
	}
}

// plainJSON returns a copy of inputs that uses only the types of unstructured
// objects.
func plainJSON(in nf.Inputs) (nf.Inputs, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nf.Inputs{}, fmt.Errorf("cannot read inputs: %w", err)
	}
	var out nf.Inputs
	err = json.Unmarshal(text, &out)
	return out, err
}

func (p *parsedPackage) declared() map[string]nf.Variable {
	if !p.meta.declares {
		return nil
	}
	declared := make(map[string]nf.Variable, len(p.meta.variables))
	for _, v := range p.meta.variables {
		declared[v.Name] = v
	}
	return declared
}

// checkDeclared reports a variable whose required value is missing, or whose
// value has the wrong type.
func (s *scope) checkDeclared(v nf.Variable, use place, r *report) {
	found := s.values[v.Name]
	message := ""
	switch {
	case !found.found && v.Required && v.Default == nil:
		message = "is required"
	case found.found && !hasType(found.declaredValue(v.Type), v.Type):
		message = typeMismatch(v, found.value)
	default:
		return
	}
	s.failed[v.Name] = true
	r.add(use, found.from()+"."+v.Name, "%s", message)
}

// lookup is the result of looking up a variable.
type lookup struct {
	value   any
	found   bool
	foreign bool   // the package declares variables, but not this one
	source  string // where it was found
}

func (l lookup) from() string {
	if l.found {
		return l.source
	}
	return parameters
}

// asText returns the value for use in a text: a connection point of the network
// is replaced by its address.
func (l lookup) asText() any {
	if point, ok := l.value.(map[string]any); ok && l.source == network && point["ip_address"] != nil {
		return point["ip_address"]
	}
	return l.value
}

// declaredValue returns the value for a variable declared with the type.
func (l lookup) declaredValue(want string) any {
	if want == "string" {
		return l.asText()
	}
	return l.value
}

// lookup returns the value of a reference. The caller must not change it.
func (s *scope) lookup(path []string) lookup {
	name := path[0]
	v, declared := s.declared[name]
	foreign := s.declared != nil && !declared && !slices.Contains(builtins, name)
	switch {
	case foreign:
		return lookup{foreign: true}
	case s.blank || s.failed[name]:
		return lookup{value: unknown{}, found: true}
	}
	l := s.values[name]
	if !l.found && v.Default != nil {
		l = lookup{value: v.Default, found: true}
	}
	if len(path) == 1 {
		l.value = l.declaredValue(v.Type)
	}
	for _, step := range path[1:] {
		l.value = child(l.value, step)
	}
	l.found = l.value != nil
	return l
}

// child returns a field of a mapping or an item of a list, or nil.
func child(value any, step string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
