package main

import (
	"crypto/tls"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/nfvo"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// nfvoSettings are the settings of the connection to an NFVO. Without a URL, everything is
// granted, and nothing is sent.
type nfvoSettings struct {
	URL      string
	TokenURL string
	Service  string // URL of this service in links
	Files    peer.Files
}

// flags defines the flags of the settings.
func (s *nfvoSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.URL, "nfvo", "", "URL of an NFVO, without /grant/v1, that is asked for a grant before an operation on a VNF; if empty, everything is granted")
	flags.StringVar(&s.TokenURL, "nfvo-token-url", "", "token endpoint of the OAuth2 server for the NFVO; if empty, the user and the password are sent to the NFVO itself")
	flags.StringVar(&s.Service, "nfvo-service-url", "", "URL of this service in requests to the NFVO; required with --nfvo")
	flags.StringVar(&s.Files.User, "nfvo-user-file", "", "file with the user, or OAuth2 client id, for the NFVO; like all files for the NFVO, reloaded when it changes")
	flags.StringVar(&s.Files.Password, "nfvo-password-file", "", "file with the password, or OAuth2 client secret, for the NFVO")
	flags.StringVar(&s.Files.CA, "nfvo-ca-file", "", "CA certificates that the NFVO's certificate is verified with (default: those of the system)")
	flags.StringVar(&s.Files.Certificate, "nfvo-cert-file", "", "PEM file with the client certificate for the NFVO and its chain")
	flags.StringVar(&s.Files.Key, "nfvo-key-file", "", "private key of the client certificate for the NFVO")
}

func (s *nfvoSettings) validate(wrong func(name, format string, args ...any)) {
	if s.URL == "" {
		if s.TokenURL != "" {
			wrong("nfvo-token-url", "requires nfvo")
		}
		return
	}
	switch u := serverURL(s.URL); {
	case u == nil || u.User != nil || u.RawQuery != "":
		wrong("nfvo", "must begin with http:// or https://, and contain a host, no user and no query")
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/grant/v1"):
		wrong("nfvo", "must not end with /grant/v1, because the service appends it")
	}
	if s.TokenURL != "" && serverURL(s.TokenURL) == nil {
		wrong("nfvo-token-url", "must begin with http:// or https://, and contain a host")
	}
	if s.TokenURL != "" && (s.Files.User == "" || s.Files.Password == "") {
		wrong("nfvo-token-url", "requires nfvo-user-file and nfvo-password-file")
	}
	if serverURL(s.Service) == nil {
		wrong("nfvo-service-url", "must begin with http:// or https://, and contain a host; links in requests to the NFVO need it")
	}
	if (s.Files.Certificate == "") != (s.Files.Key == "") {
		wrong("nfvo-cert-file, nfvo-key-file", "must be set together")
	}
}

// granter returns what asks the NFVO for grants, or nil if there is none. It sends nothing
// yet. The mesh, which may be nil, applies if no files are set.
func (s nfvoSettings) granter(log *slog.Logger, mesh *tls.Config) (sol003.Granter, error) {
	if s.URL == "" {
		return nil, nil
	}
	server, err := peer.New(peer.Config{Name: "the NFVO", Files: s.Files, TLS: mesh, Logger: log})
	if err != nil {
		return nil, err
	}
	client, err := nfvo.New(nfvo.Config{URL: s.URL, TokenURL: s.TokenURL, Transport: server.Transport(), Credentials: server.Credentials, Callback: s.Service})
	if err != nil {
		return nil, err // not a nil *Client, which would be a non-nil Granter
	}
	return client, nil
}
