package access

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	internal "github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The kinds of identity, and their Cedar entity types. A group is not an
// identity.
const (
	kindUser        = "user"
	kindToken       = "token"
	kindCertificate = "certificate"
	kindOIDC        = "oidc"
	kindKeystone    = "keystone"
	kindGroup       = "group"
)

var entityTypes = map[string]types.EntityType{
	kindUser: "User", kindToken: "Token", kindCertificate: "Certificate", kindOIDC: "OIDC", kindKeystone: "Keystone", kindGroup: "Group",
}

// vocabulary is the Cedar schema of policies.
const vocabulary = `
entity Group;
entity User, Token, Certificate, OIDC in [Group] { name: String };
entity Keystone in [Group] { name: String, project?: String };
entity Project, Region;
entity Scope in [Project, Region] { project: String, region: String };
`

// policies holds the grants as Cedar policies, and the policies of extra files.
type policies struct {
	granted map[types.EntityUID][]rule // by subject
	extra   []numbered
}

// rule is one grant to one subject.
type rule struct {
	numbered

	everywhere  bool // in every project and region
	permissions map[nf.Permission]bool
}

// numbered is a policy with its id.
type numbered struct {
	id     cedar.PolicyID
	policy *cedar.Policy
}

// maxPolicies is the maximum size of a policy file in bytes. Cedar's parser
// recurses for each bracket: a megabyte of brackets overflows the stack and
// ends the process.
const maxPolicies = 64 << 10

// policySet is the set of policies that are evaluated for one identity.
type policySet []numbered

// All implements cedar.PolicyIterator.
func (s policySet) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, n := range s {
			if !yield(n.id, n.policy) {
				return
			}
		}
	}
}

func (l *loader) policies(f file) {
	l.v.policies = &policies{granted: map[types.EntityUID][]rule{}}
	roles := l.roles(f)
	for i, e := range f.grants {
		l.grant(e, fmt.Sprintf("grants[%d]", i), roles)
	}
	if len(f.policies) == 0 {
		return
	}
	validator, err := newValidator()
	if err != nil {
		l.document.refuse(f.policies[0].at, "policies", "cannot be checked: %v", err)
		return
	}
	for i, e := range f.policies {
		content, err := l.beside(e.name)
		if err != nil {
			l.document.refuse(e.at, fmt.Sprintf("policies[%d]", i), "cannot be read: %v", err)
			continue
		}
		if len(content) > maxPolicies {
			l.document.refuse(e.at, fmt.Sprintf("policies[%d]", i), "is larger than %d bytes; there may be several files", maxPolicies)
			continue
		}
		found, wrong := readPolicies(validator, filepath.Base(e.name), strconv.Itoa(i), content)
		l.document.wrong = append(l.document.wrong, wrong...)
		l.v.policies.extra = append(l.v.policies.extra, found...)
	}
}

func (l *loader) grant(e grantEntry, field string, roles map[string][]nf.Permission) {
	permissions, ok := roles[e.role]
	if !ok {
		l.document.refuse(e.at, field+".role", "%q is not a role; roles are viewer, operator, admin and those under roles", e.role)
	}
	for name, patterns := range map[string][]string{"projects": e.projects, "regions": e.regions} {
		if len(patterns) == 0 {
			l.document.refuse(e.at, field+"."+name, `are missing; "*" matches all`)
		}
		for i, p := range patterns {
			if name == "projects" && p == ownProject {
				continue
			}
			if v := nf.CheckID("", strings.ReplaceAll(p, "*", "x")); v != nil {
				l.document.refuse(e.at, fmt.Sprintf("%s.%s[%d]", field, name, i), "%q is not a name, nor a pattern with *", p)
			}
		}
	}
	if len(e.subjects) == 0 {
		l.document.refuse(e.at, field+".subjects", "are missing")
	}
	for i, subject := range e.subjects {
		uid, message := l.subject(subject)
		if message != "" {
			l.document.refuse(e.at, fmt.Sprintf("%s.subjects[%d]", field, i), "%s", message)
			continue
		}
		l.v.policies.add(uid, fmt.Sprintf("%s.subjects[%d]", field, i), e, permissions)
	}
}

// subject returns the entity that a grant is for, or what is wrong. A grant to
// an unknown name is an error, as it is probably misspelled.
func (l *loader) subject(text string) (uid types.EntityUID, wrong string) {
	kind, name, _ := strings.Cut(text, ":")
	if entityTypes[kind] == "" || name == "" {
		return uid, fmt.Sprintf("%q must be user:…, token:…, certificate:…, oidc:…, keystone:… or group:…", text)
	}
	known := true // users of Keystone are not listed
	switch kind {
	case kindUser:
		_, known = l.v.users[name]
	case kindOIDC:
		known = l.v.oidc != nil
	case kindToken:
		known = false
		for _, t := range l.v.tokens {
			known = known || t.name == name
		}
	case kindCertificate:
		known = false
		for _, c := range l.v.certificates {
			known = known || c.name == name || c.name == "" && c.match.matches(name)
		}
	}
	if !known {
		return uid, fmt.Sprintf("this file defines no %q", text)
	}
	return types.NewEntityUID(entityTypes[kind], types.String(name)), ""
}

