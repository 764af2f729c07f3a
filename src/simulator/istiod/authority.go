package istiod

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

const (
	rootLife = 10 * 365 * 24 * time.Hour
	skew     = 2 * time.Minute // before now, from which certificates are valid
)

// authority is a certificate that signs others, with its key.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority returns a root, or an intermediate authority of a root.
func newAuthority(name string, now time.Time, of *authority) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{name}}, NotBefore: now.Add(-skew), NotAfter: now.Add(rootLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	a := &authority{key: key}
	signer := a
	if of != nil {
		signer = of
	}
	a.certificate, err = signer.sign(template, key.Public())
	return a, err
}

// sign returns a certificate for a key. An authority without a certificate signs
// itself.
func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// serving returns the certificate of the simulator itself.
func (a *authority) serving(names []string, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		NotBefore: now.Add(-skew), NotAfter: now.Add(rootLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	leaf, err := a.sign(template, key.Public())
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, a.certificate.Raw}, PrivateKey: key}, nil
}

// inPEM returns certificates in PEM.
func inPEM(certificates ...*x509.Certificate) string {
	var out strings.Builder
	for _, c := range certificates {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return out.String()
}
