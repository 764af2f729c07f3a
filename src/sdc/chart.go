package sdc

import (
	"context"
	"fmt"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ChartRef selects a chart of a service or a resource.
type ChartRef struct {
	Service  string // UUID of a version; or Resource
	Resource string // UUID of a version
	Instance string // of a resource in the service; empty: any
	Artifact string // name; empty: any chart
}

// Chart returns the only chart that a reference selects. It returns nf.NotFound if there
// is none, and nf.Invalid with the names if there are several.
func (c *Client) Chart(ctx context.Context, ref ChartRef) (Artifact, error) {
	all, err := c.artifacts(ctx, ref)
	if err != nil {
		return Artifact{}, err
	}
	var found []Artifact
	var names []string
	for _, a := range all {
		if a.IsChart() && (ref.Artifact == "" || a.Name == ref.Artifact) {
			found, names = append(found, a), append(names, fmt.Sprintf("%q", a.Name))
		}
	}
	const most = 20 // names in an error
	switch len(found) {
	case 0:
		return Artifact{}, nf.E(nf.NotFound, "find", "a chart of the service or resource in SDC", nil)
	case 1:
		return found[0], nil
	}
	return Artifact{}, nf.E(nf.Invalid, "find", "the chart in SDC", nf.Violations{{
		Field: "source.sdc.artifact", Message: "must select one of the charts " + strings.Join(names[:min(len(names), most)], ", "),
	}})
}

// artifacts returns the artifacts among which a reference selects.
func (c *Client) artifacts(ctx context.Context, ref ChartRef) ([]Artifact, error) {
	if ref.Resource != "" {
		m, err := c.Resource(ctx, ref.Resource)
		return m.Artifacts, err
	}
	m, err := c.Service(ctx, ref.Service)
	if err != nil {
		return nil, err
	}
	var out []Artifact
	if ref.Instance == "" {
		out = append(out, m.Artifacts...)
	}
	for _, r := range m.Resources {
		if ref.Instance == "" || r.Instance == ref.Instance {
			out = append(out, r.Artifacts...)
		}
	}
	return out, nil
}
