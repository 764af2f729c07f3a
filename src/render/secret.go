package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SecretNames is what a package says of the names of its values, at any depth:
// true for a secret, false for what is none although it sounds so. A name of
// which it says nothing is that of a secret if it sounds so.
type SecretNames map[string]bool

// Has reports whether a value of the name must be masked. What is empty never
// is, and a boolean cannot be secret by the sound of its name alone.
func (s SecretNames) Has(name string, value any) bool {
	if isEmpty(value) {
		return false
	}
	if secret, decided := s[name]; decided {
		return secret
	}
	return !isTruth(value) && soundsSecret(name)
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

// In returns the names by which the values in inputs must be masked, sorted:
// those that the package says are secret, and those in the inputs that sound so.
// An override whose value assigns a secret to another path, as Helm's --set can,
// is named by its own path.
func (s SecretNames) In(in nf.Inputs) []string {
	found := maps.Clone(s)
	if found == nil {
		found = SecretNames{}
	}
	maps.DeleteFunc(found, func(_ string, secret bool) bool { return !secret })
	s.find(in.Parameters, found)
	s.find(in.Network, found)
	for _, fields := range in.OOF {
		s.find(fields, found)
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

// find adds the names in a value that are those of secrets.
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

// assigns reports whether the value of an override goes on with an assignment to
// a path that names a secret: "1,db.password=x".
func (s SecretNames) assigns(value string) bool {
	for _, part := range nf.SplitOverride(value)[1:] {
		path, assigned, ok := strings.Cut(part, "=")
		if ok && slices.ContainsFunc(nf.PathSteps(path), func(name string) bool { return s.Has(name, assigned) }) {
			return true
		}
	}
	return false
}

// Mask returns a copy of a value in which the secrets are masked.
func (s SecretNames) Mask(value any) any {
	found := SecretNames{}
	s.find(value, found)
	return nf.MaskFields(value, slices.Collect(maps.Keys(found)))
}

// soundsSecret reports whether a name has a word for a secret in it. One that
// refers to a Secret of Kubernetes has it, too: that is the name of an object.
func soundsSecret(name string) bool {
	name = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	if strings.HasPrefix(name, "existingsecret") || slices.ContainsFunc(references, func(word string) bool { return strings.HasSuffix(name, word) }) {
		return false
	}
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

var (
	secretWords = []string{"password", "passwd", "passphrase", "secret", "token", "privatekey", "apikey", "accesskey", "credential"}
	references  = []string{"existingsecret", "secretname", "secretnames", "secretref", "secretkeyref", "pullsecret", "pullsecrets"}
)
