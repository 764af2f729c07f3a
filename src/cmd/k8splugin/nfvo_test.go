package main

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/peer"
)

// TestNFVOSettings rejects settings that cannot be used.
func TestNFVOSettings(t *testing.T) {
	t.Parallel()
	right := nfvoSettings{URL: "https://nfvo:8443/tenant", TokenURL: "https://nfvo/token", Service: "https://k8splugin:9015", Files: peer.Files{User: "u", Password: "p"}}
	cases := map[string]struct {
		reason string
		edit   func(*nfvoSettings)
		wrong  string // setting; empty: none
	}{
		"right":        {"all is given", func(*nfvoSettings) {}, ""},
		"off":          {"nothing is needed", func(s *nfvoSettings) { *s = nfvoSettings{} }, ""},
		"certificate":  {"a client certificate needs no user", func(s *nfvoSettings) { s.TokenURL, s.Files = "", peer.Files{Certificate: "c", Key: "k"} }, ""},
		"no scheme":    {"a URL is one", func(s *nfvoSettings) { s.URL = "nfvo:8443" }, "nfvo"},
		"password":     {"a URL has no password", func(s *nfvoSettings) { s.URL = "http://u:s3cret@nfvo" }, "nfvo"},
		"whole path":   {"the service appends the path", func(s *nfvoSettings) { s.URL = "http://nfvo/grant/v1/" }, "nfvo"},
		"only tokens":  {"a token server needs an NFVO", func(s *nfvoSettings) { s.URL = "" }, "nfvo-token-url"},
		"token server": {"so is that of tokens", func(s *nfvoSettings) { s.TokenURL = "token" }, "nfvo-token-url"},
		"no secret":    {"a client has a secret", func(s *nfvoSettings) { s.Files.Password = "" }, "nfvo-token-url"},
		"no links":     {"a request has links", func(s *nfvoSettings) { s.Service = "" }, "nfvo-service-url"},
		"no key":       {"a certificate has a key", func(s *nfvoSettings) { s.Files.Certificate = "c" }, "nfvo-cert-file, nfvo-key-file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, got := right, ""
			tc.edit(&s)
			s.validate(func(name, _ string, _ ...any) { got = name })
			if got != tc.wrong {
				t.Errorf("%s: %q is wrong, want %q", tc.reason, got, tc.wrong)
			}
		})
	}
}
