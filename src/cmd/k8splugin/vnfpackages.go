package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpkgm"
)

// csarTimeout limits the download of a CSAR, which may contain images.
const csarTimeout = 30 * time.Minute

// vnfPackagesAPI creates the API of VNF packages. CSARs come from the hosts that charts
// may come from.
func (s *service) vnfPackagesAPI(cfg Config, _ *secureStore, obs observability, guarded *access.Guarded) (northbound.API, error) {
	from, err := chartsource.New(chartsource.Config{
		Allow: listed(cfg.ChartSources), PlainHTTP: listed(cfg.ChartSourcesPlain), Limit: cfg.MaxPackage, Timeout: csarTimeout,
	})
	if err != nil {
		return nil, err
	}
	return vnfpkgm.New(vnfpkgm.Config{
		Packages: guarded.Packages, Archives: access.NewArchives(guarded, s.catalog), Fetch: csars{from}.fetch, Logger: obs.log,
	})
}

// csars is the source of CSARs.
type csars struct{ from *chartsource.Source }

// fetch implements vnfpkgm.Fetch. It names the fields of errors as the request does.
func (c csars) fetch(ctx context.Context, from vnfpkgm.Source, into func(context.Context, io.Reader) error) error {
	_, err := c.from.Fetch(ctx, chartsource.ChartRef{URL: from.URL, Username: from.Username, Password: from.Password, Archive: true}, into)
	wrong := nf.ViolationsOf(err)
	if wrong == nil || !strings.HasPrefix(wrong[0].Field, "chart.") {
		return err
	}
	fields := map[string]string{"chart.url": "addressInformation", "chart.username": "userName", "chart.password": "password"}
	named := make(nf.Violations, len(wrong))
	for i, v := range wrong {
		v.Field = fields[v.Field]
		named[i] = v
	}
	return nf.E(nf.KindOf(err), "fetch", "the CSAR", named)
}

// csarAuthorities returns the certificates of the authorities that sign CSARs; nil: CSARs
// need not be signed.
func (c Config) csarAuthorities() (*x509.CertPool, error) {
	if c.CSARAuthorities == "" {
		return nil, nil
	}
	content, err := os.ReadFile(c.CSARAuthorities)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities of CSARs: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("cannot use the authorities of CSARs: %s has no certificate in PEM", c.CSARAuthorities)
	}
	return roots, nil
}
