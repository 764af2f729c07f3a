package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of a sandbox's certificates, longer than any sandbox exists.
const validity = 10 * 365 * 24 * time.Hour

// serviceRange holds the addresses of Services. The first is the API server's.
const (
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1"
	servicePort    = "443"
)

// clientName is the name of the API server as a client of kubelets and of APIs
// that pods serve.
const clientName = "kube-apiserver-kubelet-client"

// pki holds the paths of keys and certificates of the control plane.
type pki struct {
	caCert, caKey          string // signs serving certificates and the cluster's certificate requests
	serving, servingKey    string // of all listeners
	client, clientKey      string // of the API server, for kubelets and for APIs of pods
	accountKey, accountPub string // signs and verifies service account tokens
}

func pkiIn(dir string) pki {
	file := func(name string) string { return filepath.Join(dir, "pki", name) }
	return pki{
		caCert: file("ca.crt"), caKey: file("ca.key"),
		serving: file("serving.crt"), servingKey: file("serving.key"),
		client: file("client.crt"), clientKey: file("client.key"),
		accountKey: file("sa.key"), accountPub: file("sa.pub"),
	}
}

// ensure creates the files, unless an earlier run has created all of them.
func (p pki) ensure() error {
	switch _, err := os.Stat(p.accountPub); { // written last
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot look for the sandbox's certificates: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(p.caCert), 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the sandbox's certificates: %w", err)
	}
	ca, caKey, err := p.writeCA()
	if err != nil {
		return fmt.Errorf("cannot make the sandbox's certificate authority: %w", err)
	}
	if err := p.writeServing(ca, caKey); err != nil {
		return fmt.Errorf("cannot make the sandbox's serving certificate: %w", err)
	}
	if err := p.writeClient(ca, caKey); err != nil {
		return fmt.Errorf("cannot make the API server's client certificate: %w", err)
	}
	if err := p.writeAccountKeys(); err != nil {
		return fmt.Errorf("cannot make the sandbox's service account key: %w", err)
	}
	return nil
}

func (p pki) writeCA() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := writeKey(p.caKey)
	if err != nil {
		return nil, nil, err
	}
	template := certificate("k8splugin sandbox")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return ca, key, writePEM(p.caCert, "CERTIFICATE", der)
}

func (p pki) writeServing(ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	template := certificate("kube-apiserver")
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	template.IPAddresses = []net.IP{net.ParseIP(loopback), net.ParseIP(serviceAddress), net.ParseIP(planeAddress)}
	return writeSigned(p.serving, p.servingKey, template, ca, caKey)
}

func (p pki) writeClient(ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	template := certificate(clientName)
	template.Subject.Organization = []string{masters}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return writeSigned(p.client, p.clientKey, template, ca, caKey)
}

// writeSigned writes a new key, and its certificate.
func writeSigned(path, keyPath string, template, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := writeKey(keyPath)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	return writePEM(path, "CERTIFICATE", der)
}

func (p pki) writeAccountKeys() error {
	key, err := writeKey(p.accountKey)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return writePEM(p.accountPub, "PUBLIC KEY", der)
}

// certificate returns a template that is valid from an hour ago, to allow for
// clock differences.
func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
