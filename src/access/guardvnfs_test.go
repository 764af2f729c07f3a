package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// vnfKeeper keeps one VNF with one occurrence.
type vnfKeeper struct {
	project, region string
	operation       nf.OccurrenceOperation
	made            string // region that the VNF makes; empty: none
	hosts           bool
}

func (k vnfKeeper) vnf() nf.VNF {
	v := nf.VNF{ID: "vnf", Project: k.project}
	if k.operation != nf.OccurrenceInstantiate {
		v.Instantiated = &nf.InstantiatedVNF{Region: k.region}
	}
	if k.made != "" {
		v.VIMs = map[string]nf.VIMConnection{k.made: {Region: k.made, Made: true}, "other": {Region: accesstest.East}}
	}
	return v
}

func (k vnfKeeper) occurrence() nf.Occurrence {
	return nf.Occurrence{ID: "occurrence", VNF: "vnf", Project: k.project, Region: k.region, Operation: k.operation}
}

func (k vnfKeeper) Create(_ context.Context, v nf.VNF) (nf.VNF, error) { return v, nil }
func (k vnfKeeper) VNF(context.Context, string) (nf.VNF, error)        { return k.vnf(), nil }
func (k vnfKeeper) Delete(context.Context, string) error               { return nil }

func (k vnfKeeper) VNFsFrom(context.Context, nf.Cursor) iter.Seq2[nf.VNF, error] {
	return sequence([]nf.VNF{k.vnf()})
}

func (k vnfKeeper) Occurrence(context.Context, string) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) OccurrencesFrom(context.Context, nf.Cursor) iter.Seq2[nf.Occurrence, error] {
	return sequence([]nf.Occurrence{k.occurrence()})
}

func (k vnfKeeper) Instantiate(context.Context, string, nf.InstantiateVNFRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) Terminate(context.Context, string, nf.TerminateVNFRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) Scale(context.Context, string, nf.ScaleVNFRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) Heal(context.Context, string, nf.HealVNFRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) Modify(context.Context, string, nf.ModifyVNFRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) Connect(context.Context, string, nf.ConnectVNFRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (k vnfKeeper) ChangePackage(context.Context, string, nf.ChangeVNFPackageRequest) (nf.Occurrence, error) {
	return k.occurrence(), nil
}

func (vnfKeeper) Retry(context.Context, string, nf.RequestKey) error    { return nil }
func (vnfKeeper) Rollback(context.Context, string, nf.RequestKey) error { return nil }
func (vnfKeeper) Cancel(context.Context, string, bool) error            { return nil }

func (k vnfKeeper) Fail(context.Context, string) (nf.Occurrence, error) { return k.occurrence(), nil }

func (k vnfKeeper) PackageOf(_ context.Context, project, _ string) (nf.Package, error) {
	return nf.Package{ID: "csar", Project: project}, nil
}

func (k vnfKeeper) RegionsOf(context.Context, map[string]nf.VIMConnectionRequest) (map[string]nf.Region, error) {
	return map[string]nf.Region{"default": {ID: k.region}}, nil
}

func (k vnfKeeper) NewRegions(context.Context, string, nf.InstantiateVNFRequest) ([]string, bool, error) {
	if k.made == "" {
		return nil, false, nil
	}
	return []string{k.made}, k.hosts, nil
}

// TestVNFMakesRegions: to make a region, or to remove it, takes what it takes to register it.
func TestVNFMakesRegions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cascade := nf.TerminateVNFRequest{VNFRequest: nf.VNFRequest{Extra: map[string]any{"cascade": true}}}
	cases := map[string]struct {
		reason   string
		identity string
		keeper   vnfKeeper
		call     func(ctx context.Context, vs access.VNFs) error
		want     nf.Kind // 0: it may
	}{
		"All": {"who may do everything may do this", "admin-all", vnfKeeper{made: accesstest.West, hosts: true, operation: nf.OccurrenceInstantiate}, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Instantiate(ctx, "vnf", nf.InstantiateVNFRequest{}))
		}, 0},
		"Hosts": {"without region:write, no region is made", "admin-a", vnfKeeper{made: accesstest.East, hosts: true, operation: nf.OccurrenceInstantiate}, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Instantiate(ctx, "vnf", nf.InstantiateVNFRequest{}))
		}, nf.Forbidden},
		"Cluster": {"nor of a cluster of Cluster API", "admin-a", vnfKeeper{made: accesstest.East, operation: nf.OccurrenceInstantiate}, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Instantiate(ctx, "vnf", nf.InstantiateVNFRequest{}))
		}, nf.Forbidden},
		"Terminate": {"without region:write, no region is removed", "admin-a", vnfKeeper{made: accesstest.East}, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Terminate(ctx, "vnf", nf.TerminateVNFRequest{}))
		}, nf.Forbidden},
		"Cascade": {"who may do everything may cascade", "admin-all", vnfKeeper{made: accesstest.West}, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Terminate(ctx, "vnf", cascade))
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.keeper.project, tc.keeper.region = accesstest.ProjectA, accesstest.East
			err := tc.call(h.as(t, tc.identity), access.NewVNFs(h.Guarded, tc.keeper))
			if tc.want == 0 && err != nil || tc.want != 0 && nf.KindOf(err) != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// vnfCall is a method of the guard and the permissions that it requires.
