package cluster

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	signing "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// certificateRules are rules of the user of a client certificate.
const (
	requestRule = `{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get]}`
	approveRule = `{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]}, ` +
		`{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kube-apiserver-client], verbs: [approve]}`
)

// permit gives a user of the sandbox the rules of a ClusterRole.
func permit(t *testing.T, role, rules string, user pkix.Name) {
	t.Helper()
	const text = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ROLE}
rules: [RULES]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ROLE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}]
`
	c := openAt(t, clustertest.Kubeconfig(t))
	us := clustertest.Documents(t, strings.NewReplacer("ROLE", role, "RULES", rules, "USER", user.CommonName).Replace(text))
	mustApply(t, c, role, us...)
	t.Cleanup(func() {
		if _, err := c.Delete(context.WithoutCancel(t.Context()), instance(role), refs(us...)); err != nil {
			t.Error(err)
		}
	})
}

// approveAsOperator approves a request, and returns its certificate.
func approveAsOperator(t *testing.T, name string) []byte {
	t.Helper()
	c := openAt(t, clustertest.Kubeconfig(t))
	q := requester{c.service, &clientCertificates{clock: time.Now}}
	get := func() *rest.Request { return c.service.verb(http.MethodGet).AbsPath(signingPath, name) }
	for {
		object, err := q.send(t.Context(), get)
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Status.Certificate) > 0 {
			return object.Status.Certificate
		}
		if approved, _, _ := answersOf(object); !approved {
			if err := q.approve(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.service.pause(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// certified returns an access to the sandbox with the client certificate of a user.
func certified(t *testing.T, user pkix.Name) nf.Access {
	t.Helper()
	full := accessTo(t, clustertest.Kubeconfig(t))
	key := mustKey(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: user}, key)
	if err != nil {
		t.Fatal(err)
	}
	c := openAt(t, clustertest.Kubeconfig(t))
	body, err := json.Marshal(map[string]any{
		"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": map[string]any{"name": user.CommonName},
		"spec": signing.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signing.KubeAPIServerClientSignerName,
			Usages: []signing.KeyUsage{signing.UsageClientAuth, signing.UsageDigitalSignature}, ExpirationSeconds: new(int32(7200)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	q := requester{client: c.service}
	if _, err := q.send(t.Context(), func() *rest.Request { return c.service.verb(http.MethodPost).AbsPath(signingPath).Body(body) }); err != nil {
		t.Fatal(err)
	}
	return nf.Access{
		Server: full.Server, CA: full.CA, Certificate: approveAsOperator(t, user.CommonName), Key: keyPEM(t, key),
		Rotation: &nf.Rotation{Kind: nf.RotateCertificate, Lifetime: 600},
	}
}

// rounds checks a region until its state is as wanted. Each check is of another replica,
// as one that may not approve a request waits before it tries again.
func rounds(t *testing.T, open func() *Cluster, until func(nf.RegionState) bool) nf.RegionState {
	t.Helper()
	for tries := 0; ; tries++ {
		c := open()
		state := round(t.Context(), c)
		if until(state) {
			return state
		}
		if err := c.service.pause(t.Context(), 100*time.Millisecond); err != nil || tries > 300 {
			t.Fatalf("%v: the region is still %+v", err, state)
		}
	}
}

// TestClientCertificate renews a client certificate at a real API server, whose
// certificates live for at least 600 seconds: the clock of the pool is moved.
func TestClientCertificate(t *testing.T) {
	user := pkix.Name{CommonName: clustertest.Namespace(t), Organization: []string{"edge", "core"}}
	access := certified(t, user)
	a := &authority{t: t, record: access, at: func(string, bool) bool { return false }}
	clock := func() time.Time { return time.Now().Add(time.Duration(a.passed.Load())) }
	cfg := PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: clock, Renewal: a.edit}
	open := func() *Cluster {
		c, err := New(cfg).Open("east", a.access())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.transport.CloseIdleConnections)
		return c
	}
	c := open()
	state := round(t.Context(), c)
	if state.Condition != nf.RegionExpiring || !strings.Contains(state.Message, `resources ["certificatesigningrequests"], verbs ["create", "get"]`) {
		t.Errorf("without rules, the region says what is missing: %+v", state)
	}
	permit(t, user.CommonName, requestRule, user)
	state = rounds(t, open, func(s nf.RegionState) bool { return strings.Contains(s.Message, "waits for approval") })
	pending := state.Credential.Request
	if pending == "" || !strings.Contains(state.Message, "kubectl certificate approve "+pending) {
		t.Errorf("without approval, the region names the request: %+v", state)
	}
	approveAsOperator(t, pending)
	renewed := func(s nf.RegionState) bool { return s.Condition == nf.RegionAvailable && s.Credential.Request == "" }
	rounds(t, open, renewed)
	first := a.access().CertificateRenewal.Issued

	permit(t, user.CommonName+"-approves", approveRule, user)
	a.pass(500 * time.Second)
	rounds(t, open, func(s nf.RegionState) bool {
		return renewed(s) && string(a.access().CertificateRenewal.Issued.Key) != string(first.Key)
	})
	last := a.access().CertificateRenewal.Issued
	leaf, err := leafOf(last.Certificate)
	if err != nil || !sameUser(leaf.Subject, user) {
		t.Errorf("each renewal gives a certificate of the same user: %v", err)
	}
	c = open()
	c.checkReady(t.Context())
	if state := c.state(time.Hour); state.Condition != nf.RegionAvailable || !state.Credential.Expires.Equal(last.Expires) {
		t.Errorf("the API server accepts the last certificate: %+v", state)
	}
}
