package readiness

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

//go:embed shipped.yaml
var shipped []byte

// Rules are the rules of the operator and the shipped ones. They are safe for
// concurrent use.
type Rules struct {
	env        func() (*cel.Env, error)
	configured []*Rule
	shipped    func() []*Rule
	own        *lru.Cache[string, func() (*program, error)] // by value of Annotation
}

// ownRules is how many rules of packages stay compiled.
const ownRules = 256

// Shipped returns the shipped rules. A rule is compiled when it is first needed.
func Shipped() *Rules {
	r := &Rules{env: sync.OnceValues(newEnvironment)}
	r.own, _ = lru.New[string, func() (*program, error)](ownRules) // the size is positive
	r.shipped = sync.OnceValue(func() []*Rule {
		rules, _ := readFile("shipped.yaml", shipped, r.env, false) // a test reads it, and compiles each rule
		return rules
	})
	return r
}

// New returns the rules in an operator's file, and the shipped ones. The error is
// nf.Violations, with the line of each fault.
func New(file string, content []byte) (*Rules, error) {
	r := Shipped()
	var wrong nf.Violations
	if r.configured, wrong = readFile(file, content, r.env, true); len(wrong) > 0 {
		return nil, wrong
	}
	return r, nil
}

// Judge returns the verdict on an object of a kind that is in the categories. It
// reports whether there is a rule for the kind.
func (r *Rules) Judge(object map[string]any, categories []string) (Verdict, bool) {
	compiled := r.find(object, categories)
	if compiled == nil {
		return Verdict{}, false
	}
	p, err := compiled()
	if err != nil {
		return inProgress("its readiness rule cannot be used: %v", err), true
	}
	return p.judge(object), true
}

// find returns the rule for an object, or nil.
func (r *Rules) find(object map[string]any, categories []string) func() (*program, error) {
	group, version, _ := strings.Cut(text(object, "apiVersion"), "/")
	kind := text(object, "kind")
	matches := func(rule *Rule) bool { return rule.Matches(group, version, kind, categories) }
	if i := slices.IndexFunc(r.configured, matches); i >= 0 {
		return r.configured[i].compiled
	}
	if own := text(object, "metadata", "annotations", Annotation); own != "" {
		return r.ownRule(own)
	}
	all := r.shipped()
	if i := slices.IndexFunc(all, matches); i >= 0 {
		return all[i].compiled
	}
	return nil
}

// ownRule returns the rule in an annotation.
func (r *Rules) ownRule(annotation string) func() (*program, error) {
	if compiled, ok := r.own.Get(annotation); ok {
		return compiled
	}
	compiled := sync.OnceValues(func() (*program, error) {
		var j Judgment
		if err := json.Unmarshal([]byte(annotation), &j); err != nil {
			return nil, err
		}
		env, err := r.env()
		if err != nil {
			return nil, err
		}
		return j.compile(env)
	})
	r.own.Add(annotation, compiled)
	return compiled
}

// Categories returns those of the categories of a kind that a rule names.
func (r *Rules) Categories(of []string) (named []string) {
	for _, rules := range [...][]*Rule{r.configured, r.shipped()} {
		for _, rule := range rules {
			for _, c := range rule.Categories {
				if slices.Contains(of, c) && !slices.Contains(named, c) {
					named = append(named, c)
				}
			}
		}
	}
	return named
}
