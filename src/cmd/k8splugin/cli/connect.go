package cli

import (
	"cmp"
	"context"
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
	context string
	flags   endpoint
	bare    []string // names of flags for secrets that were given a value on the command line

	in      input
	getenv  func(key string) string
	now     func() time.Time
	retries []time.Duration // see client
}

// endpoint is a server, and how to connect and to authenticate to it.
type endpoint struct {
	server                  string
	user                    string
	passwordFile, tokenFile string
	caFile                  string
	certFile, keyFile       string
	insecure                bool

	token, password string // of the environment
	login           *login // of a context
}

func (c *connection) define(flags *pflag.FlagSet) {
	f := &c.flags
	flags.StringVar(&c.context, "context", "", "context of the configuration file (env K8SPLUGIN_CONTEXT)")
	flags.StringVar(&f.server, "server", "", "URL of the server (env K8SPLUGIN_SERVER, default "+defaultServer+")")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with a token; - reads standard input (env K8SPLUGIN_TOKEN contains the token itself)")
	flags.StringVar(&f.user, "user", "", "user name (env K8SPLUGIN_USER)")
	flags.StringVar(&f.passwordFile, "password-file", "", "file with the password; - reads standard input (env K8SPLUGIN_PASSWORD contains the password itself)")
	flags.StringVar(&f.caFile, "certificate-authority", "", "CA certificates to verify the server with, instead of the system's")
	flags.StringVar(&f.certFile, "client-certificate", "", "client certificate")
	flags.StringVar(&f.keyFile, "client-key", "", "private key of the client certificate")
	flags.BoolVar(&f.insecure, "insecure-skip-verify", false, "do not verify the server's certificate; for tests only")
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

// client returns a client for the server that the flags, the environment or a context
// name.
func (c *connection) client(ctx context.Context) (*client, error) {
	e, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	base, err := parseServer(cmp.Or(e.server, defaultServer))
	if err != nil {
		return nil, err
	}
	transport, err := c.transport(e, base)
	if err != nil {
		return nil, err
	}
	authorization, err := c.authorization(ctx, e)
	if err != nil {
		return nil, err
	}
	// Do not follow redirects: the target must not get the credentials.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{
		base: base, authorization: authorization, retries: c.retries, insecure: e.insecure,
		http: &http.Client{Transport: transport, CheckRedirect: stay},
	}, nil
}

// parseServer parses the URL of a server. Without a scheme it is https, or http for a
// loopback address. A path /v1 is that of the API, and not of the server.
func parseServer(address string) (*url.URL, error) {
	given := address
	if !strings.Contains(address, "://") {
		scheme := "https://"
		if u, err := url.Parse("//" + address); err == nil && loopback(u.Hostname()) {
			scheme = "http://"
		}
		address = scheme + address
	}
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Hostname() == "" || base.RawQuery != "" {
		return nil, usagef("the server %q is not an http or https URL", given)
	}
	if _, secret := base.User.Password(); secret {
		return nil, usagef("the server's URL contains a password; use --user with --password-file, or K8SPLUGIN_PASSWORD")
	}
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1")
	return base, nil
}

// endpoint returns the server and the credentials to use. A context that is named
// comes first, then a server that is named, then the current context. The environment
// variables for credentials belong to the server that the environment or a flag names:
// a context's server does not get them.
func (c *connection) endpoint() (endpoint, error) {
	if len(c.bare) > 0 {
		name := c.bare[0]
		return endpoint{}, usagef("--%s is not allowed: other users of this machine can read the command line; use --%s-file or K8SPLUGIN_%s", name, name, strings.ToUpper(name))
	}
	named, server := c.either(c.context, "K8SPLUGIN_CONTEXT"), c.either(c.flags.server, "K8SPLUGIN_SERVER")
	if c.context != "" && c.flags.server != "" {
		return endpoint{}, usagef("--context and --server are mutually exclusive")
	}
	if server != "" && c.context == "" && (c.flags.server != "" || named == "") {
		return c.ofEnvironment(server), nil
	}
	file, err := c.readContexts()
	if err != nil {
		return endpoint{}, err
	}
	if named == "" {
		named = file.Current
	}
	if named == "" {
		return c.ofEnvironment(""), nil
	}
	found, err := file.find(named)
	if err != nil {
		return endpoint{}, err
	}
	return c.flags.over(file.endpoint(*found)), nil
}