type vnfCall struct {
	operation nf.OccurrenceOperation // of the occurrence; INSTANTIATE: the VNF has no region
	need      nf.Permission          // empty: to read is enough
	packaged  bool                   // the request names a package
	call      func(ctx context.Context, vs access.VNFs) error
}

// second returns the error of a call that also returns a value.
func second[T any](_ T, err error) error { return err }

func vnfCalls() map[string]vnfCall {
	vnfd := "vnfd"
	return map[string]vnfCall{
		"VNF":        {nf.OccurrenceScale, "", false, func(ctx context.Context, vs access.VNFs) error { return second(vs.VNF(ctx, "vnf")) }},
		"Occurrence": {nf.OccurrenceScale, "", false, func(ctx context.Context, vs access.VNFs) error { return second(vs.Occurrence(ctx, "o")) }},
		"Delete":     {nf.OccurrenceScale, nf.RemoveInstance, false, func(ctx context.Context, vs access.VNFs) error { return vs.Delete(ctx, "vnf") }},
		"Terminate": {nf.OccurrenceTerminate, nf.RemoveInstance, false, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Terminate(ctx, "vnf", nf.TerminateVNFRequest{}))
		}},
		"Scale": {nf.OccurrenceScale, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Scale(ctx, "vnf", nf.ScaleVNFRequest{}))
		}},
		"Heal": {nf.OccurrenceHeal, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Heal(ctx, "vnf", nf.HealVNFRequest{}))
		}},
		"Modify": {nf.OccurrenceModify, nf.ChangeInstance, true, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Modify(ctx, "vnf", nf.ModifyVNFRequest{VNFD: &vnfd}))
		}},
		"Connect": {nf.OccurrenceConnectivity, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.Connect(ctx, "vnf", nf.ConnectVNFRequest{}))
		}},
		"ChangePackage": {nf.OccurrenceCurrentPackage, nf.ChangeInstance, true, func(ctx context.Context, vs access.VNFs) error {
			return second(vs.ChangePackage(ctx, "vnf", nf.ChangeVNFPackageRequest{VNFD: vnfd}))
		}},
		"Retry":            {nf.OccurrenceScale, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error { return vs.Retry(ctx, "o", nf.RequestKey{}) }},
		"Rollback":         {nf.OccurrenceScale, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error { return vs.Rollback(ctx, "o", nf.RequestKey{}) }},
		"Fail":             {nf.OccurrenceScale, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error { return second(vs.Fail(ctx, "o")) }},
		"Cancel":           {nf.OccurrenceScale, nf.ChangeInstance, false, func(ctx context.Context, vs access.VNFs) error { return vs.Cancel(ctx, "o", true) }},
		"CancelTerminate":  {nf.OccurrenceTerminate, nf.RemoveInstance, false, func(ctx context.Context, vs access.VNFs) error { return vs.Cancel(ctx, "o", true) }},
		"RetryInstantiate": {nf.OccurrenceInstantiate, nf.CreateInstance, false, func(ctx context.Context, vs access.VNFs) error { return vs.Retry(ctx, "o", nf.RequestKey{}) }},
	}
}

