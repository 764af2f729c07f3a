package vnfpm_test

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/sol003/performance"
)

// source passes on the notices of a meter that is created later.
type source struct{ meter **performance.Meter }

var _ notify.Source = source{}

func (s source) NoticesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Notice, error] {
	return (*s.meter).NoticesFrom(ctx, from)
}

func (s source) DropNotice(ctx context.Context, id string) error {
	return (*s.meter).DropNotice(ctx, id)
}

func (s source) Noticed() <-chan struct{} { return (*s.meter).Noticed() }
