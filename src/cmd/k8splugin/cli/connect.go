package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

const defaultServer = "http://127.0.0.1:9015"

// connection are the flags that say which server is spoken to, and as whom.
type connection struct {
	server                  string
	user                    string
	passwordFile, tokenFile string
	caFile                  string
	certFile, keyFile       string
	insecure                bool
	bare                    []string // secrets' flags that were given a value on the command line
}

func (c *connection) define(flags *pflag.FlagSet) {
	flags.StringVar(&c.server, "server", "", "URL of the server (env K8SPLUGIN_SERVER, default "+defaultServer+")")
	flags.StringVar(&c.tokenFile, "token-file", "", "file with a token; - reads standard input (or env K8SPLUGIN_TOKEN: the token)")
	flags.StringVar(&c.user, "user", "", "name to log in with (env K8SPLUGIN_USER)")
	flags.StringVar(&c.passwordFile, "password-file", "", "file with the password; - reads standard input (or env K8SPLUGIN_PASSWORD: the password)")
	flags.StringVar(&c.caFile, "ca-file", "", "certificates to trust the server by, instead of the system's")
	flags.StringVar(&c.certFile, "cert-file", "", "certificate to log in with")
	flags.StringVar(&c.keyFile, "key-file", "", "the certificate's key")
	flags.BoolVar(&c.insecure, "insecure-skip-verify", false, "speak to a server whoever it is: for trying things out")
	for _, name := range []string{"token", "password"} {
		flags.Var(bareFlag{name, &c.bare}, name, "")
		_ = flags.MarkHidden(name) // fails for a flag that is not there
	}
}

// bareFlag is a flag that nobody should give. It takes any value, because what
// refuses one on the spot prints it.
type bareFlag struct {
	name  string
	given *[]string
}

func (f bareFlag) String() string { return "" }
func (f bareFlag) Type() string   { return "secret" }

func (f bareFlag) Set(string) error {
	*f.given = append(*f.given, f.name)
	return nil
}

// client returns a client of the server that the flags or the environment name.
func (s *session) client() (*client, error) {
	if len(s.bare) > 0 {
		name := s.bare[0]
		return nil, usagef("--%s is refused: everybody on this machine can read a command line; use --%s-file or K8SPLUGIN_%s", name, name, strings.ToUpper(name))
	}
	address := s.either(s.server, "K8SPLUGIN_SERVER")
	if address == "" {
		address = defaultServer
	}
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, usagef("the server %q is not an http or https URL", address)
	}
	if _, secret := base.User.Password(); secret {
		return nil, usagef("the server's URL holds a password; use --user with --password-file, or K8SPLUGIN_PASSWORD")
	}
	authorization, err := s.authorization()
	if err != nil {
		return nil, err
	}
	transport, err := s.transport(base)
	if err != nil {
		return nil, err
	}
	// A redirect is no answer of this server, and what it leads to must not get
	// the credentials.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{
		base: base, authorization: authorization, retries: s.retries,
		http: &http.Client{Transport: transport, CheckRedirect: stay},
	}, nil
}

// either returns a flag's value or, when it has none, the variable's.
func (s *session) either(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return s.Getenv(variable)
}

// authorization returns the header that says who asks; empty when nobody does.
// Flags come before the environment.
func (s *session) authorization() (string, error) {
	token, user := s.Getenv("K8SPLUGIN_TOKEN"), s.either(s.user, "K8SPLUGIN_USER")
	switch {
	case s.tokenFile != "" && (s.user != "" || s.passwordFile != ""):
		return "", usagef("--token-file and --user exclude each other")
	case s.tokenFile != "":
		text, err := s.secret(s.tokenFile)
		return "Bearer " + text, err
	case s.user == "" && token != "" && user != "":
		return "", usagef("K8SPLUGIN_TOKEN and K8SPLUGIN_USER exclude each other")
	case s.user == "" && token != "":
		return "Bearer " + token, nil
	case user == "" && s.passwordFile != "":
		return "", usagef("--password-file is of use with --user only")
	case user == "":
		return "", nil
	}
	password := s.Getenv("K8SPLUGIN_PASSWORD")
	if s.passwordFile != "" {
		var err error
		if password, err = s.secret(s.passwordFile); err != nil {
			return "", err
		}
	}
	if password == "" {
		return "", usagef("%s has no password: give --password-file or K8SPLUGIN_PASSWORD", user)
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)), nil
}

// secret reads a secret's file; the end of its line is none of it.
func (s *session) secret(name string) (string, error) {
	text, err := s.readFile(name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("cannot use %s: it must hold one line", name)
	}
	return secret, nil
}

// transport returns what the server is reached by.
func (s *session) transport(base *url.URL) (http.RoundTripper, error) {
	secured := s.caFile != "" || s.certFile != "" || s.keyFile != "" || s.insecure
	standard, ok := http.DefaultTransport.(*http.Transport)
	switch {
	case !secured || !ok:
		return http.DefaultTransport, nil
	case base.Scheme == "http":
		return nil, usagef("the server is spoken to by http, which knows no certificates")
	case (s.certFile == "") != (s.keyFile == ""):
		return nil, usagef("a certificate needs its key: give --cert-file and --key-file")
	}
	own := standard.Clone() // caution warns of whoever skips the verification
	own.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.insecure}
	if s.caFile != "" {
		text, err := s.readFile(s.caFile)
		if err != nil {
			return nil, err
		}
		own.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !own.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cannot use %s: it holds no certificate", s.caFile)
		}
	}
	if s.certFile != "" {
		pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificate %s: %w", s.certFile, err)
		}
		own.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return own, nil
}

// caution warns of a connection that others can listen to.
func (s *session) caution(c *client) {
	if s.insecure {
		s.warn("whoever answers at " + c.base.Host + " is believed to be the server")
	}
	if c.base.Scheme == "http" && c.authorization != "" && !loopback(c.base.Hostname()) {
		s.warn("the credentials travel to " + c.base.Host + " for everybody to read: its URL is not https")
	}
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
