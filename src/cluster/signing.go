package cluster

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	signing "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	signingPath   = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	signTime      = 2 * time.Minute  // for which an approved request may be without a certificate
	approvalPause = 10 * time.Minute // after a denied approval, before the next attempt
)

// renewCertificate continues the renewal of the region's client certificate by one
// step: it requests a certificate when one is due, approves the request if it may, and
// uses the certificate once the API server accepts it. Each step can be repeated, by
// any replica. It does nothing if the certificate is not renewed, or the region is not
// available.
func renewCertificate(ctx context.Context, c *Cluster) {
	cs := c.transport.certificates
	if cs == nil || cs.edit == nil || !c.transport.health.available() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	err := requester{c.service, cs}.advance(limited)
	if ctx.Err() == nil { // otherwise the service stops: that says nothing about the certificate
		cs.conclude(ctx, err)
	}
	cs.choose()
}

// requester requests the certificates of a region from its API server.
type requester struct {
	client *client
	certs  *clientCertificates
}

func (q requester) advance(ctx context.Context) error {
	cs := q.certs
	request, err := cs.pending(ctx)
	if err != nil || request == nil {
		return err
	}
	object, err := q.signingRequest(ctx, *request)
	if err != nil {
		return err
	}
	switch approved, denied, failed := answersOf(object); {
	case denied:
		return cs.refuse(ctx, *request, "was denied")
	case failed:
		return cs.refuse(ctx, *request, "failed: the signer cannot issue its certificate")
	case !isOurs(object, cs, *request):
		return cs.refuse(ctx, *request, "was replaced by another object of that name")
	case len(object.Status.Certificate) > 0:
		return q.accept(ctx, *request, object.Status.Certificate)
	case !approved:
		return q.approve(ctx, object)
	case cs.clock().Sub(request.Created) > signTime:
		return errors.New("CertificateSigningRequest " + request.Name + " is approved, and has no certificate; the cluster must have a signer for " + signing.KubeAPIServerClientSignerName)
	}
	return nil
}

// answersOf returns the conditions of a request.
func answersOf(object signing.CertificateSigningRequest) (approved, denied, failed bool) {
	has := func(t signing.RequestConditionType) bool {
		return slices.ContainsFunc(object.Status.Conditions, func(c signing.CertificateSigningRequestCondition) bool { return c.Type == t })
	}
	return has(signing.CertificateApproved), has(signing.CertificateDenied), has(signing.CertificateFailed)
}

// newRequest returns a request with a new key.
func newRequest(now time.Time) (nf.CertificateRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nf.CertificateRequest{}, fmt.Errorf("cannot create a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nf.CertificateRequest{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return nf.CertificateRequest{Name: "k8splugin-" + strings.ToLower(rand.Text()), Key: text, Created: now.UTC()}, nil
}

// signerOf returns the key of a request.
func signerOf(r nf.CertificateRequest) (crypto.Signer, error) {
	block, _ := pem.Decode(r.Key)
	if block == nil {
		return nil, errors.New("the key of the request is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("the key of the request cannot be read")
	}
	return signer, nil
}

// signingRequest reads a request, and creates it if the API server does not have it.
func (q requester) signingRequest(ctx context.Context, r nf.CertificateRequest) (signing.CertificateSigningRequest, error) {
	object, err := q.send(ctx, func() *rest.Request { return q.client.verb(http.MethodGet).AbsPath(signingPath, r.Name) })
	if !apierrors.IsNotFound(err) {
		return object, signingError("get", err)
	}
	body, err := q.certs.body(r)
	if err != nil {
		return object, err
	}
	object, err = q.send(ctx, func() *rest.Request { return q.client.verb(http.MethodPost).AbsPath(signingPath).Body(body) })
	if apierrors.IsAlreadyExists(err) { // by another replica, or by a request whose answer was lost
		object, err = q.send(ctx, func() *rest.Request { return q.client.verb(http.MethodGet).AbsPath(signingPath, r.Name) })
	}
	return object, signingError("create", err)
}

func (q requester) send(ctx context.Context, build func() *rest.Request) (out signing.CertificateSigningRequest, err error) {
	_, err = q.client.send(ctx, build, into(&out))
	return out, err
}

// body returns the object of a request.
func (cs *clientCertificates) body(r nf.CertificateRequest) ([]byte, error) {
	key, err := signerOf(r)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: cs.subject}, key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the request: %w", err)
	}
	life := int32(cs.lifetime) // CheckRotation has checked it
	return json.Marshal(&signing.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name},
		Spec: signing.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signing.KubeAPIServerClientSignerName,
			ExpirationSeconds: &life, Usages: []signing.KeyUsage{signing.UsageClientAuth, signing.UsageDigitalSignature},
		},
	})
}

