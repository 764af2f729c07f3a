package site

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// shortest is the length from which a secret is masked wherever it stands: a
// shorter one is part of too many words.
const shortest = 4

// veil masks the secrets of a site in texts.
type veil struct{ words []string }

// veilOf returns the veil of what is secret of a site, and of the passwords of
// its proxies.
func veilOf(in nf.Site, m nf.SiteMaterial) *veil {
	v := &veil{}
	v.hide(m.PrivateKey, m.Passphrase, m.Password, m.BecomePassword)
	for _, secret := range m.Secrets {
		v.hide(secret)
	}
	for _, option := range m.Options {
		v.hide(nf.Secret(option))
	}
	for _, address := range []string{in.Proxy.HTTP, in.Proxy.HTTPS} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			_, written, _ := strings.Cut(u.User.String(), ":")
			v.hide(nf.Secret(password), nf.Secret(written))
		}
	}
	return v
}

// hide adds secrets, and the lines of those that have several.
func (v *veil) hide(secrets ...nf.Secret) {
	for _, secret := range secrets {
		for line := range bytes.Lines(secret) {
			if word := strings.TrimSpace(string(line)); len(word) >= shortest && !strings.HasPrefix(word, "-----") {
				v.words = append(v.words, word)
			}
		}
	}
	// The longest first: one may be part of another.
	slices.SortFunc(v.words, func(a, b string) int { return len(b) - len(a) })
}

// longest is the length from which a word of a kubeconfig is taken for a key, a
// token or a certificate.
const longest = 32

// hideKubeconfig adds what is secret in a kubeconfig, whatever it is written in.
func (v *veil) hideKubeconfig(kubeconfig nf.Secret) {
	for _, word := range strings.FieldsFunc(string(kubeconfig), func(r rune) bool { return strings.ContainsRune(" \t\n\r\"',{}[]:", r) }) {
		if len(word) >= longest {
			v.hide(nf.Secret(word))
		}
	}
}

// text returns a text without the secrets.
func (v *veil) text(s string) string {
	for _, word := range v.words {
		s = strings.ReplaceAll(s, word, nf.Masked)
	}
	return s
}
