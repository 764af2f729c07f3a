package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/reload"
)

// TLSConfig names the files of a listener's certificate, all in PEM.
type TLSConfig struct {
	Certificate string // followed by its chain
	Key         string
	ClientCA    string           // authorities of client certificates; empty: client certificates are ignored
	Clock       func() time.Time // default time.Now
	Logger      *slog.Logger     // default: discard
}

// TLS provides a listener's certificate and follows changes of its files. A
// client certificate is optional, but must be valid if sent. TLS is safe for
// concurrent use.
type TLS struct {
	files *reload.Value[certificateFiles]
}

// certificateFiles holds the parsed content of the files.
type certificateFiles struct {
	config  *tls.Config
	expires time.Time
}

// NewTLS reads the files. It fails with nf.Invalid if they cannot be used.
func NewTLS(cfg TLSConfig) (*TLS, error) {
	if cfg.Certificate == "" || cfg.Key == "" {
		return nil, errors.New("cannot serve TLS: Certificate and Key are required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	files, err := reload.New(reload.Config[certificateFiles]{
		What: "the certificate in " + cfg.Certificate, Clock: cfg.Clock, Logger: cfg.Logger,
		Load: func(read func(name string) ([]byte, error)) (certificateFiles, error) { return loadTLS(cfg, read) },
	})
	if err != nil {
		return nil, err
	}
	return &TLS{files: files}, nil
}

func loadTLS(cfg TLSConfig, read func(name string) ([]byte, error)) (certificateFiles, error) {
	// All files are read even if one fails, so that a change of any is noticed.
	certificate, err1 := read(cfg.Certificate)
	key, err2 := read(cfg.Key)
	var authorities []byte
	var err3 error
	if cfg.ClientCA != "" {
		authorities, err3 = read(cfg.ClientCA)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return certificateFiles{}, fmt.Errorf("cannot read the certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return certificateFiles{}, nf.E(nf.Invalid, "use", "the certificate "+cfg.Certificate, err) // it quotes neither file
	}
	out := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if cfg.ClientCA != "" {
		out.ClientCAs = x509.NewCertPool()
		if !out.ClientCAs.AppendCertsFromPEM(authorities) {
			return certificateFiles{}, nf.E(nf.Invalid, "use", "the CA certificates in "+cfg.ClientCA, errors.New("the file contains no certificate"))
		}
		out.ClientAuth = tls.VerifyClientCertIfGiven
		// A resumed session is not verified again, even if its authority has
		// been withdrawn.
		out.SessionTicketsDisabled = true
	}
	return certificateFiles{config: out, expires: pair.Leaf.NotAfter}, nil
}

// Config returns the configuration of a listener. Each connection uses the
// files' content at the time of its handshake.
func (t *TLS) Config() *tls.Config {
	first := t.files.Loaded().config.Clone()
	first.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return t.files.Current(hello.Context()).config, nil
	}
	return first
}

// Expires returns when the active certificate expires.
func (t *TLS) Expires(ctx context.Context) time.Time { return t.files.Current(ctx).expires }

// Broken returns how many new versions were invalid.
func (t *TLS) Broken() int64 { return t.files.Broken() }
