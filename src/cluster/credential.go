package cluster

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// credentialNouns are the names of the credential kinds in messages.
var credentialNouns = map[string]string{"client-certificate": "client certificate", "token": "token", "oidc": "OIDC provider's token", "service-account": "service account's token"}

// credentialOf returns how an access authenticates and when that expires: the
// earliest expiry of a client certificate and its chain, or the "exp" claim of a
// JWT, whose signature is not verified. It prefers the certificate if there is
// also a token, as an API server does.
func credentialOf(a nf.Access) nf.Credential {
	switch {
	case len(a.Certificate) > 0:
		return nf.Credential{Kind: "client-certificate", Expires: chainExpiry(a.Certificate)}
	case a.Account() != nil:
		return nf.Credential{Kind: "service-account"}
	case len(a.Token) > 0:
		return nf.Credential{Kind: "token", Expires: nf.TokenExpiry(string(a.Token))}
	case a.OIDC != nil:
		return nf.Credential{Kind: "oidc"}
	case a.Username != "":
		return nf.Credential{Kind: "basic"}
	}
	return nf.Credential{}
}

// chainExpiry returns the earliest expiry of the certificates of a chain.
func chainExpiry(chain []byte) time.Time {
	var first time.Time
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || cert.NotAfter.Before(first)) {
			first = cert.NotAfter
		}
	}
	return first.UTC()
}
