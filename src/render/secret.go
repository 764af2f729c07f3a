package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SecretNames is a package's declarations of the names of its values, at any
// depth: true for a secret, false for a name that only sounds like one. A name
// without a declaration is a secret's if it sounds like one.
type SecretNames map[string]bool

// Has reports whether a value of the name must be masked. An empty value never
// is. A boolean is masked only if its name is declared a secret.
func (s SecretNames) Has(name string, value any) bool {
	if isEmpty(value) {
		return false
	}
	if secret, decided := s[name]; decided {
		return secret
	}
	return !isTruth(value) && nf.SoundsSecret(name)
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// isTruth reports whether a value is a boolean, or the text of an override that
// becomes one.
func isTruth(value any) bool {
	_, is := value.(bool)
	return is || value == "true" || value == "false"
}

// In returns the sorted names of the inputs whose values must be masked: those
// that the package declares secret, and those in the inputs that sound secret.
// An override whose value also assigns a secret to another path, as Helm's
// --set allows, is named by its own path.
func (s SecretNames) In(in nf.Inputs) []string {
	found := maps.Clone(s)
	if found == nil {
		found = SecretNames{}
	}
	maps.DeleteFunc(found, func(_ string, secret bool) bool { return !secret })
	s.find(in.Parameters, found)
	s.find(in.Network, found)
	for _, fields := range in.OOF {
		variables := maps.Clone(fields)
		delete(variables, nf.ComputeProfilesKey)
		s.find(variables, found)
	}
	for path, value := range in.Overrides {
		for _, name := range nf.PathSteps(path) {
			if s.Has(name, value) {
				found[name] = true
			}
		}
		if s.assigns(value) {
			found[path] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// find adds the names of secrets in a value to found.
func (s SecretNames) find(value any, found SecretNames) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if s.Has(name, inner) {
				found[name] = true
			}
			s.find(inner, found)
		}
	case []any:
		for _, inner := range v {
			s.find(inner, found)
		}
	}
}

// assigns reports whether the value of an override also contains an assignment
// to a path that names a secret: "1,db.password=x".
func (s SecretNames) assigns(value string) bool {
	for _, part := range nf.SplitOverride(value)[1:] {
		path, assigned, ok := strings.Cut(part, "=")
		if ok && slices.ContainsFunc(nf.PathSteps(path), func(name string) bool { return s.Has(name, assigned) }) {
			return true
		}
	}
	return false
}

// Texts returns the secrets in a package's default values, as texts that may
// appear elsewhere.
func (s SecretNames) Texts(defaults map[string]any) []string {
	in := nf.Inputs{Parameters: defaults}
	return in.Secrets(s.In(in))
}

// Mask returns a copy of a value with its secrets masked.
func (s SecretNames) Mask(value any) any {
	found := SecretNames{}
	s.find(value, found)
	return nf.MaskFields(value, slices.Collect(maps.Keys(found)))
}
