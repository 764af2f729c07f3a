package tacker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// FuzzCredentials checks that any credentials give an access that is verified unless
// None says otherwise, and are shown without their secrets.
func FuzzCredentials(f *testing.F) {
	f.Add([]byte(`{"bearer_token": "t", "ssl_ca_cert": "None"}`), "https://x")
	f.Add([]byte(`{"oidc_token_url": "https://x", "username": "u", "password": "p", "client_id": "c", "client_secret": "s"}`), "https://x")
	f.Add([]byte(`{"client_certificate": "c", "client_key": "k", "kubeconfig": "a2luZA=="}`), "x")
	f.Fuzz(func(t *testing.T, document []byte, server string) {
		var c credentials
		if json.Unmarshal(document, &c) != nil {
			return
		}
		access, wrong := c.access(server, nf.Access{})
		if access.Insecure && !strings.EqualFold(strings.TrimSpace(c.CA), unverified) {
			t.Errorf("%q is not verified", c.CA)
		}
		if wrong != nil {
			return
		}
		got := shown(nf.Region{Access: access})
		for _, secret := range []string{got.Token, got.Password, got.ClientSecret, got.Key, got.Certificate, got.Kubeconfig} {
			if secret != "" && secret != masked {
				t.Errorf("%q is shown", secret)
			}
		}
		if got.CA != "" && got.CA != masked && got.CA != unverified {
			t.Errorf("%q is shown", got.CA)
		}
		for _, v := range c.check(nf.KubernetesRegion) {
			if v.Field == "" || v.Message == "" {
				t.Errorf("the violation is %+v", v)
			}
		}
	})
}

// FuzzRegionID checks that every name becomes an id, and that names of ids stay.
func FuzzRegionID(f *testing.F) {
	for _, name := range []string{"vim-kubernetes", "vim k8s", "", "ünï", "_", strings.Repeat("é", 200)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id := regionID(name)
		if v := nf.CheckID("id", id); v != nil {
			t.Errorf("%q becomes %q: %v", name, id, v)
		}
		if nf.CheckID("id", name) == nil && id != name || id != regionID(name) {
			t.Errorf("%q becomes %q", name, id)
		}
	})
}
