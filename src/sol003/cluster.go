package sol003

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// ClusterEngine is the engine of VNFs that make a Kubernetes cluster on hosts.
const ClusterEngine = "cluster"

// clustersParameter is the additional parameter with the Cluster objects of the VNF package
// that become cloud regions.
const clustersParameter = "workload_clusters"

// onHosts reports whether a request makes a cluster on hosts.
func onHosts(req nf.InstantiateVNFRequest) bool {
	_, given := req.Extra[nf.ClusterHostsParameter]
	return given
}

// NewRegions returns the cloud regions that an instantiation makes. A VNF on hosts runs in
// the region that it makes, and uses no VIM. It returns the errors of Instantiate for the
// parameters that name them.
func (m *Manager) NewRegions(ctx context.Context, id string, req nf.InstantiateVNFRequest) (made []string, hosts bool, err error) {
	if !onHosts(req) {
		clusters, err := clustersOf(req)
		return regionsOf(clusters), false, err
	}
	v, err := m.vnfs.Get(ctx, id)
	if err != nil {
		return nil, true, err
	}
	region, cloud, err := m.resolve.regionOnHosts(ctx, v, inputsOf(req.Extra, req.Flavor, req.Level))
	if cloud != "" {
		return []string{region, cloud}, true, err
	}
	return []string{region}, true, err
}

// regionOnHosts returns the cloud region that a VNF on hosts makes, and that in which it
// creates machines, or "".
func (rs resolver) regionOnHosts(ctx context.Context, v nf.VNF, inputs map[string]any) (region, cloud string, err error) {
	engine, found := rs.cfg.Engines[ClusterEngine]
	if !found {
		return "", "", nf.E(nf.Unsupported, string(nf.Instantiate), "VNF "+v.ID, errors.New("this service makes no clusters on hosts"))
	}
	return engine.Check(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: v.Package, Inputs: nf.Inputs{Parameters: inputs}}, ID: v.ID, Project: nf.ProjectOf(v.Project)})
}

// installation returns the record of the instantiation of a VNF on hosts. The credentials of
// the hosts are in the task alone.
func (rs resolver) installation(ctx context.Context, v nf.VNF, in nf.InstantiatedVNF, inputs map[string]any) (record, error) {
	region, _, err := rs.regionOnHosts(ctx, v, inputs)
	if err != nil {
		return record{}, err
	}
	_, err = rs.cfg.Regions.Region(ctx, region)
	switch {
	case err == nil:
		return record{}, nf.E(nf.Conflict, string(nf.Instantiate), "VNF "+v.ID, errors.New("cloud region "+region+" exists already; choose another vim_name"))
	case nf.KindOf(err) != nf.NotFound:
		return record{}, err
	}
	in.Engine, in.Region, in.Params = ClusterEngine, region, withoutHosts(in.Params)
	after := v
	after.Instantiated, after.VIMs = &in, nil
	makeRegions(&after, region)
	return record{Task: task{After: after, Inputs: inputs}}, nil
}

// withoutHosts returns parameters without the hosts and their credentials.
func withoutHosts(params map[string]any) map[string]any {
	if _, given := params[nf.ClusterHostsParameter]; !given {
		return params
	}
	params = maps.Clone(params)
	delete(params, nf.ClusterHostsParameter)
	return params
}

// clustersOf returns the clusters of Cluster API that a request makes regions of.
func clustersOf(req nf.InstantiateVNFRequest) ([]nf.WorkloadCluster, error) {
	value, given := req.Extra[clustersParameter]
	if !given {
		return nil, nil
	}
	wrong := nf.Violations{{Field: clustersParameter, Message: "must be a list of objects with cluster and cloud_region_id"}}
	var all []wire.WorkloadCluster
	text, err := json.Marshal(value)
	if err == nil && json.Unmarshal(text, &all) == nil {
		out := []nf.WorkloadCluster{}
		for _, w := range all {
			out = append(out, w.Domain())
		}
		if wrong = nf.CheckClusters(nf.RequestedClusters(out)); len(wrong) == 0 {
			return out, nil
		}
	}
	for i := range wrong {
		wrong[i].Field = "additionalParams." + wrong[i].Field
	}
	return nil, nf.E(nf.Invalid, string(nf.Instantiate), "the VNF", wrong)
}

func regionsOf(clusters []nf.WorkloadCluster) (out []string) {
	for _, w := range clusters {
		out = append(out, w.Region)
	}
	return out
}

