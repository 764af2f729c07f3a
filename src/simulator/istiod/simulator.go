package istiod

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"istio.io/api/security/v1alpha1"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// Defaults of a configuration.
const (
	TrustDomain     = "cluster.local"
	Host            = "istiod.istio-system.svc"
	DefaultLifetime = 24 * time.Hour
	MaxLifetime     = 90 * 24 * time.Hour
)

// Review is the answer to a TokenReview.
type Review struct {
	Authenticated bool
	User          string   // system:serviceaccount:<namespace>:<name>
	Audiences     []string // those of the token that were asked for
}

// Config describes a simulator. Review is mandatory.
type Config struct {
	Review       func(ctx context.Context, token string, audiences []string) (Review, error)
	TrustDomain  string           // TrustDomain by default
	Clusters     []string         // ids that clients may send; any if empty
	Hosts        []string         // names and addresses in the server's certificate, in addition to Host
	Lifetime     time.Duration    // if a client asks for none; DefaultLifetime by default
	MaxLifetime  time.Duration    // MaxLifetime by default
	Intermediate bool             // the root signs an intermediate authority, which signs the certificates
	Clock        func() time.Time // time.Now by default
}

// Simulator is an istiod. It is safe for concurrent use.
type Simulator struct {
	cfg Config

	mu      sync.Mutex
	roots   []*authority // the present one is first
	signer  *authority   // the present root, or its intermediate authority
	serving tls.Certificate
	faults  script.Faults[Fault]
	journal script.Journal[Entry]
}

// New returns a simulator with a new root.
func New(cfg Config) (*Simulator, error) {
	if cfg.Review == nil {
		return nil, errors.New("cannot make a simulator of istiod: it has no TokenReview")
	}
	if cfg.TrustDomain == "" {
		cfg.TrustDomain = TrustDomain
	}
	if cfg.Lifetime == 0 {
		cfg.Lifetime = DefaultLifetime
	}
	if cfg.MaxLifetime == 0 {
		cfg.MaxLifetime = MaxLifetime
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	s := &Simulator{cfg: cfg, journal: script.Journal[Entry]{Most: maxEntries}}
	return s, s.Rotate()
}

// Rotate makes a new root, which signs from now on. The bundle of roots keeps the
// earlier ones until Retire.
func (s *Simulator) Rotate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock()
	root, err := newAuthority(s.cfg.TrustDomain, now, nil)
	if err != nil {
		return err
	}
	signer := root
	if s.cfg.Intermediate {
		if signer, err = newAuthority(s.cfg.TrustDomain+" intermediate", now, root); err != nil {
			return err
		}
	}
	if s.serving, err = signer.serving(append([]string{Host}, s.cfg.Hosts...), now); err != nil {
		return err
	}
	s.roots, s.signer = append([]*authority{root}, s.roots...), signer
	return nil
}

// Retire removes all roots but the present one from the bundle.
func (s *Simulator) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots = s.roots[:1]
}

// Roots returns the bundle of roots in PEM, as the ConfigMap istio-ca-root-cert
// has it.
func (s *Simulator) Roots() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bundle()
}

// bundle returns the bundle of roots. The caller holds the lock.
func (s *Simulator) bundle() string {
	var certificates []*x509.Certificate
	for _, root := range s.roots {
		certificates = append(certificates, root.certificate)
	}
	return inPEM(certificates...)
}

// Serve serves on a listener until the context ends.
func (s *Simulator) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			serving := s.serving
			return &serving, nil
		},
	})))
	server.RegisterService(s.description(), s)
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// description returns the gRPC service. The generated description is for types that embed
// a struct.
func (s *Simulator) description() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v1alpha1.IstioCertificateService_ServiceDesc.ServiceName, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "CreateCertificate",
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := new(v1alpha1.IstioCertificateRequest)
				if err := decode(in); err != nil {
					return nil, err
				}
				return s.create(ctx, in)
			},
		}},
	}
}
