package csar

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"

	"github.com/smallstep/pkcs7"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// digests are the algorithms that a signature may have: those of the SHA-2 family.
var digests = []asn1.ObjectIdentifier{pkcs7.OIDDigestAlgorithmSHA256, pkcs7.OIDDigestAlgorithmSHA384, pkcs7.OIDDigestAlgorithmSHA512}

// VerifySignature verifies the signatures of single artifacts, and that of the manifest, if
// there are any, with the certificate in it or in the CSAR. For a manifest it sets VNFD.Signed. All files must then be listed
// with a hash, except TOSCA.meta, the manifest and the certificate: a file without a hash
// is not signed. With roots, there must be a signature, and one of them must have
// certified its signer; otherwise any certificate is accepted. It returns nf.Invalid, and
// names the file.
func (c *CSAR) VerifySignature(files map[string][]byte, roots *x509.CertPool) error {
	if err := c.verifyArtifacts(files, roots); err != nil {
		return err
	}
	switch {
	case c.Signature != nil:
	case roots == nil:
		return nil
	case c.VNFD.Manifest == "":
		return refuse(MetaFile, "names no manifest, so that the CSAR is not signed")
	default:
		return refuse(c.VNFD.Manifest, "is not signed")
	}
	if block, _ := pem.Decode(c.Signature); block == nil || block.Type != "CMS" {
		return refuse(c.VNFD.Manifest, "its signature is not CMS in PEM")
	}
	if wrong := wrongSignature(c.Signature, c.Certificate, c.Signed, roots); wrong != "" {
		return refuse(c.VNFD.Manifest, wrong)
	}
	if name := c.unsigned(files); name != "" {
		return refuse(name, "is not in the list of "+c.VNFD.Manifest+" with a hash, so that its signature does not include the file")
	}
	if name := c.unsignedPart(); name != "" {
		return refuse(name, "is a part of the VNF descriptor, and must be in the list of "+c.VNFD.Manifest+" with a hash")
	}
	c.VNFD.Signed = true
	return nil
}

func refuse(file, message string) error {
	return nf.E(nf.Invalid, "verify", "the CSAR", nf.Violations{{File: file, Message: message}})
}

// verifyArtifacts verifies the signatures of single artifacts. It warns of artifacts that
// are too large to be in memory: their hashes are verified.
func (c *CSAR) verifyArtifacts(files map[string][]byte, roots *x509.CertPool) error {
	for _, a := range c.VNFD.Artifacts {
		if a.Signature == "" {
			continue
		}
		content := files[a.Path]
		if content == nil {
			c.Warnings = append(c.Warnings, a.Path+": its signature is not verified, because the file is too large")
			continue
		}
		certificate := files[a.Certificate]
		if a.Certificate == "" {
			certificate = c.Certificate
		}
		if wrong := wrongSignature(files[a.Signature], certificate, content, roots); wrong != "" {
			return refuse(a.Path, wrong)
		}
	}
	return nil
}

// wrongSignature returns why a signature, in PEM or DER, is not that of a text by the
// certificate that is in it or given with it, and that one of the roots has certified; nil:
// any certificate. It returns "" for a right one.
func wrongSignature(signature, certificate, text []byte, roots *x509.CertPool) string {
	if block, _ := pem.Decode(signature); block != nil {
		signature = block.Bytes
	}
	message, err := pkcs7.Parse(signature)
	if err != nil || len(message.Signers) == 0 {
		return "its signature is not signed data of CMS"
	}
	for _, signer := range message.Signers {
		if !slices.ContainsFunc(digests, signer.DigestAlgorithm.Algorithm.Equal) {
			return "its signature must have a digest of SHA-256, SHA-384 or SHA-512"
		}
	}
	message.Certificates = append(message.Certificates, certificates(certificate)...)
	switch {
	case !signs(message, text, nil):
		return "its signature is not that of its text and of the certificate in the CSAR"
	case roots != nil && !signs(message, text, roots):
		return "the certificate of its signature is not valid, or not of an authority that the operator has configured"
	}
	return ""
}

// signs reports whether a message is the signature of a text, by a signer that one of the
// roots has certified; nil: by any signer. Programs sign the text as
// it is, or with the line ends of mails.
func signs(message *pkcs7.PKCS7, text []byte, roots *x509.CertPool) bool {
	attached := message.Content
	defer func() { message.Content = attached }()
	mail := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	for _, form := range [...][]byte{text, mail} {
		if len(attached) > 0 && !bytes.Equal(attached, form) {
			continue
		}
		if message.Content = form; message.VerifyWithChain(roots) == nil {
			return true
		}
	}
	return false
}

// certificates returns the certificates of a file in PEM. It leaves out what is none.
func certificates(file []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		if found, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, found)
		}
	}
	return out
}

// hashed returns the files that a signature of the manifest includes: those with a hash.
func (c *CSAR) hashed() map[string]bool {
	out := map[string]bool{}
	for _, a := range c.VNFD.Artifacts {
		if a.Hash != "" {
			out[a.Path] = true
		}
	}
	return out
}

// unsignedPart returns the first file of the VNF descriptor that the signature does not
// include, or "". TOSCA.meta is not signed, and names the descriptor and files that need no
// hash. So none of these may be a part of the descriptor.
func (c *CSAR) unsignedPart() string {
	signed := c.hashed()
	for _, name := range c.VNFD.Files {
		if !signed[name] {
			return name
		}
	}
	return ""
}

// unsigned returns the first file that the signature does not include, or "".
func (c *CSAR) unsigned(files map[string][]byte) string {
	signed := c.hashed()
	signed[MetaFile], signed[c.VNFD.Manifest], signed[c.CertificateFile] = true, true, true
	for _, a := range c.VNFD.Artifacts {
		if a.Signature != "" {
			signed[a.Signature], signed[a.Certificate] = true, true // verified by what they are for
		}
	}
	first := ""
	for name := range files {
		if !signed[name] && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
