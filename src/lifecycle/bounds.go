package lifecycle

import (
	"context"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// bound opens the region, the instance's own namespace, which the project must be
// allowed to use, and the namespaces that the request and the package name.
func (pr *preparer) bound(ctx context.Context, p *prepared, region nf.Region) (err error) {
	if p.cluster, err = pr.open(ctx, p.target.region, p.target.project); err != nil {
		return err
	}
	tenancy := region.Tenancy(p.target.project, pr.apart)
	p.bounds = nf.Bounds{Namespace: p.target.namespace, Tenancy: tenancy}
	p.openNamespaces(p.target.spec.Namespaces)
	p.openNamespaces(p.pkg.Namespaces)
	p.view = &regionView{cluster: p.cluster, owner: subjectOf(p.target.id), tenancy: tenancy, access: p.target.access, usable: map[string]bool{}}
	return mayUse(ctx, p.cluster, tenancy, map[string]string{p.target.namespace: "namespace"})
}

// openNamespaces opens additional namespaces.
func (p *prepared) openNamespaces(namespaces []string) {
	for _, name := range namespaces {
		if !p.bounds.Opens(name) {
			p.bounds.Further = append(p.bounds.Further, name)
		}
	}
}

// inspect checks the prepared target against its bounds and against the region.
func (p *prepared) inspect(ctx context.Context) error {
	// Permission comes first: the project must not learn what is in a namespace
	// that it may not use.
	fields := map[string]string{}
	for _, name := range namespacesOf(p.plan) {
		if slices.Contains(p.bounds.Further, name) {
			fields[name] = "namespaces"
		}
	}
	if err := mayUse(ctx, p.cluster, p.bounds.Tenancy, fields); err != nil {
		return err
	}
	return p.preflight(ctx)
}

// mayUse rejects namespaces that the project may not use. Fields maps each
// namespace to the request field that names it.
func mayUse(ctx context.Context, c Cluster, tenancy nf.Tenancy, fields map[string]string) error {
	if tenancy.Whole || len(fields) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(fields))
	may, err := usable(ctx, c, tenancy, names)
	if err != nil {
		return err
	}
	var denied nf.Violations
	for _, name := range names {
		if !may[name] {
			denied = append(denied, tenancy.DeniedNamespace(fields[name], name))
		}
	}
	if len(denied) > 0 {
		return tenancy.Refuse(denied)
	}
	return nil
}

// usable reports for each namespace whether the project may use it.
func usable(ctx context.Context, c Cluster, tenancy nf.Tenancy, names []string) (map[string]bool, error) {
	live, err := c.Namespaces(ctx, names)
	if err != nil {
		return nil, err
	}
	may := map[string]bool{}
	for _, name := range names {
		var is *nf.Namespace
		if found, there := live[name]; there {
			is = &found
		}
		may[name] = tenancy.MayUse(name, is)
	}
	return may, nil
}
