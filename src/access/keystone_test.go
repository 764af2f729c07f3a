package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// keystoneOf is a Keystone that knows the tokens "valid" and "fresh"; the first one is
// remembered. Without it, it does not answer.
type keystoneOf struct {
	id    nf.Identity
	down  bool
	asked int
}

func (k *keystoneOf) Known(token string) (nf.Identity, bool) { return k.id, token == "valid" }

func (k *keystoneOf) Identity(_ context.Context, token string) (nf.Identity, error) {
	k.asked++
	switch {
	case k.down:
		return nf.Identity{}, &nf.Error{Kind: nf.Unreachable, Op: "authenticate", Subject: "the request", Reason: nf.ReasonKeystone}
	case token != "fresh":
		return nf.Identity{}, nf.E(nf.Unauthenticated, "authenticate", "the request", errors.New("wrong"))
	}
	return k.id, nil
}

// TestKeystone has requests with tokens of Keystone and of others.
func TestKeystone(t *testing.T) {
	t.Parallel()
	token, sum := access.NewToken()
	member := nf.Identity{Kind: "keystone", Name: "ann", Project: "blue", Groups: []string{"keystone:member"}}
	cases := map[string]struct {
		reason        string
		header, value string
		down          bool
		want          string // the identity; empty: none
		kind          nf.Kind
		asked         int
	}{
		"Remembered": {"a token that is known", "X-Auth-Token", "valid", false, "keystone:ann", 0, 0},
		"Fresh":      {"one that is not known yet", "X-Auth-Token", "fresh", false, "keystone:ann", 0, 1},
		"Wrong":      {"one that Keystone does not accept", "X-Auth-Token", "wrong", false, "", nf.Unauthenticated, 1},
		"Down":       {"Keystone does not answer", "X-Auth-Token", "fresh", true, "", nf.Unreachable, 1},
		"Service":    {"a service token is none of Keystone", "X-Auth-Token", token, true, "token:so", 0, 0},
		"Bearer":     {"nor is one of another header", "Authorization", "Bearer fresh", false, "", nf.Unauthenticated, 0},
		"NotUsed":    {"a client that says it has none", "X-Auth-Token", "notused", false, "", nf.Unauthenticated, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keystoneOf{id: member, down: tc.down}
			rules, err := access.New(access.Config{File: written(t, "tokens: [{name: so, sha256: "+sum+"}]\n"), Keystone: k})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set(tc.header, tc.value)
			id, err := access.NewAuthenticator(rules).Authenticate(r)
			if tc.want == "" && (nf.KindOf(err) != tc.kind || err == nil) || tc.want != "" && (err != nil || id.String() != tc.want) {
				t.Errorf("%s: %v, %v", tc.reason, id, err)
			}
			if k.asked != tc.asked {
				t.Errorf("%s: Keystone was asked %d times, want %d", tc.reason, k.asked, tc.asked)
			}
		})
	}
}

// TestKeystoneThrottled has an address with too many wrong tokens: it costs no further
// requests, and tokens that are known still work.
func TestKeystoneThrottled(t *testing.T) {
	t.Parallel()
	k := &keystoneOf{}
	rules, err := access.New(access.Config{File: written(t, "tokens: []\n"), Keystone: k})
	if err != nil {
		t.Fatal(err)
	}
	a := access.NewAuthenticator(rules)
	try := func(token string) error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("X-Auth-Token", token)
		_, err := a.Authenticate(r)
		return err
	}
	for range 20 {
		err = try("wrong")
	}
	if nf.KindOf(err) != nf.TooManyRequests || k.asked > 10 {
		t.Errorf("after %d requests: %v", k.asked, err)
	}
	if err := try("valid"); err != nil {
		t.Errorf("a token that is known: %v", err)
	}
}

// TestOwnProject has grants for the project of the caller's token.
func TestOwnProject(t *testing.T) {
	t.Parallel()
	rules, err := access.New(access.Config{File: written(t, strings.TrimSpace(`
grants:
- {subjects: ["group:keystone:member"], role: operator, projects: ["@token"], regions: ["edge-*"]}
- {subjects: ["keystone:root"], role: admin, projects: ["*"], regions: ["*"]}
- {subjects: ["group:ops"], role: viewer, projects: ["@token"], regions: ["*"]}
`))})
	if err != nil {
		t.Fatal(err)
	}
	a, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	of := func(project string, groups ...string) nf.Identity {
		return nf.Identity{Kind: "keystone", Name: "ann", Project: project, Groups: groups}
	}
	cases := map[string]struct {
		reason string
		id     nf.Identity
		scope  nf.Scope
		want   bool
	}{
		"Own":      {"the project of the token", of("blue", "keystone:member"), nf.Scope{Project: "blue", Region: "edge-1"}, true},
		"Other":    {"no other one", of("blue", "keystone:member"), nf.Scope{Project: "green", Region: "edge-1"}, false},
		"Region":   {"in the regions of the grant", of("blue", "keystone:member"), nf.Scope{Project: "blue", Region: "core"}, false},
		"Unscoped": {"a token without a project", of("", "keystone:member"), nf.Scope{Project: "blue", Region: "edge-1"}, false},
		"Role":     {"another role", of("blue", "keystone:reader"), nf.Scope{Project: "blue", Region: "edge-1"}, false},
		"User":     {"a single user", nf.Identity{Kind: "keystone", Name: "root"}, nf.Scope{Project: "green", Region: "core"}, true},
		"NoToken":  {"a caller whose token has no project, in a scope without one", nf.Identity{Kind: "user", Name: "ann", Groups: []string{"ops"}}, nf.Scope{Project: "default", Region: "core"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := a.Allow(t.Context(), tc.id, nf.ReadInstance, tc.scope); (err == nil) != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestKeysOfProjects has one user with tokens of two projects, who sends a request without
// a project under one key: it is a request of each project.
func TestKeysOfProjects(t *testing.T) {
	t.Parallel()
	rules, err := access.New(access.Config{File: written(t, `grants: [{subjects: ["keystone:ann"], role: admin, projects: ["*"], regions: ["*"]}]`)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	h, key := guarded(t, a), nf.RequestKey{Key: "k", Digest: "d"}
	cases := map[string]func(context.Context) error{
		"Upload": func(ctx context.Context) error {
			_, _, err := h.Packages.Upload(ctx, nf.Package{Request: key}, strings.NewReader(""))
			return err
		},
		"Instantiate": func(ctx context.Context) error {
			_, err := h.Instances.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "pkg-a"}, Region: "east", Options: nf.Options{Key: key}})
			return err
		},
	}
	for name, call := range cases {
		clients := map[string]string{}
		for _, project := range []string{"blue", "green", ""} {
			if err := call(nf.WithIdentity(t.Context(), nf.Identity{Kind: "keystone", Name: "ann", Project: project})); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if other, taken := clients[h.world.client]; taken {
				t.Errorf("%s: the key in project %q is that of %q, as in project %q", name, project, h.world.client, other)
			}
			clients[h.world.client] = project
		}
		if _, kept := clients["keystone:ann"]; !kept {
			t.Errorf("%s: a token without a project has another client than before: %v", name, clients)
		}
	}
}

// written writes access rules to a file.
func written(t *testing.T, yaml string) string {
	t.Helper()
	return filepath.Join(folder(t, map[string]string{"access.yaml": yaml}), "access.yaml")
}
