package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// secrecy knows the sensitive values of an instance, and hides them in what is
// told: an API server repeats the values that it refuses, and a comparison shows
// what differs. It knows values, not their traces: what a manifest derives from
// one (its base64, say) it cannot find.
type secrecy struct {
	values   []string // longest first, so that one which holds another goes whole
	replacer *strings.Replacer
}

// minSecret is the length below which a value is hidden only where it stands
// alone: a text without any "1" tells more than it hides.
const minSecret = 4

// secretsOf returns the secrecy of inputs, of each under its own list of names.
func secretsOf(revisions ...nf.Revision) secrecy {
	var s secrecy
	for _, rev := range revisions {
		s.inputs(rev.Inputs, rev.Sensitive)
		for _, a := range rev.Amendments {
			s.inputs(a.Inputs, rev.Sensitive)
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	s.values = slices.Compact(s.values)
	var pairs []string
	for _, v := range s.values {
		if len(v) < minSecret {
			continue
		}
		pairs = append(pairs, v, nf.Masked)
		if quoted := strings.Trim(strconv.Quote(v), `"`); quoted != v {
			pairs = append(pairs, quoted, nf.Masked)
		}
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

func (s *secrecy) inputs(in nf.Inputs, names []string) {
	s.find(in.Parameters, names)
	s.find(in.Network, names)
	for _, answers := range in.OOF {
		s.find(answers, names)
	}
	for path, value := range in.Overrides {
		// Of "db.password" both the whole and each name on the way may be marked.
		if slices.Contains(names, path) || slices.ContainsFunc(strings.Split(path, "."), func(name string) bool { return slices.Contains(names, name) }) {
			s.add(value)
		}
	}
}

// find adds the values of the names, however deep they are.
func (s *secrecy) find(value any, names []string) {
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

// add takes a value, or every value inside one.
func (s *secrecy) add(value any) {
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
	case float64:
		s.values = append(s.values, strconv.FormatFloat(v, 'f', -1, 64))
	default:
		if text := fmt.Sprint(v); text != "" {
			s.values = append(s.values, text)
		}
	}
}

// text hides the values in a text.
func (s secrecy) text(text string) string { return s.replacer.Replace(text) }

// error hides the values in an error and keeps what callers branch on.
func (s secrecy) error(err error) error {
	if err == nil || len(s.values) == 0 || s.text(err.Error()) == err.Error() {
		return err
	}
	if u := (unrecorded{}); errors.As(err, &u) {
		return err // it speaks of the store, and will be tried again
	}
	hidden := &nf.Error{Kind: nf.KindOf(err), Op: "apply", Subject: "the package", Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err)}
	violations := slices.Clone(nf.ViolationsOf(err))
	if violations == nil {
		hidden.Err = errors.New(s.text(err.Error()))
		return hidden
	}
	for i, v := range violations {
		violations[i].Field, violations[i].Message = s.text(v.Field), s.text(v.Message)
		violations[i].Object.Namespace, violations[i].Object.Name = s.text(v.Object.Namespace), s.text(v.Object.Name)
	}
	hidden.Err = violations
	return hidden
}

// changes hides the values in what a comparison shows.
func (s secrecy) changes(changes []nf.Change) {
	for _, c := range changes {
		for i := range c.Fields {
			c.Fields[i].Path = s.text(c.Fields[i].Path)
			c.Fields[i].Old, c.Fields[i].New = s.value(c.Fields[i].Old), s.value(c.Fields[i].New)
		}
	}
}

// value hides a value that is, or holds, a sensitive one.
func (s secrecy) value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[s.text(key)] = s.value(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = s.value(inner)
		}
		return out
	case nil, bool:
		return v
	}
	text := fmt.Sprint(value)
	if f, ok := value.(float64); ok {
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	if slices.Contains(s.values, text) || s.text(text) != text {
		return nf.Masked
	}
	return value
}
