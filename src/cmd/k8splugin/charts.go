package main

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// charts is the source of charts for the native API, without guard.
type charts struct{ source *chartsource.Source }

var _ access.ChartSource[native.ChartRef, func(context.Context, io.Reader) error] = charts{}

// Fetch implements access.ChartSource.
func (c charts) Fetch(ctx context.Context, ref native.ChartRef, into func(context.Context, io.Reader) error) (string, error) {
	got, err := c.source.Fetch(ctx, chartsource.ChartRef(ref), into)
	return got.Source, err
}
