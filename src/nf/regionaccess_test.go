package nf_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestAccessValidate(t *testing.T) {
	const server = "https://10.0.0.1:6443"
	token := nf.Secret("s3cret")
	cases := map[string]struct {
		reason string
		access nf.Access
		want   []string // fields
	}{
		"Token":      {"an address and a credential suffice", nf.Access{Server: server, Token: token}, nil},
		"Basic":      {"so do user and password", nf.Access{Server: server, Username: "u", Password: token}, nil},
		"Insecure":   {"the certificate need not be verified", nf.Access{Server: server, Insecure: true, Token: token}, nil},
		"NoServer":   {"there is nowhere to connect to", nf.Access{Token: token}, []string{"access.server"}},
		"Scheme":     {"an API server is reached by HTTP", nf.Access{Server: "ftp://x", Token: token}, []string{"access.server"}},
		"UserInURL":  {"a URL is shown, a password is not", nf.Access{Server: "https://u:s3cret@x", Token: token}, []string{"access.server"}},
		"CA":         {"a CA is PEM", nf.Access{Server: server, CA: []byte("s3cret"), Token: token}, []string{"access.ca"}},
		"CAAndNone":  {"one or the other", nf.Access{Server: server, CA: []byte("x"), Insecure: true, Token: token}, []string{"access.insecure_skip_tls_verify"}},
		"Proxy":      {"a proxy speaks HTTP or SOCKS", nf.Access{Server: server, Proxy: nf.Secret("ftp://s3cret@x"), Token: token}, []string{"access.proxy_url"}},
		"LineBreak":  {"a line break would end the header", nf.Access{Server: server, Token: nf.Secret("a\nb")}, []string{"access.token"}},
		"HalfPair":   {"a certificate needs its key", nf.Access{Server: server, Certificate: []byte("x")}, []string{"access.client_certificate"}},
		"BrokenPair": {"both are PEM", nf.Access{Server: server, Certificate: []byte("x"), Key: token}, []string{"access.client_certificate"}},
		"None":       {"an API server would not know the service", nf.Access{Server: server}, []string{"access.token"}},
		"Anonymous":  {"a kubeconfig may have no credential", nf.Access{Server: server, Kubeconfig: token}, nil},
		"HalfBasic":  {"a user has a password", nf.Access{Server: server, Username: "u"}, []string{"access.username"}},
		"NoUser":     {"a password has a user", nf.Access{Server: server, Password: token}, []string{"access.username"}},
		"Colon":      {"the user would end at the colon", nf.Access{Server: server, Username: "u:v", Password: token}, []string{"access.username"}},
		"TokenAlso":  {"an API server would pick one", nf.Access{Server: server, Token: token, Key: token}, []string{"access.client_certificate", "access.client_certificate"}},
		"UserAlso":   {"likewise", nf.Access{Server: server, Username: "u", Password: token, Key: token}, []string{"access.client_certificate", "access.client_certificate"}},
		"OIDC":       {"a provider vouches", nf.Access{Server: server, OIDC: &nf.OIDC{TokenURL: server, ClientID: "c", Username: "u", Password: token}}, nil},
		"OIDCAlso":   {"an API server would pick one", nf.Access{Server: server, Token: token, OIDC: &nf.OIDC{}}, []string{"access.oidc"}},
		"OIDCFields": {
			"all of it is needed, and the password goes by TLS", nf.Access{Server: server, OIDC: &nf.OIDC{TokenURL: "http://x", CA: []byte("x")}},
			[]string{"access.oidc.token_url", "access.oidc.ca", "access.oidc.client_id", "access.oidc.username", "access.oidc.password"},
		},
		"Account":     {"a token that is renewed", nf.Access{Server: server, Token: token, ServiceAccount: &nf.ServiceAccount{Namespace: "edge", Name: "a.b", Lifetime: 600}}, nil},
		"AccountAlso": {"only a token is renewed", nf.Access{Server: server, Token: token, OIDC: &nf.OIDC{}, ServiceAccount: &nf.ServiceAccount{}}, []string{"access.service_account"}},
		"AccountUser": {"likewise", nf.Access{Server: server, Username: "u", Password: token, ServiceAccount: &nf.ServiceAccount{}}, []string{"access.service_account"}},
		"AccountFields": {
			"the names are part of a path, and the first token is needed", nf.Access{Server: server, ServiceAccount: &nf.ServiceAccount{
				Namespace: "../x", Name: "a/s3cret", Audiences: []string{""}, Lifetime: 599,
			}},
			[]string{"access.token", "access.service_account.namespace", "access.service_account.name", "access.service_account.audiences", "access.service_account.lifetime_seconds"},
		},
		"Two": {"likewise", nf.Access{Server: server, Token: token, Username: "u", Password: token}, []string{"access.token"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range tc.access.Validate(nil) {
				got = append(got, v.Field)
				if strings.Contains(v.Message, "s3cret") {
					t.Errorf("%s: the message shows a secret: %s", tc.reason, v.Message)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

func TestAccessEqual(t *testing.T) {
	full := nf.Access{
		Server: "https://x", CA: []byte("ca"), Token: nf.Secret("t"), Kubeconfig: nf.Secret("kind: Config"),
		Impersonate: &nf.Impersonation{User: "u", Groups: []string{}},
	}
	stored, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	var read nf.Access
	if err := json.Unmarshal(stored, &read); err != nil {
		t.Fatal(err)
	}
	another := full
	another.Token = nf.Secret("u")
	direct := full
	direct.Kubeconfig = nil
	renewed := full
	renewed.Renewed = &nf.RenewedToken{Token: nf.Secret("v")}
	if !full.Equal(renewed) || full.Equal(nf.Access{}) {
		t.Error("a renewed token does not change how the service connects")
	}
	if !full.Equal(read) || full.Equal(another) || !full.Equal(direct) || full.IsZero() || !(nf.Access{}).IsZero() {
		t.Error("an access equals what is stored of it, however it was given, and nothing else")
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "access", nf.Access{Server: "https://x", Token: nf.Secret("s3cret")})
	if text := log.String(); !strings.Contains(text, "https://x") || strings.Contains(text, "czNjcmV0") {
		t.Errorf("the log shows the server only: %s", text)
	}
}
