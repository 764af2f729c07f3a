package istio

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"istio.io/api/security/v1alpha1"
)

const (
	requestTime = 10 * time.Second
	maxFile     = 1 << 20 // bytes of a file
)

// enrol returns a new certificate, with a new key.
func (i *Identity) enrol(ctx context.Context) (*certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	token, err := readFile(i.cfg.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the token: %w", err)
	}
	rootFile, err := readFile(i.cfg.RootFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the roots of the mesh: %w", err)
	}
	roots, err := parsePEM(rootFile)
	if err != nil {
		return nil, fmt.Errorf("cannot use the roots of the mesh in %s: %w", i.cfg.RootFile, err)
	}
	i.trust(roots)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot generate a key: %w", err)
	}
	// Without names: istiod takes them from the token.
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("cannot make a CSR: %w", err)
	}
	chain, err := i.request(ctx, strings.TrimSpace(token), poolOf(roots), csr)
	if err != nil {
		return nil, err
	}
	c, err := accept(chain, roots, key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate from istiod: %w", err)
	}
	c.rootFile = rootFile
	return c, nil
}

// request sends a CSR to istiod, over a connection of its own.
func (i *Identity) request(ctx context.Context, token string, roots *x509.CertPool, csr []byte) ([]string, error) {
	conn, err := i.connect(ctx, roots)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to istiod at %s: %w", i.cfg.Address, err)
	}
	defer func() { _ = conn.Close() }() // closed again, if gRPC has not used it
	var used atomic.Bool
	client, err := grpc.NewClient("passthrough:///"+i.cfg.Address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the connection is TLS already, so that its errors are ours
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errors.New("the connection was lost")
			}
			return conn, nil
		}))
	if err != nil {
		return nil, fmt.Errorf("cannot use istiod's address: %w", err)
	}
	defer func() { _ = client.Close() }() // nothing is sent any more
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	if i.cfg.Cluster != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "clusterid", i.cfg.Cluster)
	}
	answer, err := v1alpha1.NewIstioCertificateServiceClient(client).CreateCertificate(ctx, &v1alpha1.IstioCertificateRequest{
		Csr:              string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})),
		ValidityDuration: int64(i.cfg.Lifetime / time.Second),
	})
	if err != nil {
		return nil, refusal(err)
	}
	return answer.GetCertChain(), nil
}

// connect returns a connection whose other end has proved to be istiod.
func (i *Identity) connect(ctx context.Context, roots *x509.CertPool) (net.Conn, error) {
	host, _, err := net.SplitHostPort(i.cfg.Address)
	if err != nil {
		return nil, err
	}
	plain, err := i.cfg.Dial(ctx, "tcp", i.cfg.Address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host, NextProtos: []string{"h2"}})
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return conn, nil
}

// refusal returns the error of a request that istiod rejects. It does not quote
// istiod's text, which may have the token in it.
func refusal(err error) error {
	code, hint := status.Code(err), ""
	switch code {
	case codes.Unauthenticated, codes.PermissionDenied:
		hint = "; check the token's audience (istio-ca), its service account, and --istio-cluster"
	case codes.InvalidArgument:
		hint = "; the mesh may not allow the lifetime or the kind of key"
	default:
	}
	return fmt.Errorf("istiod rejects the request with %s%s", code, hint)
}

// accept checks a chain from istiod: the leaf first, the bundle of roots last.
func accept(chain []string, roots []*x509.Certificate, key *ecdsa.PrivateKey) (*certificate, error) {
	if len(chain) < 2 {
		return nil, fmt.Errorf("the chain has %d elements; it must have a certificate and the roots", len(chain))
	}
	var all []*x509.Certificate // the leaf and the intermediate authorities
	for _, element := range chain[:len(chain)-1] {
		parsed, err := parsePEM(element)
		if err != nil {
			return nil, err
		}
		all = append(all, parsed...)
	}
	bundle, err := parsePEM(chain[len(chain)-1])
	if err != nil {
		return nil, err
	}
	c := &certificate{bundle: bundle, roots: poolOf(slices.Concat(bundle, roots)), obtained: time.Now(), expires: all[0].NotAfter}
	if public, ok := all[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.Public()) {
		return nil, errors.New("the certificate is for another key")
	}
	if c.id, c.domain, err = identityOf(all[0]); err != nil {
		return nil, err
	}
	_, err = all[0].Verify(x509.VerifyOptions{Roots: c.roots, Intermediates: poolOf(all[1:]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return nil, fmt.Errorf("the chain does not lead to a root: %w", err)
	}
	c.pair = tls.Certificate{PrivateKey: key, Leaf: all[0]}
	for _, certificate := range all {
		c.pair.Certificate = append(c.pair.Certificate, certificate.Raw)
	}
	return c, nil
}

func poolOf(certificates []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool
}

// parsePEM returns the certificates of a text; at least one.
func parsePEM(text string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	rest := []byte(text)
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("the PEM has a block that is not a certificate")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot parse a certificate: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("the PEM has no certificate")
	}
	return out, nil
}

// readFile returns the content of a file, which must not be empty.
func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read from
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(content) == 0 || len(content) > maxFile:
		return "", fmt.Errorf("%s is empty, or larger than %d bytes", name, maxFile)
	}
	return string(content), nil
}
