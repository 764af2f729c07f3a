package access_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func authorizerOf(t testing.TB, rules *access.Rules) *access.Authorizer {
	t.Helper()
	a, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPermissions compares every permission of every identity in every kind of
// scope with the result of accesstest.
func TestPermissions(t *testing.T) {
	t.Parallel()
	a := authorizerOf(t, rulesOf(t, newClock(), accesstest.YAML(), nil))
	for _, who := range accesstest.People() {
		id := nf.Identity{Kind: "token", Name: who}
		for _, p := range nf.Permissions() {
			visible := a.Visible(t.Context(), id, p)
			for _, s := range []nf.Scope{{}, {Project: "a"}, {Project: "b"}, {Region: "east"}, {Region: "west"}, {Project: "a", Region: "east"}, {Project: "b", Region: "west"}, {Project: "x", Region: "y"}} {
				want := accesstest.May(who, p, s)
				err := a.Allow(t.Context(), id, p, s)
				if (err == nil) != want || visible(s) != want || visible(s) != want {
					t.Errorf("%s of %q in %+v: %v, visible %t, want %t", p, who, s, err, visible(s), want)
				}
				if err != nil && nf.KindOf(err) != nf.Forbidden {
					t.Errorf("%s of %q in %+v: %v", p, who, s, err)
				}
			}
		}
	}
}

func TestRefusalNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	a := authorizerOf(t, rulesOf(t, newClock(), "users: []\n", nil))
	for want, s := range map[string]nf.Scope{
		"cannot authorize user:ann: missing permission instance:change in project a and cloud region east": {Project: "a", Region: "east"},
		"cannot authorize user:ann: missing permission instance:change in project a":                       {Project: "a"},
		"cannot authorize user:ann: missing permission instance:change in cloud region east":               {Region: "east"},
		"cannot authorize user:ann: missing permission instance:change for the whole service":              {},
	} {
		if err := a.Allow(t.Context(), nf.Identity{Kind: "user", Name: "ann"}, nf.ChangeInstance, s); err == nil || err.Error() != want {
			t.Errorf("the refusal is %v, want %s", err, want)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	a := authorizerOf(t, rulesOf(t, newClock(), `
users: [{name: ann, password_hash: "`+horse+`"}]
tokens: [{name: ann, sha256: `+tokenSum("stranger")+`}]
oidc: {issuer: "https://sso.example.org", audience: x}
certificates: [{common_name: "*"}]
grants:
- {subjects: ["user:ann"], role: viewer, projects: [user-*], regions: ["*"]}
- {subjects: ["token:ann"], role: viewer, projects: [token], regions: ["*"]}
- {subjects: ["oidc:ann"], role: viewer, projects: [oidc], regions: ["*"]}
- {subjects: ["certificate:ann"], role: viewer, projects: [certificate], regions: ["*"]}
- {subjects: ["group:ann", "group:ops"], role: viewer, projects: ["*-group", "a*b*c"], regions: ["edge-*", core]}
`, nil))
	cases := map[string]struct {
		reason string
		who    nf.Identity
		scope  nf.Scope
		want   bool
	}{
		"User":        {"a grant to a user applies to the user", nf.Identity{Kind: "user", Name: "ann"}, nf.Scope{Project: "user-x", Region: "r"}, true},
		"UserNot":     {"a user does not get the grant of a token with the same name", nf.Identity{Kind: "user", Name: "ann"}, nf.Scope{Project: "token", Region: "r"}, false},
		"Token":       {"a grant to a token applies to the token", nf.Identity{Kind: "token", Name: "ann"}, nf.Scope{Project: "token", Region: "r"}, true},
		"OIDC":        {"a grant to an OIDC user applies to the user", nf.Identity{Kind: "oidc", Name: "ann"}, nf.Scope{Project: "oidc", Region: "r"}, true},
		"Certificate": {"a grant to a certificate applies to the certificate", nf.Identity{Kind: "certificate", Name: "ann"}, nf.Scope{Project: "certificate", Region: "r"}, true},
		"NotGroup":    {"a grant to a group does not apply to a user with its name", nf.Identity{Kind: "user", Name: "ann"}, nf.Scope{Project: "x-group", Region: "core"}, false},
		"Group":       {"a grant to a group applies to its members", nf.Identity{Kind: "oidc", Name: "x", Groups: []string{"dev", "ops"}}, nf.Scope{Project: "x-group", Region: "edge-7"}, true},
		"Stars":       {"a star in a pattern matches any characters", nf.Identity{Kind: "oidc", Name: "x", Groups: []string{"ops"}}, nf.Scope{Project: "a.b.c", Region: "core"}, true},
		"StarsNot":    {"a pattern matches the whole name", nf.Identity{Kind: "oidc", Name: "x", Groups: []string{"ops"}}, nf.Scope{Project: "a.b.cd", Region: "core"}, false},
		"Region":      {"project and region must both match", nf.Identity{Kind: "oidc", Name: "x", Groups: []string{"ops"}}, nf.Scope{Project: "x-group", Region: "edge"}, false},
		"AsGroup":     {"a group is not an identity", nf.Identity{Kind: "group", Name: "ops"}, nf.Scope{Project: "x-group", Region: "core"}, false},
		"Anonymous":   {"an anonymous caller does not have grants", nf.Anonymous(), nf.Scope{Project: "user-x", Region: "r"}, false},
		"NoName":      {"an identity without a name does not have grants", nf.Identity{Kind: "user"}, nf.Scope{Project: "user-x", Region: "r"}, false},
	}
	for name, c := range cases {
		if err := a.Allow(t.Context(), c.who, nf.ReadInstance, c.scope); (err == nil) != c.want {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
	}
}

func TestPolicyFiles(t *testing.T) {
	t.Parallel()
	const admin = "users: [{name: ann, password_hash: '" + horse + "'}]\ngrants: [{subjects: ['user:ann'], role: admin, projects: ['*'], regions: ['*']}]\npolicies: [p.cedar]\n"
	ann := nf.Identity{Kind: "user", Name: "ann", Groups: []string{"trainees"}}
	here := nf.Scope{Project: "a", Region: "east"}
	cases := map[string]struct {
		reason, policy string
		who            nf.Identity
		permission     nf.Permission
		scope          nf.Scope
		want           bool
	}{
		"Forbid":    {"a forbid policy overrides every grant", `forbid(principal in Group::"trainees", action == Action::"instance:terminate", resource in Region::"east");`, ann, nf.RemoveInstance, here, false},
		"Elsewhere": {"a forbid policy applies only to its resources", `forbid(principal in Group::"trainees", action == Action::"instance:terminate", resource in Region::"east");`, ann, nf.RemoveInstance, nf.Scope{Project: "a", Region: "west"}, true},
		"Others":    {"a forbid policy applies only to its principals", `forbid(principal, action, resource) unless { principal in Group::"trainees" };`, ann, nf.RemoveInstance, here, true},
		"Noun":      {"an action group covers all permissions of a noun", `forbid(principal, action in Action::"instance:*", resource in Project::"a");`, ann, nf.ReadInstance, here, false},
		"OtherNoun": {"an action group covers only the permissions of its noun", `forbid(principal, action in Action::"instance:*", resource in Project::"a");`, ann, nf.ReadPackage, nf.Scope{Project: "a"}, true},
		"Attribute": {"a policy can use the project and the region of a scope", `forbid(principal, action, resource) when { resource.project like "a*" && resource.region == "east" };`, ann, nf.ReadInstance, here, false},
		"Name":      {"a policy can use the name of an identity", `forbid(principal, action, resource) when { principal.name == "ann" };`, ann, nf.ReadInstance, here, false},
		"Kind":      {"a policy can use the kind of an identity", `forbid(principal is Token, action, resource);`, ann, nf.ReadInstance, here, true},
		"Permit":    {"a permit policy adds to the grants", `permit(principal == User::"bob", action == Action::"audit:read", resource);`, nf.Identity{Kind: "user", Name: "bob"}, nf.ReadAudit, nf.Scope{}, true},
		"NoMore":    {"a permit policy adds only its action", `permit(principal == User::"bob", action == Action::"audit:read", resource);`, nf.Identity{Kind: "user", Name: "bob"}, nf.ReadRegion, nf.Scope{}, false},
	}
	for name, c := range cases {
		a := authorizerOf(t, rulesOf(t, newClock(), admin, map[string]string{"p.cedar": c.policy}))
		err := a.Allow(t.Context(), c.who, c.permission, c.scope)
		if (err == nil) != c.want || a.Visible(t.Context(), c.who, c.permission)(c.scope) != c.want {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
	}
}

// TestForbidThatFails checks that a policy which cannot be evaluated does not
// let every identity through, as Cedar itself would.
func TestForbidThatFails(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	dir := folder(t, map[string]string{
		"access.yaml": "grants: [{subjects: ['group:ops'], role: admin, projects: ['*'], regions: ['*']}]\npolicies: [p.cedar]\n",
		"p.cedar":     `forbid(principal, action == Action::"region:write", resource) when { 9223372036854775807 + 1 == 0 };`,
	})
	rules, err := access.New(access.Config{File: filepath.Join(dir, "access.yaml"), Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	a, ops := authorizerOf(t, rules), nf.Identity{Kind: "user", Name: "ann", Groups: []string{"ops"}}
	for range 3 {
		if err := a.Allow(t.Context(), ops, nf.WriteRegion, nf.Scope{Region: "east"}); nf.KindOf(err) != nf.Forbidden {
			t.Errorf("an action that the policy forbids, but cannot evaluate: %v", err)
		}
	}
	if err := a.Allow(t.Context(), ops, nf.ReadRegion, nf.Scope{Region: "east"}); err != nil {
		t.Errorf("an action that the policy does not cover: %v", err)
	}
	if n := strings.Count(log.String(), "failed to evaluate a forbid policy"); n != 1 {
		t.Errorf("the log reports it %d times:\n%s", n, log)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern   string
		separator byte
		text      string
		want      bool
	}{
		{"", 0, "", true}, {"", 0, "a", false}, {"*", 0, "", true}, {"*", 0, "a/b", true}, {"*", '/', "a/b", false},
		{"a*c", 0, "abc", true}, {"a*c", 0, "ac", true}, {"a*c", 0, "abcd", false}, {"a*c", 0, "abcabc", true},
		{"*/x", '/', "a/b/x", false}, {"*/*", '/', "a/b", true}, {"*/*", '/', "a/b/", false}, {"a/*", '/', "a/", true},
		{"*a*b", '/', "xaxb", true}, {"*a*b/c", '/', "xaxb/c", true}, {"*a*b/c", '/', "xa/b/c", false}, {"***", '/', "abc", true}, {"***", '/', "a/c", false},
	} {
		if got := access.Matches(c.pattern, c.separator, c.text); got != c.want {
			t.Errorf("%q with %q matches %q: %t", c.pattern, c.separator, c.text, got)
		}
	}
}

// BenchmarkVisible filters 10,000 instances of 1,000 scopes with 1,000 grants, 10
// of which belong to the identity.
func BenchmarkVisible(b *testing.B) {
	var grants strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&grants, "- {subjects: ['group:g%d'], role: operator, projects: ['p%d'], regions: ['edge-*', 'core']}\n", i%100, i)
	}
	name := filepath.Join(b.TempDir(), "access.yaml")
	writeFile(b, name, "grants:\n"+grants.String())
	rules, err := access.New(access.Config{File: name})
	if err != nil {
		b.Fatal(err)
	}
	a, who := authorizerOf(b, rules), nf.Identity{Kind: "oidc", Name: "ann", Groups: []string{"g7"}}
	var scopes []nf.Scope
	for i := range 10_000 {
		scopes = append(scopes, nf.Scope{Project: fmt.Sprintf("p%d", i%100*10+7), Region: fmt.Sprintf("edge-%d", i%10)})
	}
	for b.Loop() {
		visible, seen := a.Visible(b.Context(), who, nf.ReadInstance), 0
		for _, s := range scopes {
			if visible(s) {
				seen++
			}
		}
		if seen == 0 {
			b.Fatal("nothing is visible")
		}
	}
}

// FuzzRules reads random texts as access.yaml: accepted rules must be valid, and
// the error of rejected ones must name a line.
func FuzzRules(f *testing.F) {
	f.Add(accesstest.YAML())
	for _, seed := range []string{
		"users: [{name: ann, password_hash: '" + horse + "', groups: [a]}]\n", "password_file: access.yaml\n", "policies: [access.yaml]\n",
		"oidc: {issuer: 'https://x', audience: y, username_claim: z, groups_claim: g, groups_prefix: p}\n", "tokens: [{name: a, sha256: " + digits + ", expires: 2027-01-01T00:00:00Z}]\n",
		"certificates: [{uri: 'spiffe://a/*'}, {dns: 'a.*'}, {common_name: '*', name: x}]\n", "&a [*a]", "a: &a {b: *a}", "? [a]\n: b\n", "!!binary x", "\xff", "---\n---\n", "users: !!set {a, b}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		name := filepath.Join(t.TempDir(), "access.yaml")
		writeFile(t, name, content)
		rules, err := access.New(access.Config{File: name})
		if err != nil {
			if len(content) > 0 && (nf.KindOf(err) != nf.Invalid || len(nf.ViolationsOf(err)) == 0) {
				t.Errorf("%q is refused by %v", content, err)
			}
			return
		}
		a := authorizerOf(t, rules)
		for _, id := range []nf.Identity{nf.Anonymous(), {}, {Kind: "group", Name: "a"}} {
			if a.Allow(context.WithoutCancel(t.Context()), id, nf.ReadRegion, nf.Scope{Region: "r"}) == nil {
				t.Errorf("%q lets %s in", content, id)
			}
		}
	})
}

// FuzzPolicies reads random texts as a policy file.
func FuzzPolicies(f *testing.F) {
	for _, seed := range []string{
		`permit(principal, action, resource);`, `forbid(principal == User::"a", action in [Action::"region:read"], resource in Region::"x") when { resource.project like "a*" } unless { principal in Group::"g" };`,
		`permit(principal is Token, action, resource) when { [1,2].contains(3) || if true then 1 < 2 else ip("127.0.0.1").isLoopback() };`, `permit(principal, action, resource) when { ((((((((1)))))))) == -1 };`,
		`@id("x") permit(principal, action, resource) when { context has a.b };`, `permit(?principal`, "permit(principal, action, resource) when { \"\\u{1F600}\" == \"\" };", `//`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "access.yaml"), "policies: [p.cedar]\n")
		writeFile(t, filepath.Join(dir, "p.cedar"), content)
		rules, err := access.New(access.Config{File: filepath.Join(dir, "access.yaml")})
		if err != nil {
			if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) == 0 || v[0].File == "" {
				t.Errorf("%q is refused by %v", content, err)
			}
			return
		}
		_ = authorizerOf(t, rules).Allow(t.Context(), nf.Identity{Kind: "user", Name: "a", Groups: []string{"g"}}, nf.ReadRegion, nf.Scope{Region: "x"}) // must not panic
	})
}

// FuzzMatches compares the matching of patterns with a slow and simple
// implementation, which matches part by part.
func FuzzMatches(f *testing.F) {
	f.Add("a*/b*c", "ax/bxc")
	f.Add("*a*b", "xaxb")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 30 || len(text) > 30 {
			return
		}
		if got, want := access.Matches(pattern, '/', text), plainly(pattern, text); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, text, got, want)
		}
	})
}

func plainly(pattern, text string) bool {
	// reach[j]: the pattern so far matches the first j bytes.
	reach := map[int]bool{0: true}
	for i := range len(pattern) {
		next := map[int]bool{}
		for j := range reach {
			if pattern[i] != '*' {
				if j < len(text) && text[j] == pattern[i] {
					next[j+1] = true
				}
				continue
			}
			next[j] = true
			for k := j; k < len(text) && text[k] != '/'; k++ {
				next[k+1] = true
			}
		}
		reach = next
	}
	return reach[len(text)]
}

func TestFuzzOracle(t *testing.T) {
	if diff := cmp.Diff([]bool{true, false}, []bool{plainly("a*c", "abc"), plainly("*/x", "a/b/x")}); diff != "" {
		t.Error(diff)
	}
}
