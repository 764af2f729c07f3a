package nf

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"
)

// RotationKind is the credential of an access that the service renews.
type RotationKind string

// The credentials that can be renewed.
const (
	RotateToken       RotationKind = "token"       // of a service account, by a TokenRequest
	RotateCertificate RotationKind = "certificate" // a client certificate, by a CertificateSigningRequest
)

// Rotation says that the service renews the credential of an access, at the API
// server of the region.
type Rotation struct {
	Kind     RotationKind `json:"rotate"`
	Lifetime int64        `json:"lifetime_seconds,omitempty"` // which the API server may change; 0: one hour for a token, one day for a certificate
}

// CertificateRenewal is what is stored of the renewal of a client certificate.
// Only the service sets it.
type CertificateRenewal struct {
	Issued  *IssuedCertificate  `json:"issued,omitempty"`  // the last; nil: none
	Request *CertificateRequest `json:"request,omitempty"` // that is not answered; nil: none
	Refusal *CertificateRefusal `json:"refusal,omitempty"` // of the last request; nil: it was granted
}

// IssuedCertificate is a client certificate that an API server issued.
type IssuedCertificate struct {
	Certificate []byte    `json:"certificate"` // PEM, and its chain
	Key         Secret    `json:"key"`         // PEM
	Issued      time.Time `json:"issued"`
	Expires     time.Time `json:"expires_at"`
}

// LogValue logs only the expiry: a JSON log would show the key.
func (c IssuedCertificate) LogValue() slog.Value { return slog.TimeValue(c.Expires) }

// CertificateRequest is a CertificateSigningRequest of the service.
type CertificateRequest struct {
	Name    string    `json:"name"` // of the object in the region
	Key     Secret    `json:"key"`  // PEM, of the certificate
	Created time.Time `json:"created"`
}

// LogValue logs only the name: a JSON log would show the key.
func (r CertificateRequest) LogValue() slog.Value { return slog.StringValue(r.Name) }

// CertificateRefusal says that a request was answered without a certificate that
// can be used.
type CertificateRefusal struct {
	Name  string    `json:"name"`
	Cause string    `json:"cause"`
	Time  time.Time `json:"time"`
	Since time.Time `json:"since,omitzero"` // the first one since a certificate was issued; zero: Time
}

// First returns the time of the first refusal since a certificate was issued.
func (r CertificateRefusal) First() time.Time {
	if r.Since.IsZero() {
		return r.Time
	}
	return r.Since
}

// Clone returns a copy that shares no pointer with r.
func (r CertificateRenewal) Clone() CertificateRenewal {
	return CertificateRenewal{cloned(r.Issued), cloned(r.Request), cloned(r.Refusal)}
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// Renews reports whether the service renews the client certificate of the access.
func (a Access) Renews() bool { return a.Rotation != nil && a.Rotation.Kind == RotateCertificate }

// Account returns the service account whose tokens the service requests: the one that
// the access names, or the one of its token if that rotates. It is nil if there is none.
func (a Access) Account() *ServiceAccount {
	if a.Rotation == nil || a.Rotation.Kind != RotateToken {
		return a.ServiceAccount
	}
	account := a.ServiceAccount
	if account == nil {
		account = accountOf(a.Token)
	}
	if account = cloned(account); account != nil {
		account.Lifetime = cmp.Or(account.Lifetime, a.Rotation.Lifetime)
	}
	return account
}

// WithRenewal returns the access with the renewed credential of another one, if both
// were given the same credential for the same server.
func (a Access) WithRenewal(of Access) Access {
	first, second := a, of
	first.Rotation, second.Rotation = nil, nil
	a.Renewed, a.CertificateRenewal = nil, nil
	if !first.Equal(second) {
		return a
	}
	if a.Account() != nil {
		a.Renewed = of.Renewed
	}
	if a.Renews() {
		a.CertificateRenewal = of.CertificateRenewal
	}
	return a
}

// accountOf returns the service account that a token names, or nil. The signature of
// the token is not verified.
func accountOf(token Secret) *ServiceAccount {
	var claims struct {
		Subject string `json:"sub"`
	}
	if !Claims(string(token), &claims) {
		return nil
	}
	rest, is := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	namespace, name, complete := strings.Cut(rest, ":")
	if !is || !complete || CheckNamespace("", namespace) != nil || !isSubdomain(name) {
		return nil
	}
	return &ServiceAccount{Namespace: namespace, Name: name}
}

// Claims decodes the claims of a JWT, whose signature it does not verify, and reports
// whether it could.
func Claims(token string, out any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	return err == nil && json.Unmarshal(payload, out) == nil
}

// TokenExpiry returns the "exp" claim of a JWT; zero for any other token.
func TokenExpiry(token string) time.Time {
	var claims struct {
		Expires float64 `json:"exp"` // seconds, possibly with a fraction
	}
	if !Claims(token, &claims) || claims.Expires <= 0 || claims.Expires > math.MaxUint32 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0).UTC()
}

// shortestLife is the shortest life, in seconds, of a certificate or token that API servers
// issue.
const shortestLife = 600

// mastersGroup is the group for which API servers issue no certificates.
const mastersGroup = "system:masters"

// CheckRotation returns a violation for each field of the rotation that does not fit the
// access. Violations quote no values.
func (a Access) CheckRotation() Violations {
	r := a.Rotation
	if r == nil {
		return nil
	}
	var message string
	longest := int64(longestTokenLife)
	switch r.Kind {
	case RotateToken:
		message = a.tokenRotation()
	case RotateCertificate:
		message, longest = a.certificateRotation(), math.MaxInt32
	default:
		message = "must be token or certificate"
	}
	var v Violations
	if message != "" {
		v = append(v, Violation{Field: "credentials.rotate", Message: message})
	}
	switch {
	case r.Lifetime != 0 && (r.Lifetime < shortestLife || r.Lifetime > longest):
		v = append(v, Violation{Field: "credentials.lifetime_seconds", Message: fmt.Sprintf("must be between %d and %d", shortestLife, longest)})
	case r.Lifetime != 0 && a.ServiceAccount != nil && a.ServiceAccount.Lifetime != 0:
		v = append(v, Violation{Field: "credentials.lifetime_seconds", Message: "contradicts access.service_account.lifetime_seconds"})
	}
	return v
}

// tokenRotation returns why the token of the access cannot be renewed; empty: it can.
func (a Access) tokenRotation() string {
	switch {
	case len(a.Certificate) > 0:
		return "cannot be token: API servers use the client certificate of the access"
	case len(a.Token) == 0:
		return "cannot be token: the access has no token"
	case a.Account() == nil:
		return "cannot be token: the token of the access is not of a service account; give one of kubectl create token, or name the account in access.service_account"
	}
	return ""
}

// certificateRotation returns why the client certificate of the access cannot be renewed;
// empty: it can.
func (a Access) certificateRotation() string {
	block, _ := pem.Decode(a.Certificate)
	if block == nil {
		return "cannot be certificate: the access has no client certificate"
	}
	if len(a.Token) > 0 {
		return "cannot be certificate: the access has a token, too; remove one of them"
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "cannot be certificate: the client certificate of the access cannot be read"
	case leaf.Subject.CommonName == "":
		return "cannot be certificate: the client certificate of the access names no user; its common name is empty"
	case slices.Contains(leaf.Subject.Organization, mastersGroup):
		return "cannot be certificate: the client certificate of the access has the group " + mastersGroup +
			", for which API servers issue no certificate; give the certificate of another user"
	}
	return ""
}
