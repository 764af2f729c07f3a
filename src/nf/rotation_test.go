package nf_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// jwt returns a token with claims, whose signature is not one.
func jwt(claims string) nf.Secret {
	return nf.Secret("e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln")
}

// accessOf returns an access with a client certificate of a user.
func accessOf(t *testing.T, user pkix.Name) nf.Access {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: user, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return nf.Access{Server: "https://10.0.0.1:6443", Certificate: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", private)}
}

func TestCheckRotation(t *testing.T) {
	const kind, life = "credentials.rotate", "credentials.lifetime_seconds"
	account := jwt(`{"sub": "system:serviceaccount:edge:k8splugin"}`)
	user := accessOf(t, pkix.Name{CommonName: "operator", Organization: []string{"edge"}})
	both, named := user, nf.Access{Token: nf.Secret("opaque"), ServiceAccount: &nf.ServiceAccount{Namespace: "edge", Name: "a", Lifetime: 700}}
	both.Token = account
	cases := map[string]struct {
		reason   string
		access   nf.Access
		rotation nf.Rotation
		want     []string // fields
	}{
		"Token":           {"the token names its service account", nf.Access{Token: account}, nf.Rotation{Kind: "token", Lifetime: 600}, nil},
		"Named":           {"the access names it", named, nf.Rotation{Kind: "token"}, nil},
		"Certificate":     {"a certificate names its user", user, nf.Rotation{Kind: "certificate", Lifetime: 600}, nil},
		"Kind":            {"nothing else rotates", user, nf.Rotation{Kind: "s3cret"}, []string{kind}},
		"NoKind":          {"likewise", user, nf.Rotation{}, []string{kind}},
		"Opaque":          {"no account can be found", nf.Access{Token: nf.Secret("s3cret")}, nf.Rotation{Kind: "token"}, []string{kind}},
		"UserToken":       {"a token of a user cannot be requested", nf.Access{Token: jwt(`{"sub": "s3cret"}`)}, nf.Rotation{Kind: "token"}, []string{kind}},
		"Path":            {"the names are part of a path", nf.Access{Token: jwt(`{"sub": "system:serviceaccount:edge:../s3cret"}`)}, nf.Rotation{Kind: "token"}, []string{kind}},
		"NoToken":         {"a password is not a token", nf.Access{Username: "u"}, nf.Rotation{Kind: "token"}, []string{kind}},
		"NoCertificate":   {"nor a token a certificate", nf.Access{Token: account}, nf.Rotation{Kind: "certificate"}, []string{kind}},
		"TokenOfBoth":     {"API servers use the certificate", both, nf.Rotation{Kind: "token"}, []string{kind}},
		"BothCertificate": {"a token would hide that the certificate is not accepted", both, nf.Rotation{Kind: "certificate"}, []string{kind}},
		"Masters":         {"API servers refuse it", accessOf(t, pkix.Name{CommonName: "admin", Organization: []string{"a", "system:masters"}}), nf.Rotation{Kind: "certificate"}, []string{kind}},
		"Anonymous":       {"a certificate without a user", accessOf(t, pkix.Name{}), nf.Rotation{Kind: "certificate"}, []string{kind}},
		"Short":           {"API servers issue none", user, nf.Rotation{Kind: "certificate", Lifetime: 599}, []string{life}},
		"Long":            {"nor one that lives longer", user, nf.Rotation{Kind: "certificate", Lifetime: 1 << 31}, []string{life}},
		"LongToken":       {"tokens may", nf.Access{Token: account}, nf.Rotation{Kind: "token", Lifetime: 1 << 32}, nil},
		"TwoLives":        {"one or the other", named, nf.Rotation{Kind: "token", Lifetime: 600}, []string{life}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.access.Rotation = &tc.rotation
			var got []string
			for _, v := range tc.access.CheckRotation() {
				if got = append(got, v.Field); strings.Contains(v.Message, "s3cret") {
					t.Errorf("%s: the message shows a secret: %s", tc.reason, v.Message)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
	user.Rotation = &nf.Rotation{Kind: "none"}
	if v := user.Validate(nil); len(v) != 1 || v[0].Field != kind {
		t.Errorf("an access is valid if its rotation is: %v", v)
	}
}

func TestAccount(t *testing.T) {
	token := jwt(`{"sub": "system:serviceaccount:edge:k8splugin"}`)
	named := &nf.ServiceAccount{Namespace: "core", Name: "a", Lifetime: 700}
	rotation := &nf.Rotation{Kind: nf.RotateToken, Lifetime: 800}
	cases := map[string]struct {
		reason string
		access nf.Access
		want   *nf.ServiceAccount
	}{
		"Static":      {"a token that does not rotate", nf.Access{Token: token}, nil},
		"Token":       {"the token says whose it is", nf.Access{Token: token, Rotation: rotation}, &nf.ServiceAccount{Namespace: "edge", Name: "k8splugin", Lifetime: 800}},
		"Named":       {"the access says it", nf.Access{Token: token, ServiceAccount: named, Rotation: rotation}, named},
		"Certificate": {"certificates have none", nf.Access{Token: token, Rotation: &nf.Rotation{Kind: nf.RotateCertificate}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, tc.access.Account()); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

// TestWithRenewal lists the changes of an access that keep what was renewed.
func TestWithRenewal(t *testing.T) {
	before := accessOf(t, pkix.Name{CommonName: "operator"})
	before.Rotation = &nf.Rotation{Kind: nf.RotateCertificate}
	before.CertificateRenewal = &nf.CertificateRenewal{Request: &nf.CertificateRequest{Name: "csr", Key: nf.Secret("s3cret")}}
	given := before
	given.CertificateRenewal = nil
	longer, off, other := given, given, given
	longer.Rotation = &nf.Rotation{Kind: nf.RotateCertificate, Lifetime: 9999}
	off.Rotation = nil
	other.Server = "https://10.0.0.2:6443"
	for name, tc := range map[string]struct {
		reason string
		to     nf.Access
		want   bool
	}{
		"Same":   {"nothing has changed", given, true},
		"Longer": {"the next certificate has the new lifetime", longer, true},
		"Off":    {"nothing is renewed any longer", off, false},
		"Other":  {"another server knows nothing of it", other, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.to.WithRenewal(before); (got.CertificateRenewal != nil) != tc.want {
				t.Errorf("%s: the renewal is kept: %v", tc.reason, !tc.want)
			}
		})
	}
	if !before.Equal(given) || before.Equal(longer) {
		t.Error("a renewal does not change how the service connects, its rotation does")
	}
}

// TestRenewalIsSecret logs and copies a renewal.
func TestRenewalIsSecret(t *testing.T) {
	r := nf.CertificateRenewal{
		Issued:  &nf.IssuedCertificate{Certificate: []byte("pem"), Key: nf.Secret("s3cret")},
		Request: &nf.CertificateRequest{Name: "csr", Key: nf.Secret("s3cret")}, Refusal: &nf.CertificateRefusal{Name: "old"},
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "issued", *r.Issued, "request", *r.Request)
	if text := log.String(); strings.Contains(text, "czNjcmV0") || strings.Contains(text, "s3cret") || !strings.Contains(text, "csr") {
		t.Errorf("the log shows no key: %s", text)
	}
	other := r.Clone()
	if other.Request == r.Request || other.Issued == r.Issued || other.Refusal == r.Refusal || cmp.Diff(r, other) != "" {
		t.Error("a copy is equal and shares nothing")
	}
	if empty := (nf.CertificateRenewal{}).Clone(); empty != (nf.CertificateRenewal{}) {
		t.Errorf("a copy of nothing: %+v", empty)
	}
}

// FuzzAccount reads the service account of any token.
func FuzzAccount(f *testing.F) {
	f.Add([]byte(jwt(`{"sub": "system:serviceaccount:edge:k8splugin"}`)))
	f.Add([]byte(jwt(`{"sub": "system:serviceaccount:a/b:c"}`)))
	f.Add([]byte(jwt(`{"sub": 1}`)))
	f.Add([]byte("a.b.c"))
	f.Fuzz(func(t *testing.T, token []byte) {
		account := nf.Access{Token: token, Rotation: &nf.Rotation{Kind: nf.RotateToken}}.Account()
		if account == nil {
			return
		}
		if strings.ContainsAny(account.Namespace+account.Name, "/:%?#") || account.Namespace == "" || account.Name == "" {
			t.Errorf("the names of %s are not names of Kubernetes", account)
		}
		if _, err := json.Marshal(account); err != nil {
			t.Error(err)
		}
	})
}
