package csar_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// signer signs manifests.
type signer struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newSigner(t *testing.T, serial int64) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "Example"}, NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, cert}
}

// sign returns the signature of a text in PEM.
func (s signer) sign(t *testing.T, text string, digest asn1.ObjectIdentifier) string {
	t.Helper()
	data, err := pkcs7.NewSignedData([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	data.SetDigestAlgorithm(digest)
	if err := data.AddSigner(s.cert, s.key, pkcs7.SignerInfoConfig{}); err != nil {
		t.Fatal(err)
	}
	data.Detach()
	der, err := data.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CMS", Bytes: der}))
}

// pool has the certificate of a signer as an authority.
func pool(s signer) *x509.CertPool {
	out := x509.NewCertPool()
	out.AddCert(s.cert)
	return out
}

func TestVerifySignature(t *testing.T) {
	t.Parallel()
	s, other := newSigner(t, 1), newSigner(t, 1)
	sha256 := pkcs7.OIDDigestAlgorithmSHA256
	signed := func(f map[string]string) { f["sample.mf"] += s.sign(t, f["sample.mf"], sha256) }
	cases := map[string]struct {
		reason string
		edit   func(f map[string]string)
		file   string // that is refused; empty: none
		signed bool
		roots  *x509.CertPool
	}{
		"Unsigned": {"a CSAR need not be signed", func(map[string]string) {}, "", false, nil},
		"Required": {"unless the operator requires it", func(map[string]string) {}, "sample.mf", false, pool(s)},
		"NoManifest": {"which takes a manifest", func(f map[string]string) {
			f[csar.MetaFile] = strings.Replace(f[csar.MetaFile], "ETSI-Entry-Manifest: sample.mf\n", "", 1)
		}, csar.MetaFile, false, pool(s)},
		"Signed":    {"a signature of the manifest", signed, "", true, nil},
		"Trusted":   {"by a certificate of an authority", signed, "", true, pool(s)},
		"Untrusted": {"by one of another", signed, "sample.mf", false, pool(other)},
		"Mail": {"of the text with the line ends of mails", func(f map[string]string) {
			f["sample.mf"] += s.sign(t, strings.ReplaceAll(f["sample.mf"], "\n", "\r\n"), sha256)
		}, "", true, nil},
		"Changed": {"a manifest that was changed after that", func(f map[string]string) {
			signed(f)
			f["sample.mf"] = strings.Replace(f["sample.mf"], "Sample VNF", "Other VNF", 1)
		}, "sample.mf", false, nil},
		"OtherKey": {"a certificate of the same name with another key", func(f map[string]string) {
			swapped := signer{other.key, s.cert}
			f["sample.mf"] += swapped.sign(t, f["sample.mf"], sha256)
		}, "sample.mf", false, nil},
		"SHA1":    {"a digest that can be forged", func(f map[string]string) { f["sample.mf"] += s.sign(t, f["sample.mf"], pkcs7.OIDDigestAlgorithmSHA1) }, "sample.mf", false, nil},
		"Garbage": {"a signature that is none", func(f map[string]string) { f["sample.mf"] += "-----BEGIN CMS-----\nAAAA\n-----END CMS-----\n" }, "sample.mf", false, nil},
		"NotPEM":  {"or not in PEM", func(f map[string]string) { f["sample.mf"] += "-----BEGIN CMS-----\n%%%\n-----END CMS-----\n" }, "sample.mf", false, nil},
		"Added":   {"a file that was added after that", func(f map[string]string) { signed(f); f["Files/more.yaml"] = configMap }, "Files/more.yaml", false, nil},
		"Descriptor": {"TOSCA.meta is not signed, and names another descriptor, also as a certificate", func(f map[string]string) {
			meta := f[csar.MetaFile]
			delete(f, csar.MetaFile)
			delete(f, "sample.mf")
			f["sample.mf"] = csartest.Manifest(f)
			signed(f)
			f["Definitions/evil.yaml"] = strings.Replace(f["Definitions/top.yaml"], "Sample VNF", "Evil VNF", 1)
			f[csar.MetaFile] = strings.Replace(meta, "top.yaml", "evil.yaml", 1) + "ETSI-Entry-Certificate: Definitions/evil.yaml\n"
		}, "Definitions/evil.yaml", false, pool(s)},
		"Certificate": {"the certificate is not listed", func(f map[string]string) {
			f[csar.MetaFile] += "ETSI-Entry-Certificate: sample.cert\n"
			delete(f, "sample.mf")
			f["sample.mf"] = csartest.Manifest(f)
			f["sample.cert"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw}))
			signed(f)
		}, "", true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
			tc.edit(files)
			c, err := csar.Read(held(files))
			if err != nil {
				t.Fatal(err)
			}
			err = c.VerifySignature(held(files), tc.roots)
			v := nf.ViolationsOf(err)
			if tc.file == "" && err != nil || tc.file != "" && (nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].File != tc.file) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.file)
			}
			if c.VNFD.Signed != tc.signed {
				t.Errorf("%s: signed %t", tc.reason, c.VNFD.Signed)
			}
		})
	}
}