// TestVNFs makes every call by every identity on a VNF in each project and region.
func TestVNFs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, tc := range vnfCalls() {
		t.Run(name, func(t *testing.T) {
			for _, who := range accesstest.People() {
				for _, scope := range []nf.Scope{{Project: accesstest.ProjectA, Region: accesstest.East}, {Project: accesstest.ProjectA, Region: accesstest.West}, {Project: accesstest.ProjectB, Region: accesstest.East}} {
					vs := access.NewVNFs(h.Guarded, vnfKeeper{project: scope.Project, region: scope.Region, operation: tc.operation})
					want := nf.Internal // no error
					switch {
					case who == accesstest.Anonymous:
						want = nf.Unauthenticated
					case !accesstest.May(who, nf.ReadInstance, scope):
						want = nf.NotFound
					case tc.need != "" && !accesstest.May(who, tc.need, scope):
						want = nf.Forbidden
					case tc.packaged && !accesstest.May(who, nf.ReadPackage, nf.Scope{Project: scope.Project}):
						want = nf.Unsupported
					}
					if err := tc.call(h.as(t, who), vs); refusal(err) != want {
						t.Errorf("%s by %q in %+v: %v, want %s", name, who, scope, err, want)
					}
				}
			}
		})
	}
}

// TestVNFsNew creates and instantiates VNFs by every identity, and lists them.
func TestVNFsNew(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, who := range accesstest.People() {
		project, both := nf.Scope{Project: accesstest.ProjectA}, nf.Scope{Project: accesstest.ProjectA, Region: accesstest.East}
		ctx, vs := h.as(t, who), access.NewVNFs(h.Guarded, vnfKeeper{project: project.Project, region: both.Region, operation: nf.OccurrenceInstantiate})
		may := func(p nf.Permission, s nf.Scope) bool {
			return who != accesstest.Anonymous && accesstest.May(who, p, s)
		}
		if _, err := vs.Create(ctx, nf.VNF{Project: project.Project, VNFD: nf.VNFD{ID: "vnfd"}}); (err == nil) != (may(nf.CreateInstance, project) && may(nf.ReadPackage, project)) {
			t.Errorf("%q creates a VNF: %v", who, err)
		}
		attached := nf.InstantiateVNFRequest{Networks: []nf.Attachment{{Network: "oam", Create: &nf.Creation{}}}}
		creates := may(nf.ReadInstance, project) && may(nf.CreateInstance, both) && may(nf.ReadRegion, nf.Scope{Region: both.Region})
		o, err := vs.Instantiate(ctx, "vnf", nf.InstantiateVNFRequest{VNFRequest: nf.VNFRequest{Check: true}})
		if may := may(nf.ReadInstance, project) && may(nf.CreateInstance, project); (err == nil) != may || (o.ID == "occurrence") != may {
			t.Errorf("%q checks whether it can be instantiated: %+v, %v", who, o, err)
		}
		if _, err := vs.Instantiate(ctx, "vnf", nf.InstantiateVNFRequest{}); (err == nil) != creates {
			t.Errorf("%q instantiates it: %v", who, err)
		}
		if _, err := vs.Instantiate(ctx, "vnf", attached); (err == nil) != (creates && may(nf.WriteNetwork, both)) {
			t.Errorf("%q instantiates it with a new network: %v", who, err)
		}
		vnfs, occurrences := 0, 0
		for _, err := range vs.VNFsFrom(ctx, nf.Cursor{}) {
			if err == nil {
				vnfs++
			}
		}
		for _, err := range vs.OccurrencesFrom(ctx, nf.Cursor{}) {
			if err == nil {
				occurrences++
			}
		}
		if vnfs == 1 != may(nf.ReadInstance, project) || occurrences == 1 != may(nf.ReadInstance, both) {
			t.Errorf("%q sees %d VNFs and %d occurrences", who, vnfs, occurrences)
		}
	}
}

// TestVNFsInOwnProject creates a VNF and a subscription with a token that has a project.
func TestVNFsInOwnProject(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := h.as(t, "admin-all")
	id, _ := nf.IdentityOf(ctx)
	id.Project = accesstest.ProjectA
	ctx = nf.WithIdentity(ctx, id)
	for asked, want := range map[string]string{"": accesstest.ProjectA, accesstest.ProjectB: accesstest.ProjectB} {
		v, err := access.NewVNFs(h.Guarded, vnfKeeper{}).Create(ctx, nf.VNF{Project: asked})
		if err != nil || v.Project != want {
			t.Errorf("a VNF for project %q is in %q: %v", asked, v.Project, err)
		}
		s, err := access.NewVNFSubscriptions(h.Guarded, &oneSubscription{}).Subscribe(ctx, nf.VNFSubscription{Project: asked})
		if err != nil || s.Project != want {
			t.Errorf("a subscription for project %q is in %q: %v", asked, s.Project, err)
		}
	}
}
