package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

func TestPKI(t *testing.T) {
	keys := pkiIn(t.TempDir())
	if err := keys.ensure(); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(readCertificate(t, keys.caCert))
	cases := map[string]struct {
		reason string
		name   string
		usage  x509.ExtKeyUsage
		want   bool
	}{
		"Loopback":   {"the plane talks to itself on loopback", loopback, x509.ExtKeyUsageServerAuth, true},
		"Service":    {"pods reach the API server by its Service", "kubernetes.default.svc", x509.ExtKeyUsageServerAuth, true},
		"ServiceIP":  {"pods reach the API server by its Service's address", serviceAddress, x509.ExtKeyUsageServerAuth, true},
		"Other":      {"the certificate is for nobody else", "example.org", x509.ExtKeyUsageServerAuth, false},
		"ClientAuth": {"holding the serving key makes nobody a user", loopback, x509.ExtKeyUsageClientAuth, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := readCertificate(t, keys.serving).Verify(x509.VerifyOptions{
				Roots: roots, DNSName: tc.name, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if (err == nil) != tc.want {
				t.Errorf("%s: valid for %s is %t, want %t (%v)", tc.reason, tc.name, err == nil, tc.want, err)
			}
		})
	}
}

func TestPKIAccountKeysMatch(t *testing.T) {
	keys := pkiIn(t.TempDir())
	if err := keys.ensure(); err != nil {
		t.Fatal(err)
	}
	private, err := x509.ParseECPrivateKey(readPEM(t, keys.accountKey))
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(readPEM(t, keys.accountPub))
	if err != nil {
		t.Fatal(err)
	}
	if own, ok := public.(*ecdsa.PublicKey); !ok || !private.PublicKey.Equal(own) {
		t.Error("the API server could not check the tokens that it signs")
	}
}

func TestPKIFiles(t *testing.T) {
	keys := pkiIn(t.TempDir())
	if err := keys.ensure(); err != nil {
		t.Fatal(err)
	}
	before := readFolder(t, filepath.Dir(keys.caCert))
	if err := keys.ensure(); err != nil {
		t.Fatal(err)
	}
	after := readFolder(t, filepath.Dir(keys.caCert))
	if len(before) != 8 || len(after) != len(before) {
		t.Fatalf("%d files, then %d, want 8", len(before), len(after))
	}
	for name, content := range before {
		if !bytes.Equal(content, after[name]) {
			t.Errorf("%s changed: kept objects hold tokens of the first key", name)
		}
		file, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := file.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, mode)
		}
	}
}

func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	contents := make(map[string][]byte)
	for _, name := range names {
		if contents[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return contents
}

func readPEM(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("%s is not PEM", path)
	}
	return block.Bytes
}

func readCertificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(readPEM(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
