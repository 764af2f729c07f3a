package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// charts fetches charts for those who may upload packages: nobody else gets to
// have the service ask somewhere.
type charts struct {
	guard  *access.Guard
	source *chartsource.Source
}

// Fetch implements native.ChartSource.
func (c charts) Fetch(ctx context.Context, project string, ref native.ChartRef) (native.Chart, error) {
	if err := c.guard.May(ctx, nf.WritePackage, nf.Scope{Project: project}); err != nil {
		return native.Chart{}, err
	}
	got, err := c.source.Fetch(ctx, chartsource.ChartRef(ref))
	return native.Chart{Archive: got.Archive, Source: got.Source}, err
}
