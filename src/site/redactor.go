package site

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// redactor masks the secrets of a site in texts. It is safe for concurrent use.
type redactor struct {
	mu    sync.Mutex
	words []string
	masks nf.Redactor
}

// text returns a text with its secrets masked.
func (r *redactor) text(s string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.masks.Text(s)
}

// newRedactor returns a redactor for a site's secrets and the passwords of its proxies.
func newRedactor(in nf.Site, m nf.SiteSecrets) *redactor {
	secrets := []nf.Secret{m.PrivateKey, m.Passphrase, m.Password, m.BecomePassword}
	secrets = slices.AppendSeq(secrets, maps.Values(m.Secrets))
	for _, own := range m.Hosts {
		secrets = append(secrets, own.PrivateKey, own.Passphrase, own.Password)
	}
	for _, option := range m.Options {
		secrets = append(secrets, nf.Secret(option))
	}
	for _, address := range []string{in.Proxy.HTTP, in.Proxy.HTTPS} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			_, written, _ := strings.Cut(u.User.String(), ":")
			secrets = append(secrets, nf.Secret(password), nf.Secret(written))
		}
	}
	r := &redactor{}
	r.hide(secrets...)
	return r
}

// hide adds secrets, each line separately.
func (r *redactor) hide(secrets ...nf.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		for line := range bytes.Lines(secret) {
			if word := strings.TrimSpace(string(line)); !strings.HasPrefix(word, "-----") {
				r.words = append(r.words, word)
			}
		}
	}
	r.masks = nf.NewRedactor(r.words)
}

// longest is the least length of a word in a kubeconfig that is treated as a
// key, a token or a certificate.
const longest = 32

// hideKubeconfig adds the secrets of a kubeconfig, whatever its format.
func (r *redactor) hideKubeconfig(kubeconfig nf.Secret) {
	var secrets []nf.Secret
	for _, word := range bytes.FieldsFunc(kubeconfig, func(r rune) bool { return strings.ContainsRune(" \t\n\r\"',{}[]:", r) }) {
		if len(word) >= longest {
			secrets = append(secrets, word)
		}
	}
	r.hide(secrets...)
}
