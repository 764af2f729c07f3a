package readiness

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Annotation is the annotation with the rule of an object's package, a Judgment in
// JSON. The renderer of the package sets it, so the rule is where the object is.
const Annotation = nf.ReservedPrefix + "readiness"

// Rule says which objects a judgment is for.
type Rule struct {
	Groups     []string // empty: every group
	Kinds      []string // "*": every kind
	Versions   []string // empty: every version
	Categories []string // of the kind's definition, at least one of them; empty: any
	Judgment   Judgment

	File string
	Line int // of the rule's first key, from 1

	compiled func() (*program, error)
}

// Judgment is the part of a rule that judges an object. Its expressions are CEL.
type Judgment struct {
	Current string `json:"current"`            // bool: it is ready
	Failed  string `json:"failed,omitempty"`   // bool: it has failed; it takes precedence over Current
	Final   string `json:"terminal,omitempty"` // bool: the failure is final; empty: each is
	Message string `json:"message,omitempty"`  // string: what is reported; empty: what the object's own conditions say

	Specific      bool `json:"specific,omitempty"`        // the checks that hold for all kinds are left out
	WaitForStatus bool `json:"wait_for_status,omitempty"` // an object without a status is judged only after StatusTime
	Still         bool `json:"still,omitempty"`           // it is ready only when it has not changed for StillTime
}

// Annotation returns the value of Annotation.
func (j Judgment) Annotation() string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(j) // it has strings and booleans only
	return strings.TrimSpace(out.String())
}

// Matches reports whether the rule is for a kind in a version that is in the
// categories.
func (r *Rule) Matches(group, version, kind string, categories []string) bool {
	return (len(r.Groups) == 0 || slices.Contains(r.Groups, group)) &&
		(slices.Contains(r.Kinds, kind) || slices.Contains(r.Kinds, "*")) &&
		(len(r.Versions) == 0 || slices.Contains(r.Versions, version)) &&
		(len(r.Categories) == 0 || slices.ContainsFunc(r.Categories, func(c string) bool { return slices.Contains(categories, c) }))
}

// program is a compiled judgment.
type program struct {
	Judgment

	current, failed, final, message expression
}

// compile returns the program of a judgment. The error is a *fault.
func (j Judgment) compile(env *cel.Env) (*program, error) {
	p := &program{Judgment: j}
	for _, e := range []struct {
		field, source string
		result        *cel.Type
		into          *expression
	}{
		{"current", j.Current, cel.BoolType, &p.current},
		{"failed", j.Failed, cel.BoolType, &p.failed},
		{"terminal", j.Final, cel.BoolType, &p.final},
		{"message", j.Message, cel.StringType, &p.message},
	} {
		var err error
		if *e.into, err = compile(env, e.source, e.result); err != nil {
			why, ok := errors.AsType[*fault](err)
			if !ok {
				why = &fault{line: 1, message: err.Error()}
			}
			why.field = e.field
			return nil, why
		}
	}
	return p, nil
}

// judge returns the verdict on an object.
func (p *program) judge(object map[string]any) Verdict {
	if !p.Specific {
		if v, decided := generic(object); decided {
			return v
		}
	}
	v, err := p.decide(object)
	if err != nil {
		return inProgress("its readiness rule fails: %v", err)
	}
	switch {
	case v.Status == nf.InProgress:
	case p.WaitForStatus && at(object, "status") == nil:
		v.Wait = ForStatus
	case p.Still && v.Status == nf.Current:
		v.Wait = ForStillness
	}
	return v
}

// decide evaluates the expressions.
func (p *program) decide(object map[string]any) (Verdict, error) {
	failed, err1 := evaluate(p.failed, object, false)
	final, err2 := evaluate(p.final, object, true)
	current, err3 := evaluate(p.current, object, false)
	message, err4 := evaluate(p.message, object, "")
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return Verdict{}, fmt.Errorf("cannot judge object: %w", err)
	}
	if message == "" && (failed || !current) {
		message = explain(object)
	}
	switch {
	case failed && final:
		return Verdict{Status: nf.StatusFailed, Message: message}, nil
	case failed:
		return inProgress("it fails, and its controller tries again: %s", message), nil
	case current:
		return Verdict{Status: nf.Current, Message: message}, nil
	}
	return Verdict{Status: nf.InProgress, Message: message}, nil
}
