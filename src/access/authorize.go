package access

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Authorizer decides whether an identity has a permission. It is safe for
// concurrent use.
type Authorizer struct {
	rules  *Rules // nil: every identity has every permission
	warned sync.Map
}

// NewAuthorizer returns an authorizer that denies all that the rules do not
// grant.
func NewAuthorizer(rules *Rules) (*Authorizer, error) {
	if rules == nil {
		return nil, errors.New("cannot create an authorizer: rules are required; use Open to allow everything")
	}
	return &Authorizer{rules: rules}, nil
}

// Open returns an authorizer that allows everything.
func Open() *Authorizer { return &Authorizer{} }

// Allow returns nil if the identity has the permission in the scope. Otherwise
// it returns nf.Forbidden, which names all three.
func (a *Authorizer) Allow(ctx context.Context, id nf.Identity, p nf.Permission, s nf.Scope) error {
	if a.view(ctx, id).may(p, s) {
		return nil
	}
	return nf.E(nf.Forbidden, "authorize", id.String(), fmt.Errorf("missing permission %s%s", p, place(s)))
}

// Visible returns a function that reports whether the identity has the
// permission in a scope. The function caches its results; use a new one for
// each list.
func (a *Authorizer) Visible(ctx context.Context, id nf.Identity, p nf.Permission) func(nf.Scope) bool {
	v := a.view(ctx, id)
	if v.everywhere(p) {
		return func(nf.Scope) bool { return true }
	}
	said := map[nf.Scope]bool{}
	return func(s nf.Scope) bool {
		may, ok := said[s]
		if !ok {
			may = v.may(p, s)
			said[s] = may
		}
		return may
	}
}

// anywhere reports whether the identity may have the permission in some scope.
func (a *Authorizer) anywhere(ctx context.Context, id nf.Identity, p nf.Permission) bool {
	v := a.view(ctx, id)
	for _, r := range v.granted {
		if r.permissions[p] {
			return true
		}
	}
	return v.open || len(v.extra) > 0
}

func place(s nf.Scope) string {
	switch {
	case s.Project == "" && s.Region == "":
		return " for the whole service"
	case s.Project == "":
		return " in cloud region " + s.Region
	case s.Region == "":
		return " in project " + s.Project
	}
	return " in project " + s.Project + " and cloud region " + s.Region
}

// view holds the policies that apply to one identity.
type view struct {
	who       *Authorizer
	open      bool
	granted   []rule
	extra     []numbered
	set       policySet
	principal types.Entity
}

// view collects the policies that can apply to an identity, usually a few out
// of thousands.
func (a *Authorizer) view(ctx context.Context, id nf.Identity) *view {
	if a.rules == nil {
		return &view{open: true}
	}
	v := &view{who: a}
	kind, ok := entityTypes[id.Kind]
	if !ok || id.Kind == kindGroup || id.Name == "" {
		return v // not an identity that rules can name; nothing is granted
	}
	attributes := types.RecordMap{"name": types.String(id.Name)}
	if id.Project != "" {
		attributes["project"] = types.String(id.Project)
	}
	v.principal = types.Entity{UID: types.NewEntityUID(kind, types.String(id.Name)), Attributes: types.NewRecord(attributes)}
	parents := make([]types.EntityUID, len(id.Groups))
	for i, group := range id.Groups {
		parents[i] = types.NewEntityUID(entityTypes[kindGroup], types.String(group))
	}
	v.principal.Parents = types.NewEntityUIDSet(parents...)
	policies := a.rules.current(ctx).policies
	for _, uid := range append(parents, v.principal.UID) {
		v.granted = append(v.granted, policies.granted[uid]...)
	}
	for _, r := range v.granted {
		v.set = append(v.set, r.numbered)
	}
	v.extra = policies.extra
	v.set = append(v.set, v.extra...)
	return v
}

// everywhere reports whether the identity has the permission in all scopes. It
// returns false if extra policies exist, because they must be evaluated per
// scope.
func (v *view) everywhere(p nf.Permission) bool {
	if v.open {
		return true
	}
	if len(v.extra) > 0 {
		return false
	}
	for _, r := range v.granted {
		if r.everywhere && r.permissions[p] {
			return true
		}
	}
	return false
}

func (v *view) may(p nf.Permission, s nf.Scope) bool {
	if v.open {
		return true
	}
	if len(v.set) == 0 {
		return false
	}
	resource := types.Entity{
		UID: types.NewEntityUID("Scope", types.String(s.Project+"/"+s.Region)),
		Attributes: types.NewRecord(types.RecordMap{
			"project": types.String(s.Project), "region": types.String(s.Region),
		}),
		Parents: parentsOf(s),
	}
	action := types.Entity{UID: actionOf(p), Parents: types.NewEntityUIDSet(nounOf(p))}
	decision, why := cedar.Authorize(v.set, entities{v.principal, resource, action}, cedar.Request{
		Principal: v.principal.UID, Action: action.UID, Resource: resource.UID, Context: types.NewRecord(nil),
	})
	return decision == cedar.Allow && v.allPoliciesEvaluated(why.Errors)
}

func parentsOf(s nf.Scope) types.EntityUIDSet {
	var parents []types.EntityUID
	if s.Project != "" {
		parents = append(parents, types.NewEntityUID("Project", types.String(s.Project)))
	}
	if s.Region != "" {
		parents = append(parents, types.NewEntityUID("Region", types.String(s.Region)))
	}
	return types.NewEntityUIDSet(parents...)
}

// allPoliciesEvaluated reports whether every policy that forbids could be evaluated. Cedar
// skips a policy that fails, which would allow what the policy forbids.
func (v *view) allPoliciesEvaluated(failed []cedar.DiagnosticError) bool {
	for _, e := range failed {
		for _, n := range v.extra {
			if n.id == e.PolicyID && n.policy.Effect() == cedar.Forbid {
				v.who.warn(n.id, e)
				return false
			}
		}
	}
	return true
}

// warn logs that a policy cannot be evaluated, once per policy.
func (a *Authorizer) warn(id cedar.PolicyID, e cedar.DiagnosticError) {
	if _, said := a.warned.LoadOrStore(id, true); !said {
		a.rules.cfg.Logger.Warn("failed to evaluate a forbid policy; denied the requests that it might forbid", "policy", string(id), "error", e.Message)
	}
}

// entities holds the principal, the resource and the action of one request.
type entities [3]types.Entity

// Get implements types.EntityGetter.
func (s entities) Get(uid types.EntityUID) (types.Entity, bool) {
	for _, e := range s {
		if e.UID == uid {
			return e, true
		}
	}
	return types.Entity{}, false
}
