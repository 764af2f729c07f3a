package sol003

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// The additional parameters that the ledger knows.
const (
	filesParameter     = "lcm-kubernetes-def-files"
	chartParameter     = "helm_chart_path"
	namespaceParameter = "namespace"
)

// Instantiate accepts the instantiation of a VNF. It returns nf.Invalid for an unknown
// flavor or level, and for files that are not artifacts of the package; nf.NotFound for an
// unknown VIM; nf.Unsupported for a VIM that cannot be used; and nf.Conflict if the VNF is
// instantiated. Other errors of the package and the region end the
// occurrence as rolled back.
func (m *Manager) Instantiate(ctx context.Context, id string, req nf.InstantiateVNFRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceInstantiate, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		in, inputs, err := m.resolve.instantiation(ctx, v, req)
		if err != nil {
			return record{}, err
		}
		if onHosts(req) && !req.Check {
			return m.resolve.installation(ctx, v, in, inputs)
		}
		clusters, err := clustersOf(req)
		if err != nil {
			return record{}, err
		}
		after := v
		after.Instantiated = &in
		if req.Check {
			return record{Task: task{After: after, Inputs: inputs}}, namespaced(v, &in, nf.Region{})
		}
		vims, region, err := m.resolve.connections(ctx, req.VIMs)
		if err != nil {
			return record{}, err
		}
		if err := m.resolve.place(ctx, v, &in, region, req); err != nil {
			return record{}, err
		}
		after.VIMs = vims
		makeRegions(&after, regionsOf(clusters)...)
		after.Extensions, after.Configurable = merged(v.Extensions, req.Extensions), merged(v.Configurable, req.Configurable)
		return record{Task: task{After: after, Inputs: inputs, Attach: req.Networks, Workloads: clusters}}, checkTexts(string(nf.Instantiate), "VNF "+v.ID, after)
	})
}

// place makes an instantiation one in a region.
func (rs resolver) place(ctx context.Context, v nf.VNF, in *nf.InstantiatedVNF, region nf.Region, req nf.InstantiateVNFRequest) error {
	in.Region = region.ID
	if region.Type == nf.OpenStackRegion {
		return rs.stacking(ctx, v, in, req)
	}
	return namespaced(v, in, region)
}

// namespaced gives an instantiation its namespace: that of the request, or else the default
// one of its region.
func namespaced(v nf.VNF, in *nf.InstantiatedVNF, region nf.Region) error {
	given, _ := in.Params[namespaceParameter].(string)
	in.Namespace = cmp.Or(given, region.DefaultNamespace, "default")
	if faults := nf.CheckNamespace("additionalParams.namespace", in.Namespace); len(faults) > 0 {
		return nf.E(nf.Invalid, string(nf.Instantiate), "VNF "+v.ID, faults)
	}
	return nil
}

// usable returns the package of a VNF. It returns nf.Unsupported if the package is
// disabled.
func (rs resolver) usable(ctx context.Context, v nf.VNF) (nf.Package, error) {
	p, err := rs.cfg.Packages.Package(ctx, v.Package)
	if err != nil {
		return p, err
	}
	if p.Disabled || p.State() != nf.PackageOnboarded || p.VNFD == nil {
		return p, unusable(v.VNFD.ID)
	}
	return p, nil
}

// instantiation returns what a VNF is to be, without its region, and the parameters of its
// package. It returns nf.Conflict if the VNF is instantiated.
func (rs resolver) instantiation(ctx context.Context, v nf.VNF, req nf.InstantiateVNFRequest) (nf.InstantiatedVNF, map[string]any, error) {
	in := nf.InstantiatedVNF{Flavor: req.Flavor, Level: req.Level, Params: withoutSecrets(req.Extra)}
	if v.Instantiated != nil {
		return in, nil, nf.E(nf.Conflict, string(nf.Instantiate), "VNF "+v.ID, errors.New("it is instantiated already"))
	}
	p, err := rs.usable(ctx, v)
	if err != nil {
		return in, nil, err
	}
	flavor, err := rs.flavor(ctx, p.ID, req.Flavor)
	if err != nil {
		return in, nil, err
	}
	if _, err := flavor.Level(req.Level); err != nil {
		return in, nil, err
	}
	in.Scale, in.MaxScale = scaleOf(flavor, req.Level)
	if in.Files, err = filesOf(nf.Instantiate, v, p, req.Extra); err != nil {
		return in, nil, err
	}
	if in.Namespace, err = textOf(nf.Instantiate, v, req.Extra, namespaceParameter); err != nil {
		return in, nil, err
	}
	return in, inputsOf(req.Extra, req.Flavor, orDefault(req.Level, flavor.DefaultLevel)), nil
}

const maxQuote = 200

// flavor returns a deployment flavor of a package. It returns nf.Invalid if the package has
// none with the id.
func (rs resolver) flavor(ctx context.Context, pkg, id string) (tosca.Flavor, error) {
	topology, err := rs.cfg.Descriptors.Topology(ctx, pkg)
	if err != nil {
		return tosca.Flavor{}, fmt.Errorf("cannot read the VNF descriptor of package %s: %w", pkg, err)
	}
	return topology.Flavor(id)
}

// scaleOf returns the levels of the scaling aspects of a flavor at an instantiation level,
// and the highest ones.
func scaleOf(f tosca.Flavor, level string) (levels, highest map[string]int) {
	if len(f.Aspects) == 0 {
		return nil, nil
	}
	highest = map[string]int{}
	for id, aspect := range f.Aspects {
		highest[id] = aspect.MaxLevel
	}
	return f.AspectLevels(level), highest
}

