package tacker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCloudCA registers and changes an OpenStack VIM with a CA.
func TestCloudCA(t *testing.T) {
	t.Parallel()
	ca, _ := pair(t)
	w := newWorld(t)
	cases := map[string]struct {
		reason, ca string
		stored     string
		insecure   bool
		shown      any // nil: nothing
	}{
		"Given":  {"its certificate is verified by the CA", quoted(ca), ca, false, "***"},
		"System": {"or by those of the system", "null", "", false, nil},
		"None":   {"None stands for no verification, as with Kubernetes", `"none"`, "", true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.t = t
			credentials := `{"username": "u", "password": "s3cret", "ssl_ca_cert": ` + tc.ca + `}`
			got := w.vim(tc.reason, "POST", all, body("os-"+name, `type="openstack"`, "auth_cred="+credentials))
			stored := w.region("os-" + name).VIM.OpenStack
			if string(stored.CA) != tc.stored || stored.Insecure != tc.insecure {
				t.Errorf("%s: the CA is %q, insecure: %t", tc.reason, stored.CA, stored.Insecure)
			}
			shown, _ := got["auth_cred"].(map[string]any)
			if !cmp.Equal(shown["ssl_ca_cert"], tc.shown) || got["tls_verified"] == tc.insecure && got["tls_verified"] != nil {
				t.Errorf("%s: the VIM is %v", tc.reason, got)
			}
		})
	}
}
