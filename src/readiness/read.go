package readiness

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

const (
	maxFile  = 256 << 10 // bytes of a file of rules
	maxRules = 1000      // of a file
	maxOwn   = 50        // of a package
)

// builtin are the API groups of Kubernetes itself. Their kinds have no rules.
var builtin = [...]string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io",
	"autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// Builtin reports whether an API group is one of Kubernetes itself. Its kinds are
// not custom resources.
func Builtin(group string) bool { return slices.Contains(builtin[:], group) }

// readFile reads a file of rules: a list. It compiles them if eager is set, so that
// a rule with a fault is found.
func readFile(file string, content []byte, env func() (*cel.Env, error), eager bool) ([]*Rule, nf.Violations) {
	if len(content) > maxFile {
		return nil, nf.Violations{{File: file, Message: fmt.Sprintf("has more than %d bytes", maxFile)}}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		line, message := syntax.YAML(err)
		return nil, nf.Violations{{File: file, Line: line, Message: message}}
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	r := &reader{file: file, field: "rules", most: maxRules, env: env, eager: eager}
	return r.read(document.Content[0]), r.wrong
}

// ReadOwn reads the rules of a package for its own kinds, and compiles them. It
// returns the faults with their lines.
func ReadOwn(file, field string, list *yaml.Node) ([]*Rule, nf.Violations) {
	r := &reader{file: file, field: field, most: maxOwn, own: true, eager: true, env: sync.OnceValues(newEnvironment)}
	return r.read(list), r.wrong
}

// reader reads a list of rules.
type reader struct {
	file  string
	field string // of the list
	most  int    // rules
	own   bool   // of a package
	eager bool   // rules are compiled at once
	env   func() (*cel.Env, error)
	wrong nf.Violations
}

func (r *reader) add(n *yaml.Node, field, format string, args ...any) {
	r.wrong = append(r.wrong, nf.Violation{File: r.file, Line: n.Line, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) read(list *yaml.Node) (rules []*Rule) {
	if list.Kind != yaml.SequenceNode {
		r.add(list, r.field, "must be a list of rules")
		return nil
	}
	if len(list.Content) > r.most {
		r.add(list.Content[r.most], r.field, "has more than %d rules", r.most)
		return nil
	}
	for i, item := range list.Content {
		rules = append(rules, r.rule(resolved(item), fmt.Sprintf("%s[%d].", r.field, i)))
	}
	return rules
}

// resolved returns the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
