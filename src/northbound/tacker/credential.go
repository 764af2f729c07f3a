package tacker

import (
	"crypto/x509"
	"encoding/base64"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// masked replaces secrets in answers, as in Tacker's.
const masked = "***"

// unverified is the certificate that stands for none. It is read in every spelling.
const unverified = "None"

// credentials are how a VIM is reached. Those of Kubernetes have one credential: a
// kubeconfig, or else the first that is there of oidc_token_url, username and
// bearer_token, or a client certificate.
type credentials struct {
	CA           string `json:"ssl_ca_cert,omitempty"`
	Token        string `json:"bearer_token,omitempty"`
	Username     string `json:"username,omitempty"`
	Password     string `json:"password,omitempty"`
	TokenURL     string `json:"oidc_token_url,omitempty"`
	ClientID     string `json:"client_id,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
	Certificate  string `json:"client_certificate,omitempty"`
	Key          string `json:"client_key,omitempty"`
	Kubeconfig   string `json:"kubeconfig,omitempty"`

	UserDomain string `json:"user_domain_name,omitempty"` // of OpenStack only
	Verify     *flag  `json:"cert_verify,omitempty"`      // of OpenStack only
}

// check returns a violation for each field that is a mask, or that VIMs of the type do
// not have.
func (c credentials) check(kind nf.RegionType) nf.Violations {
	var v nf.Violations
	openStack := kind == nf.OpenStackRegion
	for _, f := range []struct {
		name, value string
		strange     bool
	}{
		{"ssl_ca_cert", c.CA, false}, {"bearer_token", c.Token, openStack}, {"username", c.Username, false}, {"password", c.Password, false},
		{"oidc_token_url", c.TokenURL, openStack}, {"client_id", c.ClientID, openStack}, {"client_secret", c.ClientSecret, openStack},
		{"client_certificate", c.Certificate, openStack}, {"client_key", c.Key, openStack}, {"kubeconfig", c.Kubeconfig, openStack},
		{"user_domain_name", c.UserDomain, !openStack},
	} {
		switch {
		case f.value == masked:
			v = append(v, nf.Violation{Field: "auth_cred." + f.name, Message: "is the mask of a hidden value; send the value"})
		case f.value != "" && f.strange:
			v = append(v, nf.Violation{Field: "auth_cred." + f.name, Message: "is not possible for a VIM of the type " + string(kind)})
		}
	}
	if c.Verify != nil && !openStack {
		v = append(v, nf.Violation{Field: "auth_cred.cert_verify", Message: "is not possible for a VIM of the type kubernetes; use ssl_ca_cert"})
	}
	return v
}

// any reports whether there is any credential.
func (c credentials) any() bool {
	return c.Token+c.Username+c.Password+c.TokenURL+c.ClientID+c.ClientSecret+c.Certificate+c.Key+c.Kubeconfig != ""
}

// access returns the access to a Kubernetes cluster. Without a credential it is that
// of present, which is zero for a new VIM; without a CA, it has present's.
func (c credentials) access(server string, present nf.Access) (nf.Access, nf.Violations) {
	if c.Kubeconfig != "" {
		return c.fromKubeconfig(server)
	}
	a := present
	if c.any() {
		a = nf.Access{Server: server, ServerName: present.ServerName, CA: present.CA, Insecure: present.Insecure, Proxy: present.Proxy}
	} else if len(present.Kubeconfig) > 0 {
		return a, nf.Violations{{Field: "auth_cred.ssl_ca_cert", Message: "needs a credential: the present one is a kubeconfig"}}
	}
	var v nf.Violations
	if ca := strings.TrimSpace(c.CA); ca != "" {
		if a.Insecure = strings.EqualFold(ca, unverified); a.Insecure {
			a.CA = nil
		} else if a.CA, v = pemOf("ssl_ca_cert", c.CA); v != nil {
			return a, v
		}
	}
	switch {
	case c.TokenURL != "":
		a.OIDC = &nf.OIDC{
			TokenURL: c.TokenURL, ClientID: c.ClientID, ClientSecret: secret(c.ClientSecret), Username: c.Username, Password: secret(c.Password),
		}
	case c.Username != "" || c.Password != "":
		a.Username, a.Password = c.Username, secret(c.Password)
	case c.Token != "":
		a.Token = secret(strings.TrimSpace(c.Token))
	}
	if a.OIDC != nil { // Tacker verifies both servers with one CA
		provider := *a.OIDC
		provider.CA = a.CA
		a.OIDC = &provider
	}
	return a, c.certificate(&a)
}

// cloudCA sets the CA of an OpenStack VIM, if there is one.
func (c credentials) cloudCA(o *nf.OpenStack) nf.Violations {
	ca := strings.TrimSpace(c.CA)
	switch {
	case ca == "":
		return nil
	case strings.EqualFold(ca, unverified):
		o.CA, o.Insecure = nil, true
		return nil
	}
	blocks, v := pemOf("ssl_ca_cert", c.CA)
	if v == nil && !x509.NewCertPool().AppendCertsFromPEM(blocks) {
		v = nf.Violations{{Field: "auth_cred.ssl_ca_cert", Message: "holds no PEM certificate"}}
	}
	o.CA = blocks
	return v
}

// certificate adds the client certificate to an access.
func (c credentials) certificate(a *nf.Access) nf.Violations {
	if c.Certificate == "" && c.Key == "" {
		return nil
	}
	certificate, v := pemOf("client_certificate", c.Certificate)
	key, wrong := pemOf("client_key", c.Key)
	a.Certificate, a.Key = certificate, key
	return append(v, wrong...)
}

// fromKubeconfig returns the access that a kubeconfig describes, which is a text or
// its base64.
func (c credentials) fromKubeconfig(server string) (nf.Access, nf.Violations) {
	file := c.Kubeconfig
	c.Kubeconfig = ""
	if c.any() || c.CA != "" {
		return nf.Access{}, nf.Violations{{Field: "auth_cred.kubeconfig", Message: "contradicts the other fields of auth_cred; it goes alone"}}
	}
	content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(file))
	if err != nil {
		content = []byte(file)
	}
	return nf.Access{Server: server, Kubeconfig: content}, nil
}

func secret(text string) nf.Secret {
	if text == "" {
		return nil
	}
	return nf.Secret(text)
}

// pemOf returns the PEM blocks of a field.
func pemOf(field, text string) ([]byte, nf.Violations) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	blocks, ok := unwrapped(text)
	if !ok {
		return nil, nf.Violations{{Field: "auth_cred." + field, Message: "is not PEM"}}
	}
	return blocks, nil
}

// accessFields maps the names of the native API to those of Tacker's.
var accessFields = map[string]string{
	"access": "auth_cred", "access.server": "auth_url", "access.ca": "auth_cred.ssl_ca_cert", "access.token": "auth_cred.bearer_token",
	"access.username": "auth_cred.username", "access.password": "auth_cred.password", "access.insecure_skip_tls_verify": "auth_cred.ssl_ca_cert",
	"access.client_certificate": "auth_cred.client_certificate", "access.client_key": "auth_cred.client_key",
	"access.oidc": "auth_cred.oidc_token_url", "access.oidc.token_url": "auth_cred.oidc_token_url", "access.oidc.ca": "auth_cred.ssl_ca_cert",
	"access.oidc.client_id": "auth_cred.client_id", "access.oidc.username": "auth_cred.username", "access.oidc.password": "auth_cred.password",
	"default_namespace": "vim_project.name", "kubeconfig": "auth_cred.kubeconfig",
}

// fieldOf returns the name of a field of a region in Tacker's API.
func fieldOf(field string) string {
	if name, found := accessFields[field]; found {
		return name
	}
	if name, found := accessFields["access."+field]; found {
		return name
	}
	return field
}

// shown returns the credentials of a region without its secrets.
func shown(r nf.Region) credentials {
	if r.VIM != nil && r.VIM.OpenStack != nil {
		o := r.VIM.OpenStack
		verify := flag(!o.Insecure)
		return credentials{CA: mask(o.CA), Username: o.Username, Password: mask(o.Password), UserDomain: o.UserDomain, Verify: &verify}
	}
	a := r.Access
	c := credentials{CA: mask(a.CA)}
	if a.Insecure {
		c.CA = unverified
	}
	switch {
	case len(a.Kubeconfig) > 0:
		c.Kubeconfig = masked
	case a.OIDC != nil:
		c.TokenURL, c.ClientID, c.ClientSecret = a.OIDC.TokenURL, a.OIDC.ClientID, mask(a.OIDC.ClientSecret)
		c.Username, c.Password = a.OIDC.Username, mask(a.OIDC.Password)
	default:
		c.Token, c.Username, c.Password = mask(a.Token), a.Username, mask(a.Password)
		c.Certificate, c.Key = mask(a.Certificate), mask(a.Key)
	}
	return c
}

// mask returns the mask of a text that is there.
func mask[T ~[]byte](text T) string {
	if len(text) == 0 {
		return ""
	}
	return masked
}
