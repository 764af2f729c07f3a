package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// FlavorLabels returns the labels that give nodes of a region the features of a flavor, as
// alternatives, and whether the region has the flavor. Flavors are the names of all its
// flavors.
type FlavorLabels func(offers nf.RegionCapabilities, flavor string) (alternatives []map[string]string, found bool, flavors []string)

// compute gives the workloads of the plan the compute profiles that the target asks for, or
// those of the present instance if these are kept.
func (pr *preparer) compute(ctx context.Context, p *prepared) error {
	var asked []render.Compute
	for i, use := range p.target.present.Compute {
		asked = append(asked, render.Compute{ComputeUse: use, At: nf.Place{Field: fmt.Sprintf("compute_profiles[%d]", i)}})
	}
	if !p.keeps {
		var err error
		if asked, err = pr.askedCompute(ctx, p); err != nil {
			return err
		}
	}
	if len(asked) == 0 {
		p.computed = nil
		return nil
	}
	plan, err := p.plan.Compute(asked)
	if v := nf.ViolationsOf(err); v != nil {
		return nf.E(nf.Invalid, "use", "compute profiles of VNF instance "+p.target.id, v)
	}
	if err != nil {
		return err
	}
	p.plan, p.computed = plan, nil
	for _, c := range asked {
		if chosen := plan.Selected([]string{c.Workload}); len(chosen) == 1 && c.Workload != nf.AllWorkloads {
			c.Workload = render.Workload{Ref: chosen[0]}.Name() // it stays, whatever an amendment adds
		}
		p.computed = append(p.computed, c.ComputeUse)
	}
	return nil
}

// askedCompute returns the compute profiles that the target asks for, as they are resolved
// in its package and its region. It returns nf.Invalid for a profile that the package does
// not have, and nf.Unsupported for a flavor that the region does not have.
func (pr *preparer) askedCompute(ctx context.Context, p *prepared) ([]render.Compute, error) {
	asked, wrong := render.AskedCompute(p.target.spec.Inputs)
	asked = slices.DeleteFunc(asked, func(c render.Compute) bool { return c.Optional && p.plan.Unselected(c.Workload) != "" })
	unknown := nf.Violations(nil) // flavors
	for i := range asked {
		c := &asked[i]
		if own, has := p.declared.profiles[c.Name]; has {
			c.Profile = own
		} else if strings.HasPrefix(c.Name, nf.FlavorPrefix) {
			c.Profile.Flavor = c.Name
		} else if c.Name != "" {
			wrong = append(wrong, c.Violation("profile", missingProfile(c.Name, p.declared.profiles)))
		}
		fault, err := pr.resolveFlavor(ctx, p.target, &c.Profile)
		switch {
		case err != nil:
			return nil, err
		case fault != "":
			unknown = append(unknown, c.Violation("profile", fault))
		}
	}
	if len(wrong) > 0 {
		return nil, nf.E(nf.Invalid, "use", "compute profiles of VNF instance "+p.target.id, append(wrong, unknown...))
	}
	if len(unknown) > 0 {
		return nil, nf.E(nf.Unsupported, "use", "flavors of "+p.target.region, unknown)
	}
	return asked, nil
}

// missingProfile says that a package does not have a profile.
func missingProfile(name string, own map[string]nf.ComputeProfile) string {
	if len(own) == 0 {
		return fmt.Sprintf("%q is not a compute profile: the package has none; give the profile itself, or a flavor of the region", nf.Clip(name, 64))
	}
	return fmt.Sprintf("%q is not a compute profile of the package; it has %s", nf.Clip(name, 64), strings.Join(slices.Sorted(maps.Keys(own)), ", "))
}

// mostFlavors is how many flavors a violation lists.
const mostFlavors = 20

// resolveFlavor adds the labels of a profile's flavor. If the instance uses the flavor
// already, they stay as they are, whatever nodes the region has by now. It returns why the
// region does not have the flavor, or "".
func (pr *preparer) resolveFlavor(ctx context.Context, t target, profile *nf.ComputeProfile) (fault string, err error) {
	if profile.Flavor == "" {
		return "", nil
	}
	for _, use := range t.present.Compute {
		if use.Profile.Flavor == profile.Flavor {
			profile.FlavorNodes = use.Profile.FlavorNodes
			return "", nil
		}
	}
	if pr.regions == nil || pr.flavors == nil {
		return "", nf.E(nf.Unsupported, "use", "flavor "+profile.Flavor, errors.New("this service has no flavors"))
	}
	offers, err := pr.regions.RegionCapabilities(ctx, t.region, false)
	if err != nil {
		return "", err
	}
	if offers.Hides("", "nodes") {
		return fmt.Sprintf("cannot be found: the account of cloud region %s needs the rule %s", t.region, nf.MissingRule{Resource: "nodes", Verb: "list"}), nil
	}
	labels, found, names := pr.flavors(offers, profile.Flavor)
	if profile.FlavorNodes = labels; found {
		return "", nil
	}
	has := "it has none"
	if len(names) > 0 {
		has = "it has " + strings.Join(names[:min(len(names), mostFlavors)], ", ")
	}
	return fmt.Sprintf("cloud region %s has no flavor %q; %s", t.region, nf.Clip(profile.Flavor, 64), has), nil
}
