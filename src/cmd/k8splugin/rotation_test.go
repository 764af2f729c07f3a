package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// operators is the sandbox's API for its operator.
type operators struct {
	t *testing.T
	accounts
}

func (o operators) create(group, resource string, object map[string]any) {
	o.t.Helper()
	api := o.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
	made, err := api.Create(o.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		_ = api.Delete(context.WithoutCancel(o.t.Context()), made.GetName(), metav1.DeleteOptions{}) // the cluster may have removed it
	})
}

// certify returns a client certificate of a user and its key, in PEM.
func (o operators) certify(user string) (certificate, key string) {
	o.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		o.t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, private)
	if err != nil {
		o.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		o.t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	o.create("certificates.k8s.io", "certificatesigningrequests", map[string]any{
		"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": map[string]any{"name": user},
		"spec": map[string]any{
			"request": base64.StdEncoding.EncodeToString(encode("CERTIFICATE REQUEST", request)), "signerName": "kubernetes.io/kube-apiserver-client",
			"usages": []any{"client auth", "digital signature"}, "expirationSeconds": int64(7200),
		},
	})
	api := o.Resource(schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"})
	object, err := api.Get(o.t.Context(), user, metav1.GetOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True", "reason": "Test", "message": "for a test"}}}
	if _, err := api.Update(o.t.Context(), object, metav1.UpdateOptions{}, "approval"); err != nil {
		o.t.Fatal(err)
	}
	until(o.t, "the certificate is issued", func() bool {
		object, err := api.Get(o.t.Context(), user, metav1.GetOptions{})
		if err != nil {
			o.t.Fatal(err)
		}
		text, _, _ := unstructured.NestedString(object.Object, "status", "certificate")
		chain, _ := base64.StdEncoding.DecodeString(text)
		certificate = string(chain)
		return certificate != ""
	})
	return certificate, string(encode("PRIVATE KEY", der))
}

// permit lets a user request and approve certificates.
func (o operators) permit(user string) {
	o.t.Helper()
	const group = "rbac.authorization.k8s.io"
	rule := func(resource string, verbs ...any) map[string]any {
		return map[string]any{"apiGroups": []any{"certificates.k8s.io"}, "resources": []any{resource}, "verbs": verbs}
	}
	signer := rule("signers", "approve")
	signer["resourceNames"] = []any{"kubernetes.io/kube-apiserver-client"}
	o.create(group, "clusterroles", map[string]any{
		"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": user},
		"rules": []any{rule("certificatesigningrequests", "create", "get"), rule("certificatesigningrequests/approval", "update"), signer},
	})
	o.create(group, "clusterrolebindings", map[string]any{
		"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": user},
		"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": user},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": user}},
	})
}

// TestCertificateRotates registers a region with a client certificate that rotates. The
// service renews it, and stores it in the region's record.
func TestCertificateRotates(t *testing.T) {
	t.Parallel()
	o := operators{t, newAccounts(t)}
	user := clustertest.Namespace(t)
	certificate, key := o.certify(user)
	o.permit(user)
	full, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	s := startBareService(t)
	access := map[string]any{"server": full.Server, "ca": string(full.CA), "client_certificate": certificate, "client_key": key}
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "rotating", "access": access, "credentials": map[string]any{"rotate": "certificate", "lifetime_seconds": 3600},
	}))
	renewed := func() (nf.Access, bool) {
		r, err := s.parts.catalog.Region(t.Context(), "rotating")
		if err != nil {
			t.Fatal(err)
		}
		now := r.Access.CertificateRenewal
		return r.Access, now != nil && now.Issued != nil && now.Request == nil
	}
	until(t, "the certificate is renewed", func() bool { _, is := renewed(); return is })
	stored, _ := renewed()
	issued := stored.CertificateRenewal.Issued
	until(t, "the region uses it", func() bool {
		var shown wire.Region
		if err := json.Unmarshal([]byte(s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/rotating", nil)).body), &shown); err != nil {
			t.Fatal(err)
		}
		c := shown.Credential
		return c != nil && c.Kind == "client-certificate" && c.Expires.Equal(issued.Expires) && c.Rotates && c.Request == "" && c.Failing.IsZero()
	})
	if issued.Expires.After(issued.Issued.Add(3900 * time.Second)) { // signers set the beginning back by 5 minutes
		t.Errorf("the certificate has another lifetime than the requested one: %+v", issued)
	}
	s.want(http.StatusOK, s.do("PATCH", "/v1/cloud_regions/rotating", map[string]any{"access": access}))
	if r, err := s.parts.catalog.Region(t.Context(), "rotating"); err != nil || r.Access.Rotation != nil || r.Access.CertificateRenewal != nil {
		t.Errorf("an access without credentials does not rotate: %v", err)
	}
}
