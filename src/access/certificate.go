package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// certificate maps client certificates to an identity.
type certificate struct {
	names  func(*x509.Certificate) []string // returns the names of the kind that the pattern matches
	match  pattern
	name   string // of the identity; if empty, the matched name is used
	groups []string
}

func (l *loader) certificates(f file) {
	for i, e := range f.certificates {
		field := fmt.Sprintf("certificates[%d]", i)
		l.checkGroups(e.at, field, e.groups)
		if e.name != "" {
			l.checkName(e.at, field+".name", e.name)
		}
		c := certificate{name: e.name, groups: groups(e.groups)}
		switch {
		case e.uri != "" && e.commonName == "" && e.dns == "":
			c.names, c.match = uris, pattern{e.uri, '/'}
			l.checkURI(e.at, field+".uri", e.uri)
		case e.dns != "" && e.uri == "" && e.commonName == "":
			c.names, c.match = dnsNames, pattern{strings.ToLower(e.dns), '.'}
		case e.commonName != "" && e.uri == "" && e.dns == "":
			c.names, c.match = commonName, pattern{e.commonName, 0}
		default:
			l.document.refuse(e.at, field, "must have one of uri, dns and common_name")
			continue
		}
		l.v.certificates = append(l.v.certificates, c)
	}
}

// checkURI rejects patterns with a wildcard in the scheme or the trust domain.
func (l *loader) checkURI(at *yaml.Node, field, text string) {
	scheme, rest, _ := strings.Cut(text, "://")
	domain, _, _ := strings.Cut(rest, "/")
	if _, err := url.Parse(strings.ReplaceAll(text, "*", "x")); err != nil || scheme == "" || domain == "" || strings.Contains(scheme+domain, "*") {
		l.document.refuse(at, field, "must be a URI such as spiffe://trust-domain/ns/*/sa/*, with * only after the trust domain")
	}
}

// uris returns the certificate's URI SAN. It returns nothing if there are
// several or if the URI has encoded characters, as SPIFFE does not allow them.
func uris(c *x509.Certificate) []string {
	if len(c.URIs) != 1 || strings.Contains(c.URIs[0].String(), "%") {
		return nil
	}
	return []string{c.URIs[0].String()}
}

func dnsNames(c *x509.Certificate) []string {
	out := make([]string, len(c.DNSNames))
	for i, name := range c.DNSNames {
		out[i] = strings.ToLower(name)
	}
	return out
}

func commonName(c *x509.Certificate) []string { return []string{c.Subject.CommonName} }

// proven returns the identity that a pattern assigns to the verified client
// certificate. It returns false if there is no certificate or no pattern
// matches: in a service mesh every workload has a certificate.
func (s *snapshot) proven(r *http.Request, now time.Time) (nf.Identity, bool, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nf.Identity{}, false, nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	for _, c := range s.certificates {
		for _, name := range c.names(leaf) {
			if !c.match.matches(name) {
				continue
			}
			// A connection may outlive the certificate that it was opened with.
			if now.After(leaf.NotAfter) {
				return nf.Identity{}, false, unknown(errors.New("the client certificate has expired"))
			}
			id := nf.Identity{Kind: kindCertificate, Name: name, Groups: c.groups}
			if c.name != "" {
				id.Name = c.name
			}
			if err := checkName(id.Name); err != nil {
				return nf.Identity{}, false, unknown(fmt.Errorf("the name in the client certificate %w", err))
			}
			return id, true, nil
		}
	}
	return nf.Identity{}, false, nil
}
