package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	signing "k8s.io/api/certificates/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// authority is an in-process stand-in of an API server that signs client certificates.
// It is strict: it fails the test at a request that a real one would reject. It stores
// the record of a region, too, and is the clock.
type authority struct {
	t   *testing.T
	url string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey

	began  time.Time
	passed atomic.Int64 // nanoseconds, on the clock

	mu      sync.Mutex
	serial  int64
	objects map[string]*signing.CertificateSigningRequest
	journal []string // "POST", "GET", "PUT" of requests for certificates, "review", and "store"
	users   []string // serial numbers of the certificates of requests for /readyz
	record  nf.Access
	fails   error // of the store

	mayApprove bool
	refused    int                                        // status of requests for certificates; 0: they are served
	unsigned   bool                                       // approved requests get no certificate
	revoked    bool                                       // the certificates that it signs are not accepted
	alter      func(*x509.Certificate, *x509.Certificate) // changes what is signed, given the certificate of another user
	at         func(step string, after bool) (stop bool)  // called for each step, before and after its effect
}

var operator = pkix.Name{CommonName: "operator", Organization: []string{"edge", "core"}}

// newAuthority returns a stand-in with the record of a region, whose given certificate
// lives for 100 hours.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{
		t: t, began: time.Now().Truncate(time.Second), objects: map[string]*signing.CertificateSigningRequest{}, mayApprove: true,
		alter: func(*x509.Certificate, *x509.Certificate) {}, at: func(string, bool) bool { return false },
	}
	a.key = mustKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotBefore: a.clock().Add(-time.Hour), NotAfter: a.clock().Add(9999 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.ca, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(a)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	given := mustKey(t)
	a.url = server.URL
	a.record = nf.Access{
		Server: server.URL, Insecure: true, Rotation: &nf.Rotation{Kind: nf.RotateCertificate, Lifetime: 24 * 3600},
		Certificate: a.signed(operator, &given.PublicKey, 100*time.Hour), Key: keyPEM(t, given),
	}
	return a
}

func mustKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) nf.Secret {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// signed returns a certificate in PEM.
func (a *authority) signed(user pkix.Name, key any, life time.Duration) []byte {
	a.serial++
	template := &x509.Certificate{SerialNumber: big.NewInt(100 + a.serial), Subject: user, NotBefore: a.clock(), NotAfter: a.clock().Add(life), PublicKey: key}
	a.alter(template, a.ca)
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca, template.PublicKey, a.key)
	if err != nil {
		a.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// set changes the stand-in.
func (a *authority) set(change func(*authority)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *authority) clock() time.Time { return a.began.Add(time.Duration(a.passed.Load())) }

func (a *authority) pass(d time.Duration) { a.passed.Add(int64(d)) }

// access returns the region's access as it is stored.
func (a *authority) access() nf.Access {
	a.mu.Lock()
	defer a.mu.Unlock()
	return stored(a.t, a.record)
}

// stored returns what a store returns of an access.
func stored(t *testing.T, access nf.Access) (out nf.Access) {
	t.Helper()
	text, err := json.Marshal(access)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Error(err)
	}
	return out
}

// edit is the Renewal of a pool, as the catalog is.
func (a *authority) edit(ctx context.Context, _ string, access nf.Access, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.journal = append(a.journal, "store")
	switch {
	case a.at("store", false):
		return nf.CertificateRenewal{}, ctx.Err()
	case a.fails != nil:
		return nf.CertificateRenewal{}, a.fails
	case !a.record.Equal(access):
		return nf.CertificateRenewal{}, nil
	}
	var r nf.CertificateRenewal
	if a.record.CertificateRenewal != nil {
		r = a.record.CertificateRenewal.Clone()
	}
	edit(&r)
	a.record.CertificateRenewal = &r
	if a.at("store", true) {
		return nf.CertificateRenewal{}, ctx.Err()
	}
	return *stored(a.t, a.record).CertificateRenewal, nil
}

// open returns the cluster of a replica that has just read the record.
func (a *authority) open() *Cluster {
	a.t.Helper()
	c, err := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: a.clock, Renewal: a.edit}).Open("east", a.access())
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// round is one check of a region, as the pool does it.
func round(ctx context.Context, c *Cluster) nf.RegionState {
	c.checkReady(ctx)
	renewCertificate(ctx, c)
	return c.state(time.Hour)
}

