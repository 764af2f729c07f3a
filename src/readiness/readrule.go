package readiness

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// maxNames is the maximum number of names in one field of a rule.
const maxNames = 100

// fieldNames are the fields of a rule.
var fieldNames = []string{"group", "kind", "versions", "aggregate", "current", "failed", "terminal", "message", "generic", "wait_for_status", "still"}

// fields are the fields of one rule.
type fields struct {
	reader *reader
	root   *yaml.Node
	prefix string                // of their names
	values map[string]*yaml.Node // by name
}

func (f fields) add(n *yaml.Node, name, format string, args ...any) {
	f.reader.add(n, f.prefix+name, format, args...)
}

// rule reads one rule. The prefix is that of the names of its fields.
func (r *reader) rule(n *yaml.Node, prefix string) *Rule {
	before := len(r.wrong)
	f := r.fieldsOf(n, prefix)
	rule := &Rule{
		Groups: f.names("group"), Kinds: f.names("kind"), Versions: f.names("versions"), Categories: f.names("aggregate"),
		Judgment: Judgment{
			Current: f.text("current"), Failed: f.text("failed"), Final: f.text("terminal"), Message: f.text("message"),
			Specific: !f.truth("generic", true), WaitForStatus: f.truth("wait_for_status", false), Still: f.truth("still", false),
		},
		File: r.file, Line: n.Line,
	}
	rule.compiled = sync.OnceValues(func() (*program, error) {
		env, err := r.env()
		if err != nil {
			return nil, err
		}
		return rule.Judgment.compile(env)
	})
	if len(r.wrong) == before {
		f.check(rule)
	}
	if len(r.wrong) == before && r.eager {
		f.compile(rule)
	}
	return rule
}

func (r *reader) fieldsOf(n *yaml.Node, prefix string) fields {
	f := fields{r, n, prefix, map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		r.add(n, strings.TrimSuffix(prefix, "."), "must be a mapping")
		return f
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(fieldNames, key.Value):
			r.add(key, "", "unknown key %q; allowed: %s", nf.Clip(key.Value, maxNames), strings.Join(fieldNames, ", "))
		case f.values[key.Value] != nil:
			f.add(key, key.Value, "is given twice")
		}
		f.values[key.Value] = resolved(n.Content[i+1])
	}
	return f
}

// text returns a field that is a text, or "" if it is not given.
func (f fields) text(name string) string {
	n := f.values[name]
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
		f.add(n, name, "must be a text")
	}
	return n.Value
}

// truth returns a field that is true or false.
func (f fields) truth(name string, otherwise bool) bool {
	n := f.values[name]
	if n == nil {
		return otherwise
	}
	var is bool
	if n.Tag != "!!bool" || n.Decode(&is) != nil {
		f.add(n, name, "must be true or false")
	}
	return is
}

// names returns the texts of a field that holds one text or a list of texts.
func (f fields) names(name string) (names []string) {
	n := f.values[name]
	if n == nil {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) > maxNames {
		f.add(n, name, "has more than %d names", maxNames)
		return nil
	}
	for _, item := range items {
		item = resolved(item)
		if item.Kind != yaml.ScalarNode || item.Tag != "!!str" || item.Value == "" || strings.ContainsAny(item.Value, "/ ") {
			f.add(item, name, "must be a name or a list of names")
			return nil
		}
		names = append(names, item.Value)
	}
	if len(names) == 0 {
		f.add(n, name, "is empty")
	}
	return names
}

// check reports fields that are missing or do not go together.
func (f fields) check(rule *Rule) {
	for _, name := range [...]string{"group", "kind", "current"} {
		if f.values[name] == nil && (name == "current" || len(rule.Categories) == 0) {
			f.add(f.root, name, "is missing")
		}
	}
	if len(rule.Kinds) == 0 {
		rule.Kinds = []string{"*"}
	}
	for _, group := range rule.Groups {
		if Builtin(group) {
			f.add(f.values["group"], "group", "%q is a group of Kubernetes, whose kinds cannot have rules", group)
		}
	}
	if rule.Judgment.Final != "" && rule.Judgment.Failed == "" {
		f.add(f.values["terminal"], "terminal", "needs failed, which it narrows")
	}
	if f.reader.own && (slices.Contains(rule.Kinds, "*") || len(rule.Categories) > 0) {
		f.add(f.root, "kind", "must name kinds of the package")
	}
}

// compile reports an expression that cannot be compiled, at its line.
func (f fields) compile(rule *Rule) {
	_, err := rule.compiled()
	if err == nil {
		return
	}
	why, ok := errors.AsType[*fault](err)
	if !ok {
		f.add(f.root, "", "cannot be compiled: %v", err)
		return
	}
	n := *f.values[why.field]
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		n.Line++ // the text begins below its key
	}
	if n.Style&yaml.LiteralStyle != 0 {
		n.Line += why.line - 1
	}
	f.add(&n, why.field, "%s", why.message)
}
