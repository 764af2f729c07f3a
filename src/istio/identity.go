package istio

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

const (
	defaultLifetime = 24 * time.Hour
	firstRetry      = 100 * time.Millisecond
	longestRetry    = time.Minute
	rootsEvery      = 30 * time.Second // between two looks at the file with the roots
)

// errNone is the error of a handshake without a valid certificate of ours.
var errNone = errors.New("there is no valid certificate from istiod")

// Config describes an identity. Address, TokenFile, RootFile and Peers are
// mandatory.
type Config struct {
	Address   string        // host:port of istiod; its certificate has the host's name
	TokenFile string        // token of the service account, for the audience istio-ca
	RootFile  string        // roots of the mesh in PEM
	Cluster   string        // id of the cluster that issued the token; empty: istiod's own
	Lifetime  time.Duration // that is asked for; 24 hours by default. istiod may shorten it
	Peers     []string      // see ParsePeers
	Dial      func(ctx context.Context, network, address string) (net.Conn, error)
	Logger    *slog.Logger // default: discard
}

// Identity is the service's identity in a mesh. It is safe for concurrent use.
type Identity struct {
	cfg      Config
	peers    Peers
	present  atomic.Pointer[certificate]
	failures atomic.Int64
}

// certificate is a certificate with its trust.
type certificate struct {
	pair     tls.Certificate
	bundle   []*x509.Certificate // roots that istiod returned
	roots    *x509.CertPool      // the bundle and the roots of the file
	id       string
	domain   string
	rootFile string // content when the certificate was obtained
	obtained time.Time
	expires  time.Time
}

// Status describes the present certificate.
type Status struct {
	ID       string    // SPIFFE id; empty until there is a certificate
	Obtained time.Time // zero until there is a certificate
	Expires  time.Time // likewise
	Failures int64     // failed requests for a certificate since the start
}

// New returns an identity without a certificate; Run obtains it.
func New(cfg Config) (*Identity, error) {
	if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("cannot use istiod's address %q: it must be host:port", cfg.Address)
	}
	if cfg.TokenFile == "" || cfg.RootFile == "" {
		return nil, errors.New("cannot use istiod: TokenFile and RootFile are required")
	}
	peers, err := ParsePeers(cfg.Peers)
	if err != nil {
		return nil, fmt.Errorf("cannot use the list of peers: %w", err)
	}
	if len(cfg.Peers) == 0 {
		return nil, errors.New("cannot use istiod: the list of peers is empty")
	}
	if cfg.Lifetime == 0 {
		cfg.Lifetime = defaultLifetime
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Identity{cfg: cfg, peers: peers}, nil
}

// Status returns the state of the certificate.
func (i *Identity) Status() Status {
	s := Status{Failures: i.failures.Load()}
	if c := i.present.Load(); c != nil {
		s.ID, s.Obtained, s.Expires = c.id, c.obtained, c.expires
	}
	return s
}

// Run obtains a certificate and keeps it valid until the context ends. It retries
// after a failure, so it returns no error.
func (i *Identity) Run(ctx context.Context) error {
	for failed := 0; ctx.Err() == nil; {
		c, err := i.enrol(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			i.failures.Add(1)
			pause := delay.Doubled(firstRetry, longestRetry, failed)
			failed++
			i.cfg.Logger.WarnContext(ctx, "failed to obtain a certificate from istiod", "error", err, "failures", failed, "expires", i.Status().Expires)
			delay.For(ctx, pause/2+rand.N(pause/2), nil) //nolint:gosec // replicas only have to differ
		default:
			failed = 0
			i.present.Store(c)
			i.cfg.Logger.InfoContext(ctx, "certificate obtained from istiod", "id", c.id, "expires", c.expires)
			i.rest(ctx, c)
		}
	}
	return nil
}

// rest returns when a certificate is to be renewed: at two thirds of its
// lifetime, or when the roots change. istio's own agents renew at half of it; a
// third of a day is more than enough to repair istiod, and a certificate that is
// older than that means that a renewal has failed.
func (i *Identity) rest(ctx context.Context, c *certificate) {
	renew := c.obtained.Add(c.expires.Sub(c.obtained) * 2 / 3)
	for ctx.Err() == nil {
		left := time.Until(renew)
		if left <= 0 {
			return
		}
		delay.For(ctx, min(left, rootsEvery), nil)
		// A file that cannot be read is not a rotation: Kubernetes replaces it in one step.
		if now, err := readFile(i.cfg.RootFile); err == nil && now != c.rootFile {
			i.cfg.Logger.InfoContext(ctx, "the roots of the mesh have changed; renewing the certificate")
			return
		}
	}
}

// trust has the present certificate's connections trust roots in addition to those
// that istiod returned, so that a rotation does not have to wait for istiod.
func (i *Identity) trust(roots []*x509.Certificate) {
	if present := i.present.Load(); present != nil {
		c := *present
		c.roots = poolOf(slices.Concat(c.bundle, roots))
		i.present.Store(&c)
	}
}

// valid returns the present certificate.
func (i *Identity) valid() (*certificate, error) {
	c := i.present.Load()
	if c == nil || !time.Now().Before(c.expires) {
		return nil, errNone
	}
	return c, nil
}
