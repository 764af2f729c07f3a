package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// amend renders the amendments and layers them over the plan.
func (pr *preparer) amend(ctx context.Context, p *prepared, region nf.Region) error {
	for _, a := range p.target.spec.Amendments {
		plan, err := pr.renderAmendment(ctx, p, a, region)
		if err != nil {
			return err
		}
		p.plan = p.plan.Amend(a.Name, plan)
	}
	return nil
}

func (pr *preparer) renderAmendment(ctx context.Context, p *prepared, a nf.Amendment, region nf.Region) (render.Plan, error) {
	pkg, files, done, err := pr.catalog.Files(ctx, a.Package)
	if err != nil {
		return render.Plan{}, missing("amendments."+a.Name, a.Package, err)
	}
	defer done()
	if !slices.ContainsFunc(p.target.present.Amendments, func(has nf.Amendment) bool { return has.Package == pkg.ID }) {
		if err := enabled("amendments."+a.Name, pkg); err != nil {
			return render.Plan{}, err
		}
	}
	p.openNamespaces(pkg.Namespaces)
	plan, out, err := pr.render(ctx, p, content{pkg, files, a.Inputs}, region)
	if err != nil {
		return plan, fmt.Errorf("cannot amend with %q: %w", a.Name, err)
	}
	if len(out.Networks) > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("amendments.%s: networks of the package %s have no effect; attach the workloads in the request", a.Name, pkg.ID))
	}
	if len(out.Clusters) > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("amendments.%s: workload_clusters of the package %s have no effect; name them in the request", a.Name, pkg.ID))
	}
	if len(out.Volumes) > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("amendments.%s: volumes of the package %s have no effect; name them in the request", a.Name, pkg.ID))
	}
	if len(out.Profiles) > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("amendments.%s: compute_profiles of the package %s have no effect; give the profiles in the request", a.Name, pkg.ID))
	}
	return plan, nil
}
