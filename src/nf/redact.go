package nf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Mask returns a copy of the inputs that may be shown: the values of the names
// are Masked at any depth. An override is masked if a name is its path, or one
// step of the path: "db.users[0].password".
func (in Inputs) Mask(names []string) Inputs {
	out := in
	out.Parameters, out.Network = maskedFields(in.Parameters, names), maskedFields(in.Network, names)
	out.OOF, out.Overrides = nil, maps.Clone(in.Overrides)
	for _, fields := range in.OOF {
		out.OOF = append(out.OOF, maskedFields(fields, names))
	}
	for path := range out.Overrides {
		if onPath(path, names) {
			out.Overrides[path] = Masked
		}
	}
	return out
}

// Secrets returns the values of the names, as texts in which they may appear
// elsewhere.
func (in Inputs) Secrets(names []string) []string {
	var found secretTexts
	found.find(in.Parameters, names)
	found.find(in.Network, names)
	for _, fields := range in.OOF {
		found.find(fields, names)
	}
	for path, value := range in.Overrides {
		if onPath(path, names) {
			found = append(found, overrideTexts(value)...)
		}
	}
	return found
}

// PathSteps returns the names in the path of an override.
func PathSteps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(`.[]\`, r) })
}

func onPath(path string, names []string) bool {
	return slices.ContainsFunc(append(PathSteps(path), path), func(name string) bool { return slices.Contains(names, name) })
}

// overrideTexts returns the texts that Helm's --set may produce from a value. A
// backslash escapes the next character, {a,b} is a list, and a comma may be
// followed by the assignment of another value.
func overrideTexts(value string) []string {
	var plain strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) {
			i++
		}
		plain.WriteByte(value[i])
	}
	out := []string{value, plain.String()}
	for i, part := range SplitOverride(value) {
		if _, assigned, ok := strings.Cut(part, "="); ok && i > 0 {
			part = assigned
		}
		out = append(out, strings.ReplaceAll(strings.Trim(part, "{}"), `\`, ""))
	}
	return out
}

// SplitOverride splits the value of an override at the unescaped commas.
func SplitOverride(value string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case ',':
			parts, start = append(parts, value[start:i]), i+1
		}
	}
	return append(parts, value[start:])
}

func maskedFields(fields map[string]any, names []string) map[string]any {
	shown, _ := MaskFields(fields, names).(map[string]any)
	return shown
}

// MaskFields returns a copy of a JSON value in which the fields of the names
// are Masked.
func MaskFields(value any, names []string) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if out[name] = Masked; !slices.Contains(names, name) {
				out[name] = MaskFields(inner, names)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = MaskFields(item, names)
		}
		return out
	}
	return value
}

// SoundsSecret reports whether a name contains a word for a secret, such as "password". A
// name that refers to a Kubernetes Secret does not count: its value is the name of an
// object.
func SoundsSecret(name string) bool {
	name = strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
	if strings.HasPrefix(name, "existingsecret") || slices.ContainsFunc(secretReferences, func(word string) bool { return strings.HasSuffix(name, word) }) {
		return false
	}
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

var (
	secretWords      = []string{"password", "passwd", "passphrase", "secret", "token", "privatekey", "clientkey", "apikey", "accesskey", "credential", "kubeconfig"}
	secretReferences = []string{"existingsecret", "secretname", "secretnames", "secretref", "secretkeyref", "pullsecret", "pullsecrets"}
)

// secretTexts collects values as texts.
type secretTexts []string

// find adds the values of the names, at any depth.
func (s *secretTexts) find(value any, names []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if slices.Contains(names, name) {
				s.add(inner)
			} else {
				s.find(inner, names)
			}
		}
	case []any:
		for _, inner := range v {
			s.find(inner, names)
		}
	}
}

// add adds a scalar, or every scalar inside a value.
func (s *secretTexts) add(value any) {
	switch v := value.(type) {
	case nil, bool:
	case map[string]any:
		for _, inner := range v {
			s.add(inner)
		}
	case []any:
		for _, inner := range v {
			s.add(inner)
		}
	default:
		*s = append(*s, textOf(v))
	}
}

// textOf returns the text form of a scalar.
func textOf(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// Redactor masks secret values in texts and JSON values. It finds the values
// themselves, but not data derived from them, such as their base64. The zero
// value masks nothing.
type Redactor struct {
	values   []string
	replacer *strings.Replacer
}

// minSecret is the minimum length, in bytes, of a value that is masked within a
// text. A shorter value is masked only if it is the whole text: if every "1"
// were masked, the gaps would reveal it.
const minSecret = 4

// NewRedactor returns a redactor of values and their quoted forms. Empty values
// are ignored.
func NewRedactor(values []string) Redactor {
	r := Redactor{values: slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })}
	var forms []string
	for _, v := range r.values {
		if len(v) >= minSecret {
			quoted := strconv.Quote(v)
			forms = append(forms, v, quoted[1:len(quoted)-1])
		}
	}
	// Longest first, so that a form that begins with another is masked whole.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, Masked)
	}
	r.replacer = strings.NewReplacer(pairs...)
	return r
}

// Text masks the values in a text.
func (r Redactor) Text(text string) string {
	if r.replacer == nil {
		return text
	}
	return r.replacer.Replace(text)
}

// Value returns a copy of a JSON value. Each scalar that equals or contains one
// of the values is Masked.
func (r Redactor) Value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[r.Text(key)] = r.Value(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = r.Value(inner)
		}
		return out
	case nil, bool:
		return v
	}
	if text := textOf(value); slices.Contains(r.values, text) || r.Text(text) != text {
		return Masked
	}
	return value
}
