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
	"time"

	"github.com/spf13/pflag"
)

const defaultServer = "http://127.0.0.1:9015"

// connection holds the flags for the server and the credentials, and creates the
// client.
type connection struct {
	server                  string
	user                    string
	passwordFile, tokenFile string
	caFile                  string
	certFile, keyFile       string
	insecure                bool
	bare                    []string // names of flags for secrets that were given a value on the command line

	in      input
	getenv  func(key string) string
	retries []time.Duration // see client
}

func (c *connection) define(flags *pflag.FlagSet) {
	flags.StringVar(&c.server, "server", "", "URL of the server (env K8SPLUGIN_SERVER, default "+defaultServer+")")
	flags.StringVar(&c.tokenFile, "token-file", "", "file with a token; - reads standard input (env K8SPLUGIN_TOKEN contains the token itself)")
	flags.StringVar(&c.user, "user", "", "user name (env K8SPLUGIN_USER)")
	flags.StringVar(&c.passwordFile, "password-file", "", "file with the password; - reads standard input (env K8SPLUGIN_PASSWORD contains the password itself)")
	flags.StringVar(&c.caFile, "certificate-authority", "", "CA certificates to verify the server with, instead of the system's")
	flags.StringVar(&c.certFile, "client-certificate", "", "client certificate")
	flags.StringVar(&c.keyFile, "client-key", "", "private key of the client certificate")
	flags.BoolVar(&c.insecure, "insecure-skip-verify", false, "do not verify the server's certificate; for tests only")
	for _, name := range []string{"token", "password"} {
		flags.Var(bareFlag{name, &c.bare}, name, "")
		_ = flags.MarkHidden(name) // fails only for an unknown flag
	}
}

// bareFlag is a flag for a secret that must not be given as an argument. It
// accepts any value, because pflag's error for a rejected value would print it.
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

// client returns a client for the server that the flags or the environment
// name.
func (c *connection) client() (*client, error) {
	if len(c.bare) > 0 {
		name := c.bare[0]
		return nil, usagef("--%s is not allowed: other users of this machine can read the command line; use --%s-file or K8SPLUGIN_%s", name, name, strings.ToUpper(name))
	}
	address := c.either(c.server, "K8SPLUGIN_SERVER")
	if address == "" {
		address = defaultServer
	}
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, usagef("the server %q is not an http or https URL", address)
	}
	if _, secret := base.User.Password(); secret {
		return nil, usagef("the server's URL contains a password; use --user with --password-file, or K8SPLUGIN_PASSWORD")
	}
	authorization, err := c.authorization()
	if err != nil {
		return nil, err
	}
	transport, err := c.transport(base)
	if err != nil {
		return nil, err
	}
	// Do not follow redirects: the target must not get the credentials.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{
		base: base, authorization: authorization, retries: c.retries,
		http: &http.Client{Transport: transport, CheckRedirect: stay},
	}, nil
}

// either returns a flag's value or, if it is empty, the environment variable's.
func (c *connection) either(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return c.getenv(variable)
}

// authorization returns the Authorization header, or "" without credentials.
// Flags override the environment.
func (c *connection) authorization() (string, error) {
	token, user := c.getenv("K8SPLUGIN_TOKEN"), c.either(c.user, "K8SPLUGIN_USER")
	switch {
	case c.tokenFile != "" && (c.user != "" || c.passwordFile != ""):
		return "", usagef("--token-file cannot be combined with --user or --password-file")
	case c.tokenFile != "":
		text, err := c.in.secret(c.tokenFile)
		return "Bearer " + text, err
	case c.user == "" && token != "" && user != "":
		return "", usagef("K8SPLUGIN_TOKEN and K8SPLUGIN_USER are mutually exclusive")
	case c.user == "" && token != "":
		return "Bearer " + token, nil
	case user == "" && c.passwordFile != "":
		return "", usagef("--password-file requires --user or K8SPLUGIN_USER")
	case user == "":
		return "", nil
	}
	password := c.getenv("K8SPLUGIN_PASSWORD")
	if c.passwordFile != "" {
		var err error
		if password, err = c.in.secret(c.passwordFile); err != nil {
			return "", err
		}
	}
	if password == "" {
		return "", usagef("no password for user %q: give --password-file or K8SPLUGIN_PASSWORD", user)
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)), nil
}

// secret reads a file with a secret, without its line end.
func (in input) secret(name string) (string, error) {
	text, err := in.readFile(name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("cannot use %s: it must contain exactly one line", name)
	}
	return secret, nil
}

// transport returns the HTTP transport for the TLS flags.
func (c *connection) transport(base *url.URL) (http.RoundTripper, error) {
	secured := c.caFile != "" || c.certFile != "" || c.keyFile != "" || c.insecure
	standard, ok := http.DefaultTransport.(*http.Transport)
	switch {
	case !secured || !ok:
		return http.DefaultTransport, nil
	case base.Scheme == "http":
		return nil, usagef("cannot use the TLS flags: the server's URL is http://; use https://")
	case (c.certFile == "") != (c.keyFile == ""):
		return nil, usagef("a client certificate requires its key: give both --client-certificate and --client-key")
	}
	own := standard.Clone() // warnInsecure warns if verification is disabled
	own.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.insecure}
	if c.caFile != "" {
		text, err := c.in.readFile(c.caFile)
		if err != nil {
			return nil, err
		}
		own.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !own.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cannot use %s: it contains no certificate", c.caFile)
		}
	}
	if c.certFile != "" {
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificate %s: %w", c.certFile, err)
		}
		own.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return own, nil
}

// warnInsecure warns of a connection that is not secure.
func (c *connection) warnInsecure(to *client, out *printer) {
	if c.insecure {
		out.warn("the certificate of " + to.base.Host + " is not verified")
	}
	if to.base.Scheme == "http" && to.authorization != "" && !loopback(to.base.Hostname()) {
		out.warn("credentials are sent to " + to.base.Host + " unencrypted: the server's URL is not https://")
	}
}

// loopback reports whether a host is a loopback address or localhost.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
