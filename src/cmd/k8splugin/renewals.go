package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// renewals stores the credentials of regions that were renewed.
type renewals struct {
	token       func(ctx context.Context, region string, access nf.Access, token nf.RenewedToken) error
	certificate func(ctx context.Context, region string, access nf.Access, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error)
}

// renewals stores them in the catalog, which needs the pool: no region is open before it
// exists.
func (s *service) renewals() renewals {
	return renewals{
		token: func(ctx context.Context, region string, access nf.Access, token nf.RenewedToken) error {
			return s.catalog.KeepToken(ctx, region, access, token)
		},
		certificate: func(ctx context.Context, region string, access nf.Access, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error) {
			return s.catalog.EditRenewal(ctx, region, access, edit)
		},
	}
}