// isOurs reports whether an object requests a certificate for the key and the user of a
// request. Another user may have deleted it and created one of the same name, which the
// service must not approve.
func isOurs(object signing.CertificateSigningRequest, cs *clientCertificates, r nf.CertificateRequest) bool {
	block, _ := pem.Decode(object.Spec.Request)
	key, err := signerOf(r)
	if block == nil || err != nil || object.Spec.SignerName != signing.KubeAPIServerClientSignerName {
		return false
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && asked.CheckSignature() == nil && isPublic(asked.PublicKey, key) && sameUser(asked.Subject, cs.subject)
}

// isPublic reports whether a public key is that of a private key.
func isPublic(public any, key crypto.Signer) bool {
	of, ok := key.Public().(*ecdsa.PublicKey)
	return ok && of.Equal(public)
}

// sameUser reports whether two certificates name the same user with the same groups.
func sameUser(a, b pkix.Name) bool {
	groups := func(n pkix.Name) []string { return slices.Compact(slices.Sorted(slices.Values(n.Organization))) }
	return a.CommonName == b.CommonName && slices.Equal(groups(a), groups(b))
}

// approve approves a request, if the user of the region may.
func (q requester) approve(ctx context.Context, object signing.CertificateSigningRequest) error {
	cs := q.certs
	waiting := errors.New("CertificateSigningRequest " + object.Name + " waits for approval (kubectl certificate approve " + object.Name + ")")
	cs.mu.Lock()
	early := cs.clock().Before(cs.approval)
	cs.mu.Unlock()
	if early {
		return waiting
	}
	object.APIVersion, object.Kind = "certificates.k8s.io/v1", "CertificateSigningRequest"
	object.Status.Conditions = append(object.Status.Conditions, signing.CertificateSigningRequestCondition{
		Type: signing.CertificateApproved, Status: core.ConditionTrue, Reason: "Renewal", Message: "k8splugin renews its own client certificate",
	})
	body, err := json.Marshal(&object)
	if err != nil {
		return err
	}
	_, err = q.send(ctx, func() *rest.Request {
		return q.client.verb(http.MethodPut).AbsPath(signingPath, object.Name, "approval").Body(body)
	})
	switch {
	case apierrors.IsForbidden(err):
		cs.mu.Lock()
		cs.approval = cs.clock().Add(approvalPause)
		cs.mu.Unlock()
		return waiting
	case apierrors.IsConflict(err): // another replica has approved it, or an operator has answered it
		return nil
	}
	return signingError("approve", err)
}

// accept stores an issued certificate if it is the one that was requested, and the API
// server accepts it, so that it does not replace one that works.
func (q requester) accept(ctx context.Context, r nf.CertificateRequest, chain []byte) error {
	cs := q.certs
	leaf, err := leafOf(chain)
	if err != nil {
		return cs.refuse(ctx, r, "has no certificate that can be read")
	}
	issued := nf.IssuedCertificate{Certificate: chain, Key: r.Key, Issued: leaf.NotBefore.UTC(), Expires: chainExpiry(chain)}
	cs.mu.Lock()
	present := cs.stored.Issued
	cs.mu.Unlock()
	_, err = tls.X509KeyPair(chain, r.Key)
	switch {
	case err != nil || !sameUser(leaf.Subject, cs.subject):
		return cs.refuse(ctx, r, "has a certificate of another user or for another key")
	case !cs.clock().Before(issued.Expires):
		return cs.refuse(ctx, r, "has a certificate that has expired")
	case later(present, &issued):
		return cs.refuse(ctx, r, "has a certificate that expires before the present one")
	}
	switch err := q.try(ctx, issued); {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return cs.refuse(ctx, r, "has a certificate that the API server does not accept")
	case err != nil:
		return signingError("check", err)
	}
	return cs.issued(ctx, r, issued)
}

// try sends a request with a certificate, over a connection of its own.
func (q requester) try(ctx context.Context, with nf.IssuedCertificate) error {
	bt := q.client.transport
	cfg := bt.cfg
	cfg.usage, cfg.Renewal, cfg.Logger, cfg.Rejected = bt.usage, nil, slog.New(slog.DiscardHandler), func(string, nf.Access) {}
	trial, err := newCluster(withCertificate(bt.access, with), bt.region, cfg)
	if err != nil {
		return err
	}
	defer trial.transport.close()
	return checkCredentials(ctx, trial.service)
}

// signingError says why a request to the certificates' API failed. It does not quote
// the API server's text.
func signingError(verb string, err error) error {
	if err == nil {
		return nil
	}
	status, refused := errors.AsType[*apierrors.StatusError](err)
	if !refused {
		return fmt.Errorf("cannot %s a CertificateSigningRequest: %w", verb, outbound.Plain(err))
	}
	switch code := int(status.Status().Code); {
	case code == http.StatusUnauthorized:
		return errors.New("the API server does not accept the current certificate (401)")
	case code == http.StatusForbidden:
		return fmt.Errorf("its user may not %s CertificateSigningRequests; a ClusterRole must allow it: "+
			`apiGroups ["certificates.k8s.io"], resources ["certificatesigningrequests"], verbs ["create", "get"]`, verb)
	case code == http.StatusNotFound && verb == "create":
		return errors.New("the API server does not serve certificates.k8s.io/v1")
	default:
		return fmt.Errorf("cannot %s a CertificateSigningRequest: the API server answers %s", verb, statusText(code))
	}
}