// inputsOf returns the parameters of a package.
func inputsOf(extra map[string]any, flavor, level string) map[string]any {
	inputs := maps.Clone(extra)
	if inputs == nil {
		inputs = map[string]any{}
	}
	delete(inputs, namespaceParameter)
	delete(inputs, clustersParameter)
	delete(inputs, nf.ScaleParameter) // scaleStatus has the levels
	delete(inputs, nf.HookHostsParameter)
	delete(inputs, nf.HookSecretParameter)
	inputs[nf.FlavorParameter] = flavor
	if level != "" {
		inputs[nf.LevelParameter] = level
	}
	return inputs
}

// filesOf returns the files that additional parameters select. It returns nf.Invalid for
// one that is not an artifact of the package.
func filesOf(verb nf.Verb, v nf.VNF, p nf.Package, extra map[string]any) ([]string, error) {
	var files []string
	for _, parameter := range [...]string{filesParameter, chartParameter} {
		value, given := extra[parameter]
		if !given {
			continue
		}
		items, isList := value.([]any)
		if !isList || parameter == chartParameter {
			items = []any{value}
		}
		for _, item := range items {
			name, isText := item.(string)
			if !isText || !slices.ContainsFunc(p.VNFD.Artifacts, func(a nf.PackageArtifact) bool { return a.Path == name }) {
				return nil, invalid(verb, v, "additionalParams."+parameter, "%s is not an artifact of the package", nf.Clip(fmt.Sprintf("%q", item), maxQuote))
			}
			if parameter == filesParameter {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

// textOf returns a parameter that is a text; empty if it is not given.
func textOf(verb nf.Verb, v nf.VNF, extra map[string]any, parameter string) (string, error) {
	value, given := extra[parameter]
	text, isText := value.(string)
	if given && !isText {
		return "", invalid(verb, v, "additionalParams."+parameter, "must be a string")
	}
	return text, nil
}

// defaultVIM is the key of the connection of a VNF whose request names no VIM.
const defaultVIM = "default"

// connections returns the connections of a request, and the region of the first one.
func (rs resolver) connections(ctx context.Context, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnection, nf.Region, error) {
	regions, err := rs.regionsOf(ctx, wanted)
	if err != nil {
		return nil, nf.Region{}, err
	}
	out := map[string]nf.VIMConnection{}
	for key, r := range regions {
		kind := vimType
		if r.Type == nf.OpenStackRegion {
			kind = cloudType
		}
		out[key] = nf.VIMConnection{VIM: r.VIMID(), Region: r.ID, Type: orDefault(wanted[key].Type, kind), Extra: wanted[key].Extra}
	}
	return out, regions[slices.Sorted(maps.Keys(regions))[0]], nil
}

// The types of VIMs.
const (
	vimType   = "ETSINFV.KUBERNETES.V_1"
	cloudType = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
)

func orDefault(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// regionsOf is Manager.RegionsOf.
func (rs resolver) regionsOf(ctx context.Context, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.Region, error) {
	out := map[string]nf.Region{}
	for r, err := range rs.cfg.Regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return nil, err
		}
		if len(wanted) == 0 && r.VIM != nil && r.VIM.Default {
			out[defaultVIM] = r
		}
		for key, w := range wanted {
			if r.IsVIM(w.VIM) || has(r, serverOf(w)) && (out[key].ID == "" || !out[key].IsVIM(w.VIM)) {
				out[key] = r
			}
		}
	}
	if len(wanted) == 0 && len(out) == 0 {
		return nil, nf.E(nf.NotFound, "use", "the default VIM", nil)
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if _, found := out[key]; !found {
			return nil, nf.E(nf.NotFound, "use", "VIM "+strconv.Quote(nf.Clip(orDefault(wanted[key].VIM, serverOf(wanted[key])), maxQuote)), nil)
		}
	}
	return out, rs.usableVIMs(out)
}

// has reports whether a region has an API server. Clients of Tacker send the access to a VIM
// with an id that no VIM need have. A region whose access is that of another request is not
// found by its server.
func has(r nf.Region, server string) bool { return r.Origin != nf.OriginVNF && r.Serves(server) }

// usableVIMs returns nf.Unsupported if VNFs cannot run in one of the regions.
func (rs resolver) usableVIMs(regions map[string]nf.Region) error {
	for _, r := range regions {
		if r.Type == nf.OpenStackRegion && rs.cfg.Clouds == nil {
			return nf.E(nf.Unsupported, "use", "VIM "+r.VIMName(), errors.New("it is an OpenStack cloud; VNFs run on Kubernetes clusters"))
		}
	}
	return nil
}

// serverOf returns the URL of the API server that a connection of a request names.
func serverOf(w nf.VIMConnectionRequest) string {
	server, _ := w.Interface["endpoint"].(string)
	return server
}

// Terminate accepts the termination of a VNF. A graceful one gives the pods their own grace
// periods, but at most the one of the request. A forceful one kills them. It returns
// nf.Conflict if the VNF is not instantiated, and if something uses a cloud region that the
// VNF has made, unless additionalParams has cascade: true.
func (m *Manager) Terminate(ctx context.Context, id string, req nf.TerminateVNFRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceTerminate, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		if err := instantiated(nf.Terminate, v); err != nil {
			return record{}, err
		}
		cascade, err := cascades(req)
		if err == nil && !cascade {
			err = m.resolve.vacant(ctx, v)
		}
		after := v
		after.Instantiated, after.VIMs = nil, nil
		return record{Task: task{After: after, Cascade: cascade, Grace: graceOf(req)}}, err
	})
}

// graceOf returns the longest grace period of the pods of a VNF that is terminated; nil:
// their own ones.
func graceOf(req nf.TerminateVNFRequest) *time.Duration {
	switch {
	case req.Forceful:
		return new(time.Duration(0))
	case req.Grace > 0:
		return &req.Grace
	}
	return nil
}
