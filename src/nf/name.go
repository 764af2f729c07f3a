package nf

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	idPattern        = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$`)
	namespacePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	labelKeyPattern  = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelPattern     = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// Limits on the content of a request.
const (
	MaxText    = 1024           // bytes of a description
	MaxTimeout = 24 * time.Hour // of an operation
)

// CheckID returns a violation unless id can name a cloud region, a package or
// an instance. An id has 1 to 128 letters, digits, '.', '_' and '-', with a
// letter or digit at both ends, so that it is a path segment without escaping.
func CheckID(field, id string) Violations {
	switch {
	case id == "":
		return Violations{{Field: field, Message: "is missing"}}
	case !idPattern.MatchString(id):
		return Violations{{Field: field, Message: fmt.Sprintf("%q is not 1 to 128 letters, digits, '.', '_' or '-' with a letter or digit at both ends", id)}}
	}
	return nil
}

// CheckNamespace returns a violation unless name can name a Kubernetes
// namespace: an RFC 1123 label.
func CheckNamespace(field, name string) Violations {
	if namespacePattern.MatchString(name) {
		return nil
	}
	return Violations{{Field: field, Message: fmt.Sprintf("%q is not a namespace name: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends", name)}}
}

// MaxNamespaces is how many further namespaces an instance may open.
const MaxNamespaces = 20

// CheckNamespaces returns a violation for each name that is not a valid
// namespace name or occurs twice, and for too many names.
func CheckNamespaces(field string, names []string) Violations {
	var out Violations
	if len(names) > MaxNamespaces {
		out = append(out, Violation{Field: field, Message: fmt.Sprintf("are %d, and at most %d are allowed", len(names), MaxNamespaces)})
	}
	seen := map[string]bool{}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		out = append(out, CheckNamespace(at, name)...)
		if seen[name] {
			out = append(out, Violation{Field: at, Message: fmt.Sprintf("%q occurs twice", name)})
		}
		seen[name] = true
	}
	return out
}

// CheckRelease returns a violation unless name can name a release of a chart,
// by Helm's rule: an RFC 1123 label of at most 53 characters.
func CheckRelease(field, name string) Violations {
	const longest = 53
	if len(name) <= longest && namespacePattern.MatchString(name) {
		return nil
	}
	return Violations{{Field: field, Message: fmt.Sprintf("%q is not a release name: 1 to %d lower-case letters, digits or '-', a letter or digit at both ends", name, longest)}}
}

// CheckLabels returns a violation for each label that Kubernetes would reject.
func CheckLabels(field string, labels map[string]string) Violations {
	var out Violations
	for key, value := range labels {
		if !labelKeyPattern.MatchString(key) {
			out = append(out, Violation{Field: field + "." + key, Message: "is not a label name"})
		}
		if !labelPattern.MatchString(value) {
			out = append(out, Violation{Field: field + "." + key, Message: fmt.Sprintf("%q is not a label value", value)})
		}
	}
	return out
}

// CheckText returns a violation if a text is too long or contains control
// characters.
func CheckText(field, text string) Violations {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }
	switch {
	case len(text) > MaxText:
		return Violations{{Field: field, Message: fmt.Sprintf("is longer than %d bytes", MaxText)}}
	case strings.ContainsFunc(text, control):
		return Violations{{Field: field, Message: "contains control characters"}}
	}
	return nil
}