// makeRegions connects a VNF to the VIMs that it makes. Their keys are the ids of the cloud
// regions.
func makeRegions(v *nf.VNF, regions ...string) {
	v.VIMs = maps.Clone(v.VIMs)
	if v.VIMs == nil {
		v.VIMs = map[string]nf.VIMConnection{}
	}
	for _, region := range regions {
		v.VIMs[region] = nf.VIMConnection{VIM: nf.Region{ID: region}.VIMID(), Region: region, Type: vimType, Made: true}
	}
}

// made returns the cloud regions that a VNF makes, ordered.
func made(v nf.VNF) (out []string) {
	for _, c := range v.VIMs {
		if c.Made {
			out = append(out, c.Region)
		}
	}
	slices.Sort(out)
	return out
}

// reached returns the connections of a VNF with the servers of the cloud regions that it has
// made.
func (rs resolver) reached(ctx context.Context, v nf.VNF) (map[string]nf.VIMConnection, error) {
	out := maps.Clone(v.VIMs)
	for key, c := range out {
		if !c.Made {
			continue
		}
		region, err := rs.cfg.Regions.Region(ctx, c.Region)
		if err := nf.IgnoreNotFound(err); err != nil {
			return nil, err
		}
		c.Server = region.Access.Server
		out[key] = c
	}
	return out, nil
}

// cascades reports whether a termination terminates what uses the cloud regions that the VNF
// has made. It returns nf.Invalid for a value that is not a boolean.
func cascades(req nf.TerminateVNFRequest) (bool, error) {
	value, given := req.Extra[nf.CascadeParameter]
	cascade, isFlag := value.(bool)
	if given && !isFlag {
		return false, nf.E(nf.Invalid, string(nf.Terminate), "the VNF", nf.Violations{{Field: "additionalParams." + nf.CascadeParameter, Message: "must be true or false"}})
	}
	return cascade, nil
}

// vacant returns nf.Conflict, which names the users, if something uses a cloud region that a
// VNF has made.
func (rs resolver) vacant(ctx context.Context, v nf.VNF) error {
	var used nf.Violations
	for _, region := range made(v) {
		for user, err := range rs.cfg.Regions.Users(ctx, nf.Holding{Region: region}) {
			if err != nil {
				return err
			}
			used = append(used, nf.Violation{}.Saying(nf.Textf("its cloud region %s is used by %s", region, user.Mention())))
		}
	}
	if len(used) == 0 {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: string(nf.Terminate), Subject: "VNF " + v.ID, Reason: nf.ReasonHeld, Err: used}
}

// vacate terminates the VNFs in the cloud regions that the VNF has made, one after another,
// if the request asks for it. Instances that are no VNFs are left to the engine.
func (r *run) vacate(ctx context.Context) error {
	if !r.record().Task.Cascade {
		return nil
	}
	for _, region := range made(r.vnf) {
		var users []string
		for user, err := range r.m.cfg.Regions.Users(ctx, nf.Holding{Region: region}) {
			if err != nil {
				return err
			}
			if user.Kind == nf.InstanceSubject {
				users = append(users, user.ID)
			}
		}
		if len(users) > 0 { // from now on, something has changed
			if err := r.journal.save(ctx, stateOf(r.op().Verb), r.vnf, nil); err != nil {
				return err
			}
		}
		for _, id := range users {
			if err := r.terminate(ctx, id); err != nil {
				return nf.About(id, err)
			}
		}
	}
	return nil
}

// terminate terminates another VNF, and waits until its occurrence ends. An occurrence that
// runs there may be a termination that an earlier process has begun.
func (r *run) terminate(ctx context.Context, id string) error {
	for {
		v, err := r.m.vnfs.Get(ctx, id)
		if err != nil || v.Instantiated == nil {
			return nf.IgnoreNotFound(err) // an instance of another API
		}
		if err := r.attempt.Held(ctx); err != nil {
			return err
		}
		key := nf.RequestKey{Client: "sol003", Key: r.op().ID}
		o, err := r.m.Terminate(ctx, id, nf.TerminateVNFRequest{VNFRequest: nf.VNFRequest{
			Key: key, Trace: r.record().Task.Trace, Params: json.RawMessage(`{"terminationType":"GRACEFUL"}`), Extra: map[string]any{nf.CascadeParameter: true},
		}})
		other := nf.OperationOf(err)
		switch {
		case err == nil:
			other = o.Attempts[len(o.Attempts)-1]
		case nf.KindOf(err) != nf.Busy || other == "":
			return err
		}
		ended, waited := r.attempt.Await(ctx, other)
		if waited != nil {
			return waited
		}
		if err == nil {
			return ended.Err()
		}
	}
}
