package schema

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// maxSteps bounds the work of one Check, in steps of about 100 ns.
const maxSteps = 20_000_000

// maxViolations is the number of violations at which a Check stops.
const maxViolations = 1000

// Object is an object that is to be applied to a region by server-side apply.
type Object struct {
	*unstructured.Unstructured

	// Resource is the plural name of its kind: "deployments". If it is empty,
	// the object counts as matched by every mutating webhook.
	Resource string

	// Exists means that the region has the object. Fields that the manifest
	// omits may then be set already, and existing errors may remain.
	Exists bool
}

// Unchecked is an object that was not checked completely.
type Unchecked struct {
	Object nf.Ref
	Reason error
}

// Result is the result of a Check.
type Result struct {
	Violations nf.Violations // objects that the API server would reject
	Unchecked  []Unchecked   // objects whose errors may not all be found
}

// Check checks objects against the schemas of the region, and custom resources
// also against CustomResourceDefinitions among the objects. It stops after the
// object with which it reaches 1000 violations. It returns an error only if the
// region does not respond or ctx ends. It does not change the objects.
func (r *Region) Check(ctx context.Context, objects []Object) (Result, error) {
	c := &check{
		region: r, budget: &budget{maxSteps}, rules: ruleBudgets * celconfig.RuntimeCELCostBudget,
		kinds: map[schema.GroupVersionKind]compiled{},
	}
	if err := c.define(ctx, objects); err != nil {
		return Result{}, err
	}
	for _, o := range objects {
		if len(c.result.Violations) >= maxViolations {
			break
		}
		if err := c.object(ctx, o); err != nil {
			return Result{}, err
		}
	}
	return c.result, nil
}

// check is the state of one Check.
type check struct {
	region  *Region
	budget  *budget
	rules   int64 // remaining cost budget of CEL rules
	kinds   map[schema.GroupVersionKind]compiled
	urls    map[string]string // document URLs, by path in the index; nil: not read yet
	unread  error             // why the index could not be read
	mutates func(Object) bool // nil: not read yet
	result  Result
}

type compiled struct {
	kind *kind
	err  error // why there is no kind
}

// object checks one object.
func (c *check) object(ctx context.Context, o Object) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	k, err := c.kind(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	findings, unchecked := c.compare(ctx, k.kind, o.Unstructured, false)
	if unchecked = cmp.Or(k.err, unchecked); unchecked != nil {
		c.result.Unchecked = append(c.result.Unchecked, Unchecked{nf.RefOf(o.Unstructured), unchecked})
	}
	if findings, err = c.certain(ctx, k.kind, o, findings); err != nil {
		return err
	}
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.message, b.message))
	})
	for _, f := range findings {
		c.result.Violations = append(c.result.Violations, nf.Violation{Object: nf.RefOf(o.Unstructured), Field: nf.Clip(f.field, maxMessage), Message: f.message})
	}
	return nil
}

// compare returns the findings for an object, and the reason if its schema
// could not be applied completely. A loose comparison ignores values.
func (c *check) compare(ctx context.Context, k *kind, u *unstructured.Unstructured, loose bool) ([]finding, error) {
	w := &walk{root: u.Object, budget: c.budget, loose: loose, secret: u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}}
	var err error
	if k != nil {
		err = c.schema(ctx, w, k)
	}
	w.metadata(k, u.GroupVersionKind())
	return w.findings, err
}

// schema compares an object with the schema of its kind, and returns the reason
// if that was not possible completely.
func (c *check) schema(ctx context.Context, w *walk, k *kind) error {
	root := w.root
	if k.status || k.native {
		// An API server decodes status, and drops it before validation.
		root = without(root, "status")
		status := &walk{root: w.root, secret: w.secret, loose: true, budget: w.budget, path: []segment{field("status")}}
		if n := k.root.child("status"); n != nil {
			status.visit(n, w.root["status"])
		}
		w.findings = append(w.findings, status.findings...)
	}
	if !k.native {
		root, _ = c.budget.clone(root).(map[string]any)
		c.budget.complete(k.root, root)
	}
	w.visit(k.root, root)
	if c.budget.steps < 0 {
		w.findings = nil // findings of an incomplete comparison are not certain
		return fmt.Errorf("the work of comparing the objects with their schemas: %w", errLimit)
	}
	if k.rules != nil && len(w.findings) == 0 && !w.loose {
		if c.rules = k.rules.evaluate(ctx, w, root, c.rules); c.rules < 0 {
			c.rules = 0
			return fmt.Errorf("the work of evaluating the rules of the schema: %w", errLimit)
		}
	}
	return k.unruled
}

func without(m map[string]any, field string) map[string]any {
	if _, ok := m[field]; !ok {
		return m
	}
	out := make(map[string]any, len(m))
	for name := range m {
		if name != field {
			out[name] = m[name]
		}
	}
	return out
}

// certain returns those findings for which the API server certainly rejects the
// object. It reads from the region only if there are findings.
func (c *check) certain(ctx context.Context, k *kind, o Object, findings []finding) ([]finding, error) {
	if o.Exists {
		findings = slices.DeleteFunc(findings, func(f finding) bool { return f.open })
	}
	if len(findings) == 0 {
		return nil, nil
	}
	mutated, err := c.mutated(ctx, o)
	if err != nil {
		return nil, err
	}
	if mutated { // mutation happens after decoding and before validation of values
		findings, _ = c.compare(ctx, k, o.Unstructured, true)
	}
	if o.Exists && len(findings) > 0 {
		return c.newOnly(ctx, k, o, findings)
	}
	return findings, nil
}

// mutated reports whether mutating admission of the region may change an
// object.
func (c *check) mutated(ctx context.Context, o Object) (bool, error) {
	if c.mutates == nil {
		webhooks, err := c.region.source.Mutating(ctx)
		if err != nil && isAway(err) {
			return false, err
		}
		c.mutates = matcher(webhooks, err)
	}
	return c.mutates(o), nil
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// newOnly returns those findings that the object in the region does not have.
// An API server tolerates existing values that a stricter schema forbids.
func (c *check) newOnly(ctx context.Context, k *kind, o Object, findings []finding) ([]finding, error) {
	live, err := c.region.source.Live(ctx, nf.RefOf(o.Unstructured))
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return findings, nil
	case err != nil && isAway(err):
		return nil, err
	case err != nil:
		return nil, nil //nolint:nilerr // The object in the region may have all of it.
	}
	type what struct{ field, message string }
	had := map[what]bool{}
	old, _ := c.compare(ctx, k, live, false)
	if c.budget.steps < 0 || len(old) == maxFindings {
		return nil, nil // there may be more
	}
	for _, f := range old {
		had[what{indexes.ReplaceAllString(f.field, ""), f.message}] = true
	}
	return slices.DeleteFunc(findings, func(f finding) bool {
		return had[what{indexes.ReplaceAllString(f.field, ""), f.message}]
	}), nil
}

// isAway reports whether an error of a Source ends the Check.
func isAway(err error) bool {
	switch nf.KindOf(err) {
	case nf.NotFound, nf.Unsupported, nf.Failed, nf.TooLarge:
		return false
	default:
		return true
	}
}
