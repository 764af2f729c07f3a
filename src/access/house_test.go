package access_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// house is a world with its guards.
type house struct {
	*access.Guarded

	world *world
	auth  *access.Authenticator
	rules *access.Rules
}

func newHouse(t *testing.T) *house {
	t.Helper()
	rules, err := access.New(access.Config{File: accesstest.File(t)})
	if err != nil {
		t.Fatal(err)
	}
	authorizer, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	h := guarded(t, authorizer)
	h.rules, h.auth = rules, access.NewAuthenticator(rules)
	return h
}

func guarded(t *testing.T, a *access.Authorizer) *house {
	t.Helper()
	w := &world{keyed: map[string]nf.Operation{}, mentioned: "vnf-b-west"}
	g, err := access.NewGuarded(access.GuardedConfig{Authorizer: a, Engine: w, Catalog: w, Audits: w})
	if err != nil {
		t.Fatal(err)
	}
	return &house{Guarded: g, world: w}
}

// as returns the context of a request that a token authenticates.
func (h *house) as(t *testing.T, who string) context.Context {
	t.Helper()
	if who == accesstest.Anonymous {
		return t.Context()
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+accesstest.Token(who))
	id, err := h.auth.Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	return nf.WithIdentity(t.Context(), id)
}

func ids[T any](items []T, id func(T) string) []string {
	var out []string
	for _, item := range items {
		out = append(out, id(item))
	}
	slices.Sort(out)
	return out
}