// TestVerifyArtifactSignature has signatures of single artifacts.
func TestVerifyArtifactSignature(t *testing.T) {
	t.Parallel()
	s, other := newSigner(t, 1), newSigner(t, 2)
	sha256 := pkcs7.OIDDigestAlgorithmSHA256
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw}))
	cases := map[string]struct {
		reason string
		edit   func(f map[string]string)
		file   string // that is refused; empty: none
		roots  *x509.CertPool
	}{
		"Right":     {"the certificate is in the signature", func(map[string]string) {}, "", nil},
		"Named":     {"or in a file", func(f map[string]string) { f["Files/a.cert"] = certificate }, "", nil},
		"Changed":   {"the artifact was changed after that", func(f map[string]string) { f["Files/a.yaml"] += "data: {a: b}\n" }, "Files/a.yaml", nil},
		"Garbage":   {"a signature that is none", func(f map[string]string) { f["Files/a.sig"] = "garbage" }, "Files/a.yaml", nil},
		"Untrusted": {"by a certificate of another authority", func(map[string]string) {}, "Files/a.yaml", pool(other)},
		"SHA1":      {"a digest that can be forged", func(f map[string]string) { f["Files/a.sig"] = s.sign(t, configMap, pkcs7.OIDDigestAlgorithmSHA1) }, "Files/a.yaml", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"Files/a.yaml": configMap, "Files/a.sig": s.sign(t, configMap, sha256)}
			tc.edit(files)
			attributes := "Signature: Files/a.sig\n"
			if _, found := files["Files/a.cert"]; found {
				attributes += "Certificate: Files/a.cert\n"
			}
			files = csartest.Files(files)
			files["sample.mf"] = strings.Replace(files["sample.mf"], "Source: Files/a.yaml\n", "Source: Files/a.yaml\n"+attributes, 1)
			c, err := csar.Read(held(files))
			if err != nil {
				t.Fatal(err)
			}
			err = c.VerifySignature(held(files), tc.roots)
			v := nf.ViolationsOf(err)
			if tc.file == "" && err != nil || tc.file != "" && (nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].File != tc.file) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.file)
			}
		})
	}
	t.Run("Missing", func(t *testing.T) {
		t.Parallel()
		files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
		files["sample.mf"] = strings.Replace(files["sample.mf"], "Source: Files/a.yaml\n", "Source: Files/a.yaml\nSignature: Files/none\n", 1)
		if v := faults(t, files); len(v) != 1 || v[0].File != "Files/none" {
			t.Errorf("a signature that is not in the CSAR: %v", v)
		}
	})
}

// faults returns what is wrong with the structure of a CSAR.
func faults(t *testing.T, files map[string]string) nf.Violations {
	t.Helper()
	_, err := csar.Read(held(files))
	return nf.ViolationsOf(err)
}

// FuzzSignature verifies signatures of any bytes: none is accepted.
func FuzzSignature(f *testing.F) {
	f.Add([]byte{0x30, 0x80, 0, 0})
	f.Add([]byte("\x30\x0f\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\xa0\x02\x30\x00"))
	f.Fuzz(func(t *testing.T, der []byte) {
		c := csar.CSAR{Signed: []byte("text"), Signature: pem.EncodeToMemory(&pem.Block{Type: "CMS", Bytes: der})}
		if err := c.VerifySignature(nil, nil); nf.KindOf(err) != nf.Invalid || err == nil {
			t.Errorf("accepted %x: %v", der, err)
		}
	})
}
