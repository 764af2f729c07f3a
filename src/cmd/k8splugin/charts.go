package main

import (
	"context"
	"errors"
	"io"
	"regexp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
)

// charts is the source of charts for the native API, without guard.
type charts struct{ from chartSources }

// chartSources are the places that charts come from.
type chartSources struct {
	registries *chartsource.Source
	sdc        *sdc.Client // nil: SDC is not used
}

func (s *service) chartSources(cfg Config) (chartSources, error) {
	registries, err := chartsource.New(chartsource.Config{Allow: listed(cfg.ChartSources), PlainHTTP: listed(cfg.ChartSourcesPlain), Limit: cfg.MaxPackage})
	return chartSources{registries, s.sdc.client}, err
}

var _ access.ChartSource[native.ChartRef, func(context.Context, io.Reader) error] = charts{}

// Fetch implements access.ChartSource.
func (c charts) Fetch(ctx context.Context, ref native.ChartRef, into func(context.Context, io.Reader) error) (string, error) {
	if ref.SDC != (native.SDCRef{}) {
		return c.from.fromSDC(ctx, ref.SDC, into)
	}
	got, err := c.from.registries.Fetch(ctx, chartsource.ChartRef{
		URL: ref.URL, Name: ref.Name, Version: ref.Version, Digest: ref.Digest, Username: ref.Username, Password: ref.Password,
	}, into)
	return got.Source, err
}

// fromSDC fetches the only chart or package that a reference selects. Its source is a path of SDC.
func (c chartSources) fromSDC(ctx context.Context, ref native.SDCRef, into func(context.Context, io.Reader) error) (string, error) {
	if c.sdc == nil {
		return "", nf.E(nf.Unsupported, "fetch", "a package of SDC", errors.New("SDC is not used; the operator sets --sdc-url and --sdc-mode"))
	}
	found, err := c.sdc.Package(ctx, sdc.PackageRef(ref))
	if err != nil {
		return "", err
	}
	return found.URL, c.sdc.Download(ctx, found, into)
}

// designs are the packages that requests name by the UUID of a service or resource of
// SDC.
type designs struct{ of *service }

var (
	_ access.PackageImports = designs{}

	uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// Fetch implements access.PackageImports.
func (d designs) Fetch(ctx context.Context, id string, into func(context.Context, string, io.Reader) error) error {
	absent := nf.E(nf.NotFound, "fetch", "package "+id, nil)
	if d.of.sdc.client == nil || !uuidForm.MatchString(id) {
		return absent
	}
	found, err := d.of.sdc.client.Package(ctx, sdc.PackageRef{Service: id})
	if nf.KindOf(err) == nf.NotFound {
		found, err = d.of.sdc.client.Package(ctx, sdc.PackageRef{Resource: id})
	}
	if nf.KindOf(err) == nf.Invalid {
		return nf.E(nf.Invalid, "use", "csar_id "+id, nf.Violations{{Field: "csar_id", Message: "has several charts or packages in SDC; upload one of them as a package, with source.sdc"}})
	}
	if err != nil {
		return err
	}
	return d.of.sdc.client.Download(ctx, found, func(ctx context.Context, content io.Reader) error { return into(ctx, found.URL, content) })
}