// ofEnvironment returns the flags, completed by the environment.
func (c *connection) ofEnvironment(server string) endpoint {
	e := c.flags
	e.server, e.user = server, c.either(e.user, "K8SPLUGIN_USER")
	e.token, e.password = c.getenv("K8SPLUGIN_TOKEN"), c.getenv("K8SPLUGIN_PASSWORD")
	if c.flags.user != "" || c.flags.tokenFile != "" {
		e.token = ""
	}
	return e
}

// over returns an endpoint with the flags instead of its values. Credentials of the
// flags replace all of them.
func (e endpoint) over(below endpoint) endpoint {
	out := below
	out.server = cmp.Or(e.server, below.server)
	out.caFile = cmp.Or(e.caFile, below.caFile)
	out.insecure = e.insecure || below.insecure
	if e.certFile != "" || e.keyFile != "" {
		out.certFile, out.keyFile = e.certFile, e.keyFile
	}
	if e.user != "" || e.passwordFile != "" || e.tokenFile != "" {
		out.user, out.passwordFile, out.tokenFile, out.login = e.user, e.passwordFile, e.tokenFile, nil
	}
	return out
}

// either returns a flag's value or, if it is empty, the environment variable's.
func (c *connection) either(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return c.getenv(variable)
}

// authorization returns the Authorization header, or "" without credentials.
func (c *connection) authorization(ctx context.Context, e endpoint) (string, error) {
	switch {
	case e.tokenFile != "" && (c.flags.user != "" || e.passwordFile != ""):
		return "", usagef("--token-file cannot be combined with --user or --password-file")
	case e.tokenFile != "":
		text, err := c.in.secret(e.tokenFile)
		return "Bearer " + text, err
	case e.login != nil:
		text, err := e.login.token(ctx, c.now)
		return "Bearer " + text, err
	case e.token != "" && e.user != "":
		return "", usagef("K8SPLUGIN_TOKEN and K8SPLUGIN_USER are mutually exclusive")
	case e.token != "":
		return "Bearer " + e.token, nil
	case e.user == "" && e.passwordFile != "":
		return "", usagef("--password-file requires --user or K8SPLUGIN_USER")
	case e.user == "":
		return "", nil
	}
	password := e.password
	if e.passwordFile != "" {
		var err error
		if password, err = c.in.secret(e.passwordFile); err != nil {
			return "", err
		}
	}
	if password == "" {
		return "", usagef("no password for user %q: give --password-file or K8SPLUGIN_PASSWORD", e.user)
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(e.user+":"+password)), nil
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
func (c *connection) transport(e endpoint, base *url.URL) (http.RoundTripper, error) {
	secured := e.caFile != "" || e.certFile != "" || e.keyFile != "" || e.insecure
	standard, ok := http.DefaultTransport.(*http.Transport)
	switch {
	case !secured || !ok:
		return http.DefaultTransport, nil
	case base.Scheme == "http":
		return nil, usagef("cannot use the TLS flags: the server's URL is http://; use https://")
	case (e.certFile == "") != (e.keyFile == ""):
		return nil, usagef("a client certificate requires its key: give both --client-certificate and --client-key")
	}
	own := standard.Clone() // warnInsecure warns if verification is disabled
	own.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: e.insecure}
	if e.caFile != "" {
		text, err := c.in.readFile(e.caFile)
		if err != nil {
			return nil, err
		}
		own.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !own.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cannot use %s: it contains no certificate", e.caFile)
		}
	}
	if e.certFile != "" {
		pair, err := tls.LoadX509KeyPair(e.certFile, e.keyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificate %s: %w", e.certFile, err)
		}
		own.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return own, nil
}

// warnInsecure warns of a connection that is not secure.
func (c *client) warnInsecure(out *printer) {
	if c.insecure {
		out.warn("the certificate of " + c.base.Host + " is not verified")
	}
	if c.base.Scheme == "http" && c.authorization != "" && !loopback(c.base.Hostname()) {
		out.warn("credentials are sent to " + c.base.Host + " unencrypted: the server's URL is not https://")
	}
}

// loopback reports whether a host is a loopback address or localhost.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
