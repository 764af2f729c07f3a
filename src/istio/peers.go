package istio

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

const (
	scheme  = "spiffe://"
	maxID   = 2048 // bytes, as the SPIFFE specification says
	maxHost = 255  // bytes
)

// Peers is a list of the SPIFFE ids that may be at the other end of a connection.
type Peers struct {
	exact    map[string]bool
	prefixes []string // each ends in a slash
}

// ParsePeers parses SPIFFE ids, such as spiffe://cluster.local/ns/onap/sa/so.
// An entry that ends in a slash, such as spiffe://cluster.local/ns/onap/, stands
// for all ids below it.
func ParsePeers(list []string) (Peers, error) {
	p := Peers{exact: map[string]bool{}}
	for _, entry := range list {
		id, prefix := strings.CutSuffix(entry, "/")
		if _, err := trustDomain(id); err != nil {
			return Peers{}, fmt.Errorf("%q is not a SPIFFE id, or the beginning of one that ends in a slash: %w", entry, err)
		}
		if prefix {
			p.prefixes = append(p.prefixes, entry)
			continue
		}
		p.exact[id] = true
	}
	return p, nil
}

// allow reports whether the list has an id.
func (p Peers) allow(id string) bool {
	if p.exact[id] {
		return true
	}
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}

// check returns an error if a verified certificate is not that of an allowed peer
// in the trust domain.
func (p Peers) check(leaf *x509.Certificate, domain string) error {
	id, of, err := identityOf(leaf)
	switch {
	case err != nil:
		return err
	case of != domain:
		return fmt.Errorf("the peer %s is not of the trust domain %s", id, domain)
	case !p.allow(id):
		return fmt.Errorf("the peer %s is not in --istio-peers", id)
	}
	return nil
}

// identityOf returns a certificate's only SPIFFE id, and its trust domain.
func identityOf(leaf *x509.Certificate) (id, domain string, err error) {
	if len(leaf.URIs) != 1 {
		return "", "", fmt.Errorf("the certificate has %d URIs; a SPIFFE id is the only one", len(leaf.URIs))
	}
	id = leaf.URIs[0].String()
	if domain, err = trustDomain(id); err != nil {
		return "", "", fmt.Errorf("the certificate's URI is not a SPIFFE id: %w", err)
	}
	return id, domain, nil
}

// trustDomain returns the trust domain of a SPIFFE id. It fails if the text is not
// an id in its only form: without encoded characters, empty segments, port,
// user, query or fragment. So two texts are the same id only if they are equal.
func trustDomain(id string) (string, error) {
	rest, ok := strings.CutPrefix(id, scheme)
	if !ok {
		return "", errors.New("it does not begin with " + scheme)
	}
	if len(id) > maxID {
		return "", fmt.Errorf("it is longer than %d bytes", maxID)
	}
	domain, path, hasPath := strings.Cut(rest, "/")
	if domain == "" || len(domain) > maxHost || domain != strings.ToLower(domain) || !plain(domain) {
		return "", errors.New("its trust domain is not of lower-case letters, digits, dots, hyphens and underscores")
	}
	if !hasPath {
		return domain, nil
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." || !plain(segment) {
			return "", errors.New("a segment of its path is empty, a dot, or not of letters, digits, dots, hyphens and underscores")
		}
	}
	return domain, nil
}

// plain reports whether a text has only characters that a segment may have.
func plain(segment string) bool {
	return strings.IndexFunc(segment, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	}) < 0
}
