package sdc

import (
	"context"
	"fmt"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// PackageRef selects an artifact of a service or a resource that can become a package.
type PackageRef struct {
	Service  string // UUID of a version; or Resource
	Resource string // UUID of a version
	Instance string // of a resource in the service; empty: any
	Artifact string // name; empty: any
}

// Package returns the only chart that a reference selects or, if there is no chart, the only
// package of ETSI or, if there is none either, the only onboarded one. An artifact of TypeOther must
// be named. Package returns nf.NotFound if there is none of these, and nf.Invalid with the
// names if there are several.
func (c *Client) Package(ctx context.Context, ref PackageRef) (Artifact, error) {
	all, err := c.artifacts(ctx, ref)
	if err != nil {
		return Artifact{}, err
	}
	of := func(kind string) func(Artifact) bool { return func(a Artifact) bool { return a.Type == kind } }
	wanted := []func(Artifact) bool{Artifact.IsChart, of(TypeETSI), of(TypeOnboarded)}
	if ref.Artifact != "" {
		wanted = append(wanted, of(TypeOther))
	}
	for _, is := range wanted {
		var found []Artifact
		for _, a := range all {
			if is(a) && (ref.Artifact == "" || a.Name == ref.Artifact) {
				found = append(found, a)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		return Artifact{}, ambiguous(found)
	}
	return Artifact{}, nf.E(nf.NotFound, "find", "a chart or package of the service or resource in SDC", nil)
}

// ambiguous returns the error of a reference that selects several artifacts.
func ambiguous(found []Artifact) error {
	const most = 20 // names in the error
	var names []string
	for _, a := range found[:min(len(found), most)] {
		names = append(names, fmt.Sprintf("%q", a.Name))
	}
	return nf.E(nf.Invalid, "find", "the package in SDC", nf.Violations{{Field: "source.sdc.artifact", Message: "must select one of " + strings.Join(names, ", ")}})
}

// artifacts returns the artifacts among which a reference selects.
func (c *Client) artifacts(ctx context.Context, ref PackageRef) ([]Artifact, error) {
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
