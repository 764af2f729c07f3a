package nf

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Access is how the service connects to a region's API server: its address, how
// to verify its certificate, and one credential. Without CA and Insecure, the
// certificate must be signed by a CA that the system trusts.
type Access struct {
	Server     string `json:"server"`                // URL of the API server
	ServerName string `json:"server_name,omitempty"` // in the server's certificate; empty: the host of Server
	CA         []byte `json:"ca,omitempty"`          // PEM certificates
	Insecure   bool   `json:"insecure,omitempty"`    // do not verify the server's certificate
	Proxy      Secret `json:"proxy,omitempty"`       // URL, which may contain a password; empty: the operator's proxy

	Token       Secret `json:"token,omitempty"` // bearer token
	Username    string `json:"username,omitempty"`
	Password    Secret `json:"password,omitempty"`
	Certificate []byte `json:"certificate,omitempty"` // PEM client certificate and its chain
	Key         Secret `json:"key,omitempty"`         // PEM private key of Certificate
	OIDC        *OIDC  `json:"oidc,omitempty"`

	// ServiceAccount is the service account of the region for which the service
	// requests new tokens, beginning with Token; nil: Token is not renewed.
	ServiceAccount *ServiceAccount `json:"service_account,omitempty"`
	Renewed        *RenewedToken   `json:"renewed,omitempty"` // last token that was requested; only the service sets it

	// Rotation says that the service renews Token or Certificate; nil: it renews
	// the tokens of ServiceAccount only.
	Rotation           *Rotation           `json:"rotation,omitempty"`
	CertificateRenewal *CertificateRenewal `json:"certificate_renewal,omitempty"`

	Impersonate *Impersonation `json:"impersonate,omitempty"`

	// Kubeconfig is the file from which the other fields were read; empty if
	// they were given directly. It is kept because ONAP's API returns it.
	Kubeconfig Secret `json:"kubeconfig,omitempty"`
}

// OIDC is how the service gets ID tokens for an API server from an OpenID
// Connect provider, by the password grant. The service renews them.
type OIDC struct {
	TokenURL     string `json:"token_url"`
	ClientID     string `json:"client_id"`
	ClientSecret Secret `json:"client_secret,omitempty"`
	Username     string `json:"username"`
	Password     Secret `json:"password"`
	CA           []byte `json:"ca,omitempty"` // PEM certificates, of the provider; empty: the CAs that the system trusts
}

// LogValue logs only the URL: a JSON log would show the secrets.
func (o OIDC) LogValue() slog.Value { return slog.StringValue(o.TokenURL) }

// ServiceAccount is a service account of a region, and the tokens that the
// service requests for it.
type ServiceAccount struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Audiences []string `json:"audiences,omitempty"`        // empty: those of the API server
	Lifetime  int64    `json:"lifetime_seconds,omitempty"` // which the API server may change; 0: one hour
}

// String returns "namespace/name".
func (s ServiceAccount) String() string { return s.Namespace + "/" + s.Name }

// RenewedToken is a token that an API server issued for a service account.
type RenewedToken struct {
	Token   Secret    `json:"token"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires_at"`
}

// LogValue logs only the expiry: a JSON log would show the token.
func (t RenewedToken) LogValue() slog.Value { return slog.TimeValue(t.Expires) }

