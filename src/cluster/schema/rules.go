package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limits for the rules (x-kubernetes-validations) of one kind.
const (
	maxRules    = 500 // large public CRDs have 75
	maxRuleText = 64 << 10
	maxRuleCost = 300_000  // rules times nodes; large public CRDs have 17 000
	ruleBudgets = 5        // the budget of one Check, in budgets of one object
	ruleSize    = 40 << 10 // approximate bytes of one compiled rule
)

var errRules = errors.New("rules of the kind (x-kubernetes-validations) cannot be compiled")

// rules are the compiled rules of a custom resource.
type rules struct {
	schema    *structural.Structural
	validator *structuralcel.Validator
}

// compileRules compiles the rules of a schema with the API server's library.
func compileRules(r raw, c *compiler) (*rules, error) {
	if c.rules > maxRules || c.ruleText > maxRuleText || c.rules*c.nodes > maxRuleCost {
		return nil, fmt.Errorf("%d rules in %d nodes: %w", c.rules, c.nodes, errLimit)
	}
	s, err := structuralOf(r)
	if err != nil {
		return nil, err
	}
	if !compilable(s, s, true) {
		return nil, errRules
	}
	c.doc.size.Add(int64(c.rules)*ruleSize + int64(c.nodes)*nodeSize)
	return &rules{s, structuralcel.NewValidator(s, true, celconfig.PerCallLimit)}, nil
}

// structuralOf converts a schema to the API server's internal form.
func structuralOf(r raw) (*structural.Structural, error) {
	text, err := json.Marshal(stripped(withoutMetadata(r)))
	if err != nil {
		return nil, err
	}
	var published apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &internal, nil); err != nil {
		return nil, err
	}
	return structural.NewStructural(&internal)
}

// stripped returns a schema without descriptions and references; references are
// only to metadata.
func stripped(r raw) raw {
	if r.flag(embedded) {
		r = withoutMetadata(r)
	}
	out := raw{}
	for key, v := range r {
		switch key {
		case "description", "title", "example", "externalDocs", "$ref":
			continue
		case "properties":
			fields, _ := v.(map[string]any)
			to := map[string]any{}
			for name, f := range fields {
				m, _ := f.(map[string]any)
				to[name] = stripped(m)
			}
			out[key] = to
			continue
		case "items", "additionalProperties", "not":
			if m, ok := v.(map[string]any); ok {
				out[key] = stripped(m)
				continue
			}
		}
		out[key] = v
	}
	return out
}

// compilable reports whether all rules compile. The validator assumes that they
// do, because API servers check them; but a newer API server may support more
// than this library. rules is the schema with the rules, and at the schema that
// they apply to.
func compilable(rules, at *structural.Structural, root bool) bool {
	if len(rules.XValidations) > 0 {
		s := *at
		s.XValidations = rules.XValidations
		results, err := structuralcel.Compile(&s, model.SchemaDeclType(&s, root), celconfig.PerCallLimit,
			environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), structuralcel.StoredExpressionsEnvLoader())
		if err != nil {
			return false
		}
		for _, result := range results {
			if result.Error != nil {
				return false
			}
		}
	}
	for name, f := range rules.Properties {
		if field, ok := at.Properties[name]; ok && !compilable(&f, &field, field.XEmbeddedResource) {
			return false
		}
	}
	if rules.Items != nil && at.Items != nil && !compilable(rules.Items, at.Items, at.Items.XEmbeddedResource) {
		return false
	}
	if extra := rules.AdditionalProperties; extra != nil && extra.Structural != nil && !compilable(extra.Structural, extra.Structural, extra.Structural.XEmbeddedResource) {
		return false
	}
	return rules.ValueValidation == nil || !slices.ContainsFunc(rules.ValueValidation.AllOf, nestsRules)
}

// nestsRules reports whether a schema below allOf has rules. They are rare, and
// cannot be checked by compilable.
func nestsRules(v structural.NestedValueValidation) bool {
	return len(v.XValidations) > 0 || v.Items != nil && nestsRules(*v.Items) ||
		v.AdditionalProperties != nil && nestsRules(*v.AdditionalProperties) ||
		slices.ContainsFunc(v.AllOf, nestsRules) || slices.ContainsFunc(slices.Collect(maps.Values(v.Properties)), nestsRules)
}

// evaluate runs the rules on an object with defaults set. It returns the
// remaining budget, negative if the budget did not suffice.
func (r *rules) evaluate(ctx context.Context, w *walk, object map[string]any, budget int64) int64 {
	errs, left := r.validator.Validate(ctx, nil, r.schema, object, nil, min(budget, celconfig.RuntimeCELCostBudget))
	if left < 0 {
		return left
	}
	for _, e := range errs {
		where := strings.TrimPrefix(e.Field, ".")
		if where == "<nil>" { // the library's text for the root
			where = ""
		}
		w.findings = append(w.findings, finding{where, nf.Clip(w.detail(e), maxMessage), true})
	}
	return budget - (min(budget, celconfig.RuntimeCELCostBudget) - left)
}
