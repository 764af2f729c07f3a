package aairegion

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// referenceType is the type of a system that names a kubeconfig.
const referenceType = "kubeconfig-ref"

const (
	secretKey     = "kubeconfig" // file in a folder of that name, as Kubernetes mounts a Secret
	maxKubeconfig = 512 << 10    // bytes
	shortestToken = 16           // bytes; shorter texts are passwords
)

// errReason is why an attribute cannot be used. It quotes no value.
type errReason string

// Error returns the reason.
func (e errReason) Error() string { return string(e) }

func isReference(s aai.System) bool {
	return strings.EqualFold(s.Type, referenceType) || strings.EqualFold(s.SystemType, referenceType)
}

// reference reads the kubeconfig that a system names.
func (r Rules) reference(s aai.System) (Credentials, error) {
	switch {
	case !isReference(s):
		return Credentials{}, errNone
	case r.Secrets == "":
		return Credentials{}, errReason("names a kubeconfig, and --aai-region-secrets is not set")
	case nf.CheckID("", s.RemotePath) != nil:
		return Credentials{}, errReason("is not the name of a kubeconfig: letters, digits, '.', '_' and '-'")
	}
	text, err := secret(r.Secrets, s.RemotePath)
	if err != nil {
		return Credentials{}, err
	}
	access, err := r.Parse(text)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{Access: access, Namespace: s.Namespace, Reference: true}, nil
}

// secret reads a kubeconfig: a file of the folder, or the file "kubeconfig" of a folder in
// it. Links that lead out of the folder are not followed.
func secret(folder, name string) (nf.Secret, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, errReason("cannot be read: --aai-region-secrets is not a folder that can be read")
	}
	defer func() { _ = root.Close() }() // it was only read
	for _, file := range []string{path.Join(name, secretKey), name} {
		text, err := readFile(root, file)
		switch {
		case err == nil && len(text) > maxKubeconfig:
			return nil, errReason(fmt.Sprintf("names a file with more than %d bytes", maxKubeconfig))
		case err == nil:
			return text, nil
		case !errors.Is(err, fs.ErrNotExist) && file == name:
			return nil, errReason("names a file that cannot be read")
		}
	}
	return nil, errReason("names a kubeconfig that is not in --aai-region-secrets")
}

func readFile(root *os.Root, name string) (nf.Secret, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid // opening a pipe would block
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxKubeconfig+1))
}

// kubeconfig reads the kubeconfig that is the password of a system.
func (r Rules) kubeconfig(s aai.System) (Credentials, error) {
	if isReference(s) || decoded(string(s.Password)) == nil {
		return Credentials{}, errNone
	}
	access, err := r.parse(string(s.Password))
	return Credentials{Access: access, Namespace: s.Namespace}, err
}

// token reads the address and the token of a system.
func (r Rules) token(s aai.System) (Credentials, error) {
	if isReference(s) || decoded(string(s.Password)) != nil {
		return Credentials{}, errNone
	}
	access, err := login{
		r, s.URL, string(s.Password), s.CA, s.Insecure, names{"service-url", "password", "ssl-cacert"},
	}.access()
	return Credentials{Access: access, Namespace: s.Namespace}, err
}

// isKubeconfig reports whether a text claims to be a kubeconfig.
func isKubeconfig(text []byte) bool {
	return bytes.Contains(text, []byte("clusters")) && bytes.Contains(text, []byte(":"))
}

// decoded returns the kubeconfig in a text: raw or in base64, which may have line breaks.
// It returns nil if the text has none.
func decoded(text string) nf.Secret {
	if isKubeconfig([]byte(text)) {
		return nf.Secret(text)
	}
	if out := unbase64(text); isKubeconfig(out) {
		return out
	}
	return nil
}

func unbase64(text string) []byte {
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil
	}
	return out
}

func (r Rules) parse(text string) (nf.Access, error) {
	kubeconfig := decoded(text)
	if kubeconfig == nil {
		return nf.Access{}, errReason("is neither a kubeconfig nor one in base64")
	}
	return r.Parse(kubeconfig)
}

// login is an API server with a token.
type login struct {
	rules    Rules
	server   string
	token    string
	ca       string
	insecure bool // the certificate of the server is not verified if there is no CA
	names    names
}

// names are the attributes of a login.
type names struct{ server, token, ca string }

// access returns the access of a login that is complete. A CA is used in any case; without
// one, those of the system are, unless the certificate is not to be verified.
func (l login) access() (nf.Access, error) {
	address, err := url.Parse(l.server)
	switch {
	case l.server == "":
		return nf.Access{}, errReason(l.names.server + " is missing")
	case err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil:
		return nf.Access{}, errReason(l.names.server + " is not an https:// URL of an API server")
	case l.token == "":
		return nf.Access{}, errReason(l.names.token + " is missing")
	case len(l.token) < shortestToken || strings.ContainsFunc(l.token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return nf.Access{}, errReason(l.names.token + " is neither a kubeconfig nor a token, and Kubernetes has no basic authentication")
	}
	out := nf.Access{Server: l.server, Token: nf.Secret(l.token)}
	switch {
	case l.ca != "":
		if out.CA = certificates(l.ca); out.CA == nil {
			return nf.Access{}, errReason(l.names.ca + " has no PEM certificate")
		}
	case l.insecure && !l.rules.Insecure:
		return nf.Access{}, errReason(l.names.ca + " is missing, and --aai-region-insecure does not allow ssl-insecure")
	case l.insecure:
		out.Insecure = true
	}
	if v := out.Validate(nil); len(v) > 0 {
		return nf.Access{}, v
	}
	return out, nil
}

// certificates returns the certificates of a text: PEM, or that in base64.
func certificates(text string) []byte {
	for _, candidate := range [][]byte{[]byte(text), unbase64(text)} {
		if block, _ := pem.Decode(candidate); block != nil {
			return candidate
		}
	}
	return nil
}