// add grants permissions to one subject. Permissions for the whole service get
// a separate policy, because an empty project or region is matched differently
// for them.
func (p *policies) add(uid types.EntityUID, id string, e grantEntry, permissions []nf.Permission) {
	for _, wide := range []bool{false, true} {
		r := rule{permissions: map[nf.Permission]bool{}, everywhere: all(e.projects) && all(e.regions)}
		var actions []types.EntityUID
		for _, permission := range permissions {
			if whole(permission) == wide {
				r.permissions[permission] = true
				actions = append(actions, actionOf(permission))
			}
		}
		if len(actions) == 0 {
			continue
		}
		policy := ast.Permit().ActionInSet(actions...)
		if uid.Type == entityTypes[kindGroup] {
			policy = policy.PrincipalIn(uid)
		} else {
			policy = policy.PrincipalEq(uid)
		}
		policy = policy.When(inPlace("project", e.projects, wide).And(inPlace("region", e.regions, wide)))
		r.numbered = numbered{id: cedar.PolicyID(fmt.Sprintf("%s/%t", id, wide)), policy: cedar.NewPolicyFromAST(policy)}
		p.granted[uid] = append(p.granted[uid], r)
	}
}

func all(patterns []string) bool { return slices.Contains(patterns, "*") }

// inPlace returns the condition that a scope's project or region matches one of
// the patterns. An empty one matches any grant, except for permissions for the
// whole service.
func inPlace(attribute types.String, patterns []string, wide bool) ast.Node {
	if all(patterns) {
		return ast.True()
	}
	place := ast.Resource().Access(attribute)
	condition := ast.False()
	if !wide {
		condition = place.Equal(ast.String(""))
	}
	for _, p := range patterns {
		if p == ownProject {
			own := ast.Principal().Has(attribute).And(ast.Principal().Access(attribute).Equal(place))
			condition = condition.Or(own)
			continue
		}
		condition = condition.Or(place.Like(likePattern(p)))
	}
	return condition
}

// ownProject stands for the project of the caller's token in a grant.
const ownProject = "@token"

func likePattern(text string) types.Pattern {
	var components []any
	for i, part := range strings.Split(text, "*") {
		if i > 0 {
			components = append(components, types.Wildcard{})
		}
		if part != "" {
			components = append(components, types.String(part))
		}
	}
	return types.NewPattern(components...)
}

func actionOf(p nf.Permission) types.EntityUID {
	return types.NewEntityUID("Action", types.String(p))
}

// nounOf returns the action group of all permissions of a noun:
// Action::"region:*".
func nounOf(p nf.Permission) types.EntityUID {
	noun, _, _ := strings.Cut(string(p), ":")
	return types.NewEntityUID("Action", types.String(noun+":*"))
}

// newValidator returns a validator with the Cedar schema. It is needed because
// Cedar silently ignores a policy about an entity that does not exist.
func newValidator() (*validate.Validator, error) {
	var text strings.Builder
	text.WriteString(vocabulary)
	nouns := map[string]bool{}
	for _, p := range nf.Permissions() {
		if noun := string(nounOf(p).ID); !nouns[noun] {
			nouns[noun] = true
			fmt.Fprintf(&text, "action %q;\n", noun)
		}
		fmt.Fprintf(&text, "action %q in [%q] appliesTo { principal: [User, Token, Certificate, OIDC, Keystone], resource: Scope, context: {} };\n", p, nounOf(p).ID)
	}
	var s schema.Schema
	if err := s.UnmarshalCedar([]byte(text.String())); err != nil {
		return nil, fmt.Errorf("cannot read the schema of policies: %w", err)
	}
	resolved, err := s.Resolve()
	if err != nil {
		return nil, fmt.Errorf("cannot resolve the schema of policies: %w", err)
	}
	return validate.New(resolved), nil
}

// readPolicies reads a file of Cedar policies.
func readPolicies(validator *validate.Validator, file, number string, content []byte) (found []numbered, wrong nf.Violations) {
	list, err := cedar.NewPolicyListFromBytes(file, content)
	if err != nil {
		return nil, nf.Violations{{File: file, Message: "is not Cedar: " + err.Error()}}
	}
	for i, policy := range list {
		id := fmt.Sprintf("%s:%s#%d", number, file, i)
		if err := validator.Policy(id, (*internal.Policy)(policy.AST())); err != nil {
			wrong = append(wrong, nf.Violation{File: file, Line: policy.Position().Line, Message: err.Error()})
			continue
		}
		found = append(found, numbered{id: cedar.PolicyID(id), policy: policy})
	}
	return found, wrong
}
