package istiod

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"istio.io/api/security/v1alpha1"
)

const (
	audience   = "istio-ca"
	userPrefix = "system:serviceaccount:"
	maxCN      = 64   // bytes
	minRSA     = 2048 // bits
)

// create executes one request.
func (s *Simulator) create(ctx context.Context, r *v1alpha1.IstioCertificateRequest) (*v1alpha1.IstioCertificateResponse, error) {
	fault := s.takeFault()
	if fault.Before != nil {
		fault.Before()
	}
	entry := Entry{Lifetime: time.Duration(r.GetValidityDuration()) * time.Second}
	chain, err := s.answer(ctx, r, fault, &entry)
	entry.Code = status.Code(err)
	s.journal.Add(entry)
	if err != nil {
		return nil, err
	}
	if fault.Edit != nil {
		chain = fault.Edit(chain)
	}
	return &v1alpha1.IstioCertificateResponse{CertChain: chain}, nil
}

func (s *Simulator) answer(ctx context.Context, r *v1alpha1.IstioCertificateRequest, fault Fault, entry *Entry) ([]string, error) {
	if fault.Code != codes.OK {
		return nil, status.Error(fault.Code, "the script demands it")
	}
	var err error
	if entry.Identity, entry.Cluster, err = s.authenticate(ctx); err != nil {
		return nil, err
	}
	if _, ok := r.GetMetadata().GetFields()["ImpersonatedIdentity"]; ok {
		return nil, status.Error(codes.Unauthenticated, "the caller may not impersonate an identity")
	}
	csr, err := parse(r.GetCsr())
	if err != nil {
		return nil, err
	}
	entry.CSR = csr
	return s.issue(csr, entry.Identity, entry.Lifetime)
}

// authenticate returns the SPIFFE id of a request's token, and its cluster.
func (s *Simulator) authenticate(ctx context.Context) (identity, cluster string, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	refuse := func(why string) (string, string, error) { return "", cluster, status.Error(codes.Unauthenticated, why) }
	if ids := md.Get("clusterid"); len(ids) > 0 {
		cluster = ids[0]
	}
	headers := md.Get("authorization")
	if len(headers) != 1 {
		return refuse("the request has no authorization")
	}
	token, ok := strings.CutPrefix(headers[0], "Bearer ")
	if !ok || token == "" || strings.TrimSpace(token) != token {
		return refuse("the authorization has no bearer token")
	}
	if len(s.cfg.Clusters) > 0 && !slices.Contains(s.cfg.Clusters, cluster) {
		return refuse("the cluster is unknown")
	}
	review, err := s.cfg.Review(ctx, token, []string{audience})
	if err != nil || !review.Authenticated || !slices.Contains(review.Audiences, audience) {
		return refuse("the TokenReview does not accept the token")
	}
	account, ok := strings.CutPrefix(review.User, userPrefix)
	namespace, name, both := strings.Cut(account, ":")
	if !ok || !both {
		return refuse("the token is not that of a service account")
	}
	return "spiffe://" + s.cfg.TrustDomain + "/ns/" + namespace + "/sa/" + name, cluster, nil
}

// parse returns a CSR whose signature and key are good enough.
func parse(text string) (*x509.CertificateRequest, error) {
	refuse := func(why string) (*x509.CertificateRequest, error) {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
		return refuse("the CSR is not one block of PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return refuse("the CSR cannot be parsed")
	}
	if err := csr.CheckSignature(); err != nil {
		return refuse("the CSR's signature is wrong")
	}
	switch key := csr.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSA {
			return refuse("the RSA key is too short")
		}
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return refuse("the key's curve is not supported")
		}
	default:
		return refuse("the kind of key is not supported")
	}
	return csr, nil
}

// issue signs a certificate for an identity. It uses only the key of the CSR, and
// whether it has a common name.
func (s *Simulator) issue(csr *x509.CertificateRequest, identity string, lifetime time.Duration) ([]string, error) {
	if lifetime <= 0 {
		lifetime = s.cfg.Lifetime
	}
	if lifetime > s.cfg.MaxLifetime {
		return nil, status.Error(codes.InvalidArgument, "the lifetime is above the maximum")
	}
	id, err := url.Parse(identity)
	if err != nil {
		return nil, status.Error(codes.Internal, "the identity is not a URI")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock()
	template := &x509.Certificate{
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime), URIs: []*url.URL{id},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	if end := s.signer.certificate.NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	if csr.Subject.CommonName != "" && len(identity) <= maxCN {
		template.Subject = pkix.Name{CommonName: identity}
	}
	leaf, err := s.signer.sign(template, csr.PublicKey)
	if err != nil {
		return nil, status.Error(codes.Internal, "the certificate cannot be signed")
	}
	chain := []string{inPEM(leaf)}
	if s.cfg.Intermediate {
		chain = append(chain, inPEM(s.signer.certificate))
	}
	return append(chain, s.bundle()), nil
}
