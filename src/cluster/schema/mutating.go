package schema

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// matcher returns a function that reports whether mutating admission may change
// an object, which happens after decoding and before validation. If err is not
// nil, every object may be changed. Selectors and match conditions are ignored:
// a webhook that may match counts as matching.
func matcher(webhooks []*unstructured.Unstructured, err error) func(Object) bool {
	if err != nil {
		return func(Object) bool { return true }
	}
	var rules []map[string]any
	for _, u := range webhooks {
		for _, webhook := range objects(u.Object["webhooks"]) {
			rules = append(rules, objects(webhook["rules"])...)
		}
		rules = append(rules, objects(dig(u.Object, "spec", "matchConstraints", "resourceRules"))...)
	}
	return func(o Object) bool {
		return slices.ContainsFunc(rules, func(rule map[string]any) bool { return matches(rule, o) })
	}
}

// matches reports whether a webhook rule includes the group and resource of an
// object. It ignores versions, as an API server converts objects for webhooks
// of other versions.
func matches(rule map[string]any, o Object) bool {
	group := func(v any) bool { return v == "*" || v == o.GroupVersionKind().Group }
	resource := func(v any) bool {
		name, _ := v.(string)
		name, _, _ = strings.Cut(name, "/")
		return name == "*" || name == o.Resource || o.Resource == ""
	}
	groups, _ := rule["apiGroups"].([]any)
	resources, _ := rule["resources"].([]any)
	return slices.ContainsFunc(groups, group) && slices.ContainsFunc(resources, resource)
}