// Impersonation is the identity that the service assumes at an API server.
type Impersonation struct {
	User   string              `json:"user,omitempty"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}

// LogValue logs only the server's URL: a JSON log would show the secrets.
func (a Access) LogValue() slog.Value { return slog.StringValue(a.Server) }

// Equal reports whether the service connects in the same way with both. It
// ignores Kubeconfig, Renewed and CertificateRenewal.
func (a Access) Equal(b Access) bool {
	a, b = a.connection(), b.connection()
	return reflect.DeepEqual(a, b) || a.Digest() == b.Digest()
}

// connection returns the part of an access that Equal compares.
func (a Access) connection() Access {
	a.Kubeconfig, a.Renewed, a.CertificateRenewal = nil, nil, nil
	return a
}

// Digest returns a digest that two accesses share if they are equal (Equal).
func (a Access) Digest() [sha256.Size]byte {
	text, _ := json.Marshal(a.connection()) // an access has only texts, numbers and lists of them; an empty field equals a missing one
	return sha256.Sum256(text)
}

// IsZero reports whether no field is set.
func (a Access) IsZero() bool {
	// An access with a server needs no digest, which would be made each time one is opened.
	return a.Server == "" && len(a.Kubeconfig) == 0 && a.Equal(Access{})
}

// Validate returns a violation for each field that cannot work. An access must
// have exactly one credential; one that was read from a kubeconfig may have none,
// or a token and a client certificate. The function returns the name of a field
// in the document that the client sent; nil means the names in the native API.
// Violations quote no values.
func (a Access) Validate(name func(field string) string) Violations {
	if name == nil {
		name = func(field string) string { return "access." + field }
	}
	c := accessCheck{name: name}
	c.server(a)
	c.credential(a)
	return append(c.found, a.CheckRotation()...)
}

// accessCheck collects the violations of an Access.
type accessCheck struct {
	name  func(field string) string
	found Violations
}

func (c *accessCheck) add(field, message string) {
	c.found = append(c.found, Violation{Field: c.name(field), Message: message})
}

// short returns the last part of a field's name.
func (c *accessCheck) short(field string) string {
	full := c.name(field)
	return full[strings.LastIndex(full, ".")+1:]
}

func (c *accessCheck) server(a Access) {
	address, err := url.Parse(a.Server)
	switch {
	case a.Server == "":
		c.add("server", "is missing")
	case err != nil || address.Host == "" || !slices.Contains([]string{"http", "https"}, address.Scheme):
		c.add("server", "is not an http or https URL")
	case address.User != nil:
		c.add("server", "holds a user name; use "+c.short("username"))
	}
	switch {
	case a.Insecure && len(a.CA) > 0:
		c.add("insecure_skip_tls_verify", "contradicts "+c.short("ca"))
	case len(a.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(a.CA):
		c.add("ca", "holds no PEM certificate")
	}
	if len(a.Proxy) == 0 {
		return
	}
	proxy, err := url.Parse(string(a.Proxy))
	if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
		c.add("proxy_url", "is not an http, https or socks5 URL")
	}
}

func (c *accessCheck) credential(a Access) {
	switch {
	case (len(a.Certificate) == 0) != (len(a.Key) == 0):
		c.add("client_certificate", "needs "+c.short("client_key")+", and the other way round")
	case len(a.Certificate) > 0:
		if _, err := tls.X509KeyPair(a.Certificate, a.Key); err != nil {
			c.add("client_certificate", "is not a PEM certificate that goes with "+c.short("client_key"))
		}
	}
	if !isToken(a.Token) {
		c.add("token", "holds characters that no token has, such as a line break")
	}
	if len(a.Token) > 0 && a.Username != "" {
		c.add("token", "contradicts "+c.short("username"))
	}
	if len(a.Kubeconfig) == 0 {
		c.single(a)
	}
}

// single adds a violation unless there is exactly one complete credential.
func (c *accessCheck) single(a Access) {
	hasCertificate := len(a.Certificate)+len(a.Key) > 0
	static := len(a.Token) > 0 || a.Username != "" || len(a.Password) > 0 || hasCertificate
	switch {
	case a.ServiceAccount != nil && (a.OIDC != nil || a.Username != "" || len(a.Password) > 0 || hasCertificate):
		c.add("service_account", "contradicts the other credential; it goes with "+c.short("token")+" only")
	case a.ServiceAccount != nil:
		c.serviceAccount(a)
	case a.OIDC != nil && static:
		c.add("oidc", "contradicts the other credential")
	case a.OIDC != nil:
		c.oidc(*a.OIDC)
	case !static:
		c.add("token", "is missing; give one of token, username and password, client_certificate and client_key, oidc")
	case hasCertificate && len(a.Token) > 0:
		c.add("client_certificate", "contradicts token")
	case hasCertificate && a.Username != "":
		c.add("client_certificate", "contradicts username")
	case (a.Username == "") != (len(a.Password) == 0):
		c.add("username", "needs password, and the other way round")
	case strings.Contains(a.Username, ":"):
		c.add("username", "holds a colon, which HTTP's basic authentication cannot send")
	}
}

// longestTokenLife is the longest life, in seconds, of a token that API servers issue.
const longestTokenLife = 1 << 32

func (c *accessCheck) serviceAccount(a Access) {
	sa := a.ServiceAccount
	if len(a.Token) == 0 {
		c.add("token", "is missing; give a token that may create tokens of the service account")
	}
	if CheckNamespace("", sa.Namespace) != nil {
		c.add("service_account.namespace", "is not the name of a namespace")
	}
	if !isSubdomain(sa.Name) {
		c.add("service_account.name", "is not the name of a service account")
	}
	if slices.Contains(sa.Audiences, "") {
		c.add("service_account.audiences", "has an empty element")
	}
	if sa.Lifetime != 0 && (sa.Lifetime < shortestLife || sa.Lifetime > longestTokenLife) {
		c.add("service_account.lifetime_seconds", fmt.Sprintf("must be between %d and %d", shortestLife, longestTokenLife))
	}
}

func (c *accessCheck) oidc(o OIDC) {
	address, err := url.Parse(o.TokenURL)
	switch {
	case err != nil || address.Host == "" || address.Scheme != "https":
		c.add("oidc.token_url", "is not an https URL")
	case address.User != nil:
		c.add("oidc.token_url", "holds a user name; use username")
	}
	if len(o.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(o.CA) {
		c.add("oidc.ca", "holds no PEM certificate")
	}
	for _, f := range []struct{ name, value string }{{"client_id", o.ClientID}, {"username", o.Username}, {"password", string(o.Password)}} {
		if f.value == "" {
			c.add("oidc."+f.name, "is missing")
		}
	}
}

func isToken(text Secret) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
