package access

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ChartSource fetches charts. Ref identifies a chart, and Into receives it.
type ChartSource[Ref, Into any] interface {
	// Fetch fetches a chart and returns its source URL.
	Fetch(ctx context.Context, ref Ref, into Into) (source string, err error)
}

// Charts fetches charts for identities that may upload packages. Other
// identities must not be able to make the service send requests.
type Charts[Ref, Into any] struct {
	guard  *guard
	source ChartSource[Ref, Into]
}

// NewCharts returns the guarded charts of a source.
func NewCharts[Ref, Into any](guarded *Guarded, source ChartSource[Ref, Into]) Charts[Ref, Into] {
	return Charts[Ref, Into]{guarded.guard, source}
}

// Fetch fetches a chart that is to become a package of the project. It requires
// package:write in the project.
func (c Charts[Ref, Into]) Fetch(ctx context.Context, project string, ref Ref, into Into) (source string, err error) {
	if err := c.guard.may(ctx, nf.WritePackage, nf.Scope{Project: project}); err != nil {
		return "", err
	}
	return c.source.Fetch(ctx, ref, into)
}
