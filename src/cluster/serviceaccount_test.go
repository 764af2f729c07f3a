package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// shelf stores renewed tokens, as the catalog does, and is the clock.
type shelf struct {
	mu    sync.Mutex
	ahead time.Duration
	kept  []nf.RenewedToken
	fails error
	tries int // to store a token
}

func (s *shelf) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *shelf) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *shelf) keep(_ context.Context, _ string, _ nf.Access, token nf.RenewedToken) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.fails == nil {
		s.kept = append(s.kept, token)
	}
	return s.fails
}

func (s *shelf) tokens() []nf.RenewedToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// account creates a service account in the sandbox, and returns an access with a
// token of it.
func account(t *testing.T) nf.Access {
	t.Helper()
	namespace := newNamespace(t)
	full := accessTo(t, clustertest.Kubeconfig(t))
	c := openAt(t, clustertest.Kubeconfig(t))
	mustApply(t, c, "vnf-1", clustertest.Documents(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: k8splugin, namespace: "+namespace+"}\n")...)
	raw, err := c.client.verb(http.MethodPost).AbsPath("/api/v1/namespaces", namespace, "serviceaccounts/k8splugin/token").
		Body([]byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}`)).Do(t.Context()).Raw()
	var first authentication.TokenRequest
	if err == nil {
		err = json.Unmarshal(raw, &first)
	}
	if err != nil {
		t.Fatal(err)
	}
	return nf.Access{
		Server: full.Server, CA: full.CA, Token: nf.Secret(first.Status.Token),
		ServiceAccount: &nf.ServiceAccount{Namespace: namespace, Name: "k8splugin", Lifetime: 600},
	}
}

// allow lets the service account of an access create its own tokens, and returns
// when the API server knows that.
func allow(t *testing.T, access nf.Access) {
	t.Helper()
	const text = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: renew, namespace: NS}
rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [k8splugin], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: renew, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: renew}
subjects: [{kind: ServiceAccount, name: k8splugin, namespace: NS}]
`
	c := openAt(t, clustertest.Kubeconfig(t))
	mustApply(t, c, "vnf-2", clustertest.Documents(t, strings.ReplaceAll(text, "NS", access.ServiceAccount.Namespace))...)
	for {
		_, err := c.transport.requestToken(t.Context(), access, string(access.Token))
		if err == nil {
			return
		}
		if unreachable(err) != nf.ReasonForbidden {
			t.Fatal(err)
		}
	}
}

// TestServiceAccount renews the token of a service account at a real API server,
// whose tokens live for at least 600 seconds: the clock of the pool is moved.
func TestServiceAccount(t *testing.T) {
	access := account(t)
	allow(t, access)
	var s shelf
	var log bytes.Buffer
	cfg := PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: s.now, Keep: s.keep, Logger: slog.New(slog.NewJSONHandler(&log, nil))}
	if _, err := New(cfg).Probe(t.Context(), access); err != nil || len(s.tokens()) != 0 {
		t.Fatalf("a probe uses the token that was given and renews nothing: %v", err)
	}
	open := func(access nf.Access) *Cluster {
		c, err := New(cfg).Open("east", access)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.transport.CloseIdleConnections)
		return c
	}
	check := func(reason string, c *Cluster, renewals int) {
		t.Helper()
		c.checkReady(t.Context())
		state := c.state(cfg.ExpiryWarning)
		state.Since, state.Checked = time.Time{}, time.Time{}
		expires := s.tokens()[len(s.tokens())-1].Expires
		diff(t, reason, nf.RegionState{
			Condition: nf.RegionAvailable, Breaker: nf.BreakerClosed, Credential: nf.Credential{Kind: "service-account", Expires: expires, Rotates: true},
		}, state)
		if n := len(s.tokens()); n != renewals {
			t.Errorf("%s: %d renewals, want %d", reason, n, renewals)
		}
	}
	c := open(access)
	check("the given token is renewed at once", c, 1)
	check("the new one is used", c, 1)
	s.pass(350 * time.Second)
	check("it is renewed after two thirds of its life only", c, 1)
	s.pass(130 * time.Second)
	check("then it is renewed", c, 2)
	access.Renewed = &s.tokens()[1]
	check("a service that starts again uses the token that is stored", open(access), 2)

	first, last := s.tokens()[0], s.tokens()[1]
	life := time.Until(last.Expires)
	if bytes.Equal(first.Token, last.Token) || bytes.Equal(first.Token, access.Token) || life < 500*time.Second || life > 610*time.Second {
		t.Errorf("each renewal gives another token, with the expiry that the API server states: %v", life)
	}
	for _, token := range []nf.Secret{access.Token, first.Token, last.Token} {
		if strings.Contains(log.String()+fmt.Sprintf("%+v", access)+fmt.Sprintf("%#v", first), string(token)) {
			t.Error("a token is shown")
		}
	}
}

// TestServiceAccountWithoutRole says which rule is missing at a real API server,
// and continues with the token that was given.
func TestServiceAccountWithoutRole(t *testing.T) {
	access := account(t)
	var s shelf
	var log bytes.Buffer
	c, err := New(PoolConfig{
		Hosts: outbound.Hosts{}.WithLoopback(), Clock: s.now, Keep: s.keep, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}).Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	defer c.transport.CloseIdleConnections()
	c.checkReady(t.Context())
	state := c.state(time.Hour)
	expires := nf.TokenExpiry(string(access.Token))
	ns := access.ServiceAccount.Namespace
	want := "its service account's token expires on " + expires.Format(time.RFC3339) + " and cannot be renewed: the current token may not create tokens of service account " +
		ns + "/k8splugin; a Role in namespace " + ns +
		` must allow it: apiGroups [""], resources ["serviceaccounts/token"], resourceNames ["k8splugin"], verbs ["create"]`
	diff(t, "the region says what is missing", want, state.Message)
	diff(t, "the region can still be used", nf.RegionExpiring, state.Condition)
	diff(t, "and says until when", nf.Credential{Kind: "service-account", Expires: expires, Rotates: true, Failing: state.Credential.Failing}, state.Credential)
	if n := strings.Count(log.String(), "failed to renew"); n != 1 {
		t.Errorf("the log says it %d times, want once:\n%s", n, log.String())
	}

	allow(t, access)
	s.pass(tokenRetry)
	c.checkReady(t.Context())
	if state := c.state(time.Hour); state.Condition != nf.RegionAvailable || !state.Credential.Failing.IsZero() || len(s.tokens()) != 1 {
		t.Errorf("once the Role is there, the token is renewed: %+v", state)
	}
}

// TestRotatingToken renews a token that names its service account itself, as one of a
// kubeconfig does.
func TestRotatingToken(t *testing.T) {
	access := account(t)
	allow(t, access)
	access.ServiceAccount, access.Rotation = nil, &nf.Rotation{Kind: nf.RotateToken, Lifetime: 600}
	var s shelf
	c, err := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: s.now, Keep: s.keep}).Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	defer c.transport.CloseIdleConnections()
	c.checkReady(t.Context())
	state := c.state(time.Hour)
	if len(s.tokens()) != 1 || state.Condition != nf.RegionAvailable || !state.Credential.Rotates || state.Credential.Kind != "service-account" {
		t.Errorf("%d renewals: %+v", len(s.tokens()), state)
	}
}