// reject sends the answer of an API server to a request that it rejects.
func reject(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": %q, "reason": %q, "code": %d}`, secret, reason, code)
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	leaf := r.TLS.PeerCertificates[0]
	if leaf.CheckSignatureFrom(a.ca) != nil || a.clock().After(leaf.NotAfter) || a.revoked && leaf.SerialNumber.Int64() > 101 {
		reject(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	name, sub, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, signingPath), "/"), "/")
	switch {
	case r.URL.Path == "/readyz":
		a.users = append(a.users, leaf.SerialNumber.String())
		_, _ = io.WriteString(w, "ok")
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		a.step("review", w, func() { _, _ = io.WriteString(w, `{}`) })
	case a.refused != 0:
		reject(w, a.refused, strings.ReplaceAll(http.StatusText(a.refused), " ", ""))
	case r.Method == http.MethodGet && a.objects[name] == nil:
		reject(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet:
		a.step("GET", w, func() { a.send(w, name) })
	case r.Method == http.MethodPost && r.URL.Path == signingPath:
		a.step("POST", w, func() { a.create(w, r) })
	case r.Method == http.MethodPut && sub == "approval":
		a.step("PUT", w, func() { a.approve(w, r, name) })
	default:
		a.t.Errorf("unexpected %s %s", r.Method, r.URL)
	}
}

// step serves a request, unless the test ends the replica before or after it.
func (a *authority) step(name string, w http.ResponseWriter, serve func()) {
	a.journal = append(a.journal, name)
	if a.at(name, false) {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	serve()
	a.at(name, true)
}

func (a *authority) send(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a.objects[name]); err != nil {
		a.t.Error(err)
	}
}

func (a *authority) create(w http.ResponseWriter, r *http.Request) {
	var object signing.CertificateSigningRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&object)
	asked := a.asked(object)
	if life := object.Spec.ExpirationSeconds; err != nil || asked == nil || object.Kind != "CertificateSigningRequest" || object.APIVersion != "certificates.k8s.io/v1" ||
		object.Spec.SignerName != "kubernetes.io/kube-apiserver-client" || life == nil || *life < 600 ||
		!slices.Equal(object.Spec.Usages, []signing.KeyUsage{"client auth", "digital signature"}) || !sameUser(asked.Subject, operator) {
		a.t.Errorf("a malformed request: %s, %v", object.Name, err)
		return
	}
	if a.objects[object.Name] != nil {
		reject(w, http.StatusConflict, "AlreadyExists")
		return
	}
	object.ResourceVersion = "1"
	a.objects[object.Name] = &object
	a.send(w, object.Name)
}

// asked returns the request for a certificate in an object, or nil.
func (a *authority) asked(object signing.CertificateSigningRequest) *x509.CertificateRequest {
	block, _ := pem.Decode(object.Spec.Request)
	if block == nil {
		return nil
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || asked.CheckSignature() != nil {
		return nil
	}
	return asked
}

func (a *authority) approve(w http.ResponseWriter, r *http.Request, name string) {
	var object signing.CertificateSigningRequest
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil || object.Kind != "CertificateSigningRequest" || len(object.Status.Conditions) != 1 {
		a.t.Errorf("a malformed approval: %+v, %v", object, err)
	}
	switch {
	case !a.mayApprove:
		reject(w, http.StatusForbidden, "Forbidden")
	case object.ResourceVersion != a.objects[name].ResourceVersion:
		reject(w, http.StatusConflict, "Conflict")
	default:
		a.answer(name, signing.CertificateApproved)
		a.send(w, name)
	}
}

// answer answers a request as an operator does; the controllers sign approved ones.
func (a *authority) answer(name string, with signing.RequestConditionType) {
	object := a.objects[name]
	object.ResourceVersion += "1"
	object.Status.Conditions = append(object.Status.Conditions, signing.CertificateSigningRequestCondition{Type: with})
	if asked := a.asked(*object); with == signing.CertificateApproved && !a.unsigned {
		object.Status.Certificate = a.signed(asked.Subject, asked.PublicKey, time.Duration(*object.Spec.ExpirationSeconds)*time.Second)
	}
}

// name returns the name of the only request that is there.
func (a *authority) name() (name string) {
	if len(a.objects) != 1 {
		a.t.Errorf("%d requests, want 1", len(a.objects))
	}
	for name = range a.objects {
	}
	return name
}

// count returns how often a step is in the journal.
func (a *authority) count(step string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.journal {
		if s == step {
			n++
		}
	}
	return n
}
