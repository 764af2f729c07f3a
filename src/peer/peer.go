package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/reload"
)

const (
	connectTime = 10 * time.Second // for a connection with its TLS handshake
	idleTime    = 30 * time.Second
	headerTime  = 2 * time.Minute // until the server responds; A&AI limits itself to 100 s
)

// Files names the files of a server's access. Each may be empty.
type Files struct {
	User        string
	Password    string
	Login       string // the user and the password together, as Config.ParseLogin reads it; instead of the two
	CA          string // certificates in PEM; empty: those of the system
	Certificate string // the client's, in PEM, followed by its chain
	Key         string // of Certificate
}

// Config configures a peer. Name is required.
type Config struct {
	Name   string // such as "A&AI", for messages
	Files  Files
	Clock  func() time.Time // default time.Now
	Logger *slog.Logger     // default: discard

	// ParseLogin reads Files.Login. Its errors do not quote the content.
	ParseLogin func(content []byte) (user string, password nf.Secret, err error)

	// TLS verifies the server if Files names no CA, and has the client's certificate if
	// Files names none. Default: the CAs of the system, and no certificate.
	TLS *tls.Config
}

// Peer is a server that the operator has configured. It is safe for concurrent use.
type Peer struct {
	cfg    Config
	access *reload.Value[access]
}

// access is the content of the files.
type access struct {
	user     string
	password nf.Secret
	tls      *tls.Config
}

// New reads the files. It returns nf.Invalid if they cannot be used.
func New(cfg Config) (*Peer, error) {
	if cfg.Name == "" {
		return nil, errors.New("cannot configure a peer: Name is required")
	}
	if (cfg.Files.Certificate == "") != (cfg.Files.Key == "") {
		return nil, nf.E(nf.Invalid, "use", "the access to "+cfg.Name, errors.New("the certificate and its key must be set together"))
	}
	value, err := reload.New(reload.Config[access]{
		What: "the access to " + cfg.Name, Clock: cfg.Clock, Logger: cfg.Logger,
		Load: func(read func(name string) ([]byte, error)) (access, error) { return cfg.load(read) },
	})
	if err != nil {
		return nil, err
	}
	return &Peer{cfg: cfg, access: value}, nil
}

func (c Config) load(read func(name string) ([]byte, error)) (access, error) {
	contents := make(map[string][]byte)
	var errs []error
	for _, name := range []string{c.Files.User, c.Files.Password, c.Files.Login, c.Files.CA, c.Files.Certificate, c.Files.Key} {
		if name == "" {
			continue
		}
		content, err := read(name)
		contents[name] = content
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return access{}, fmt.Errorf("cannot read the access to %s: %w", c.Name, err)
	}
	out := access{
		user: strings.TrimSpace(string(contents[c.Files.User])), password: nf.Secret(strings.TrimRight(string(contents[c.Files.Password]), "\r\n")),
		tls: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if c.Files.Login != "" {
		var err error
		if out.user, out.password, err = c.ParseLogin(contents[c.Files.Login]); err != nil {
			return access{}, fmt.Errorf("cannot use %s: %w", c.Files.Login, err)
		}
	}
	if c.TLS != nil {
		out.tls = c.TLS.Clone()
	}
	if c.Files.CA != "" {
		out.tls.InsecureSkipVerify, out.tls.VerifyConnection = false, nil // verify the host name instead
		out.tls.RootCAs = x509.NewCertPool()
		if !out.tls.RootCAs.AppendCertsFromPEM(contents[c.Files.CA]) {
			return access{}, nf.E(nf.Invalid, "use", c.Files.CA, errors.New("the file contains no certificate"))
		}
	}
	if c.Files.Certificate != "" {
		pair, err := tls.X509KeyPair(contents[c.Files.Certificate], contents[c.Files.Key])
		if err != nil {
			return access{}, nf.E(nf.Invalid, "use", c.Files.Certificate, err) // it quotes neither file
		}
		out.tls.Certificates, out.tls.GetClientCertificate = []tls.Certificate{pair}, nil
	}
	return out, nil
}

// Credentials returns the user and the password; both are empty if no file is named.
func (p *Peer) Credentials(ctx context.Context) (user string, password nf.Secret) {
	a := p.access.Current(ctx)
	return a.user, a.password
}

// Roots returns the authorities that verify the server, for protocols other than HTTP; nil:
// those of the system.
func (p *Peer) Roots(ctx context.Context) *x509.CertPool { return p.access.Current(ctx).tls.RootCAs }

// TLS returns how the files verify the server, and the client's certificate. The caller
// must not change it.
func (p *Peer) TLS(ctx context.Context) *tls.Config { return p.access.Current(ctx).tls }

// Transport returns a transport. Each connection uses the files' content at the time of
// its handshake.
func (p *Peer) Transport() *http.Transport {
	dialer := net.Dialer{Timeout: connectTime}
	return &http.Transport{
		DialContext: dialer.DialContext,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			limited, cancel := context.WithTimeout(ctx, connectTime)
			defer cancel()
			config := p.access.Current(ctx).tls.Clone()
			host, _, err := net.SplitHostPort(address)
			config.ServerName = cmp.Or(host, address)
			if err != nil {
				return nil, fmt.Errorf("cannot connect to %s: %w", p.cfg.Name, err)
			}
			return (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(limited, network, address)
		},
		ResponseHeaderTimeout: headerTime,
		IdleConnTimeout:       idleTime,
		MaxIdleConnsPerHost:   4,
	}
}

// Broken returns the number of new versions of the files that were invalid.
func (p *Peer) Broken() int64 { return p.access.Broken() }
