package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// onePM is a keeper of one job with one report, and of one threshold.
type onePM struct {
	target  nf.PMTarget
	changes int
}

var _ access.PMKeeper = (*onePM)(nil)

func (k *onePM) find(id string) (nf.PMTarget, error) {
	if id != k.target.ID {
		return nf.PMTarget{}, nf.E(nf.NotFound, "read", "that", nil)
	}
	return k.target, nil
}

func (k *onePM) CreateJob(_ context.Context, job nf.PMJob, _ nf.CallbackAuth) (nf.PMJob, error) {
	k.changes++
	return job, nil
}

func (k *onePM) Job(_ context.Context, id string) (nf.PMJob, error) {
	t, err := k.find(id)
	return nf.PMJob{PMTarget: t}, err
}

func (k *onePM) JobsFrom(context.Context, nf.Cursor) iter.Seq2[nf.PMJob, error] {
	return func(yield func(nf.PMJob, error) bool) { yield(nf.PMJob{PMTarget: k.target}, nil) }
}

func (k *onePM) ModifyJob(ctx context.Context, id string, _ nf.PMModification) (nf.PMJob, error) {
	k.changes++
	return k.Job(ctx, id)
}

func (k *onePM) DeleteJob(context.Context, string) error { k.changes++; return nil }

func (k *onePM) Report(_ context.Context, job, id string) (nf.PMReport, error) {
	return nf.PMReport{Job: job, PMReportRef: nf.PMReportRef{ID: id}}, nil
}

func (k *onePM) CreateThreshold(_ context.Context, t nf.PMThreshold, _ nf.CallbackAuth) (nf.PMThreshold, error) {
	k.changes++
	return t, nil
}

func (k *onePM) Threshold(_ context.Context, id string) (nf.PMThreshold, error) {
	t, err := k.find(id)
	return nf.PMThreshold{PMTarget: t}, err
}

func (k *onePM) ThresholdsFrom(context.Context, nf.Cursor) iter.Seq2[nf.PMThreshold, error] {
	return func(yield func(nf.PMThreshold, error) bool) { yield(nf.PMThreshold{PMTarget: k.target}, nil) }
}

func (k *onePM) ModifyThreshold(ctx context.Context, id string, _ nf.PMModification) (nf.PMThreshold, error) {
	k.changes++
	return k.Threshold(ctx, id)
}

func (k *onePM) DeleteThreshold(context.Context, string) error { k.changes++; return nil }

// TestGuardedVNFPerformance lets every identity read and change a job and a threshold.
func TestGuardedVNFPerformance(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := nf.Scope{Project: accesstest.ProjectA}
	tried := map[nf.Kind]int{}
	for _, who := range accesstest.People() {
		reading, changing, creating := nf.Internal, nf.Internal, nf.Internal // allowed
		if !accesstest.May(who, nf.ChangeInstance, in) {
			changing, creating = nf.Forbidden, nf.Forbidden
		}
		if !accesstest.May(who, nf.ReadInstance, in) {
			reading, changing = nf.NotFound, nf.NotFound
		}
		if who == accesstest.Anonymous {
			reading, changing, creating = nf.Unauthenticated, nf.Unauthenticated, nf.Unauthenticated
		}
		ctx, kept := h.as(t, who), &onePM{target: nf.PMTarget{ID: "a", Project: in.Project}}
		guarded := access.NewVNFPerformance(h.Guarded, kept)
		want := func(call string, kind nf.Kind, err error) {
			if (err == nil) != (kind == nf.Internal) || err != nil && nf.KindOf(err) != kind {
				t.Errorf("%s by %s: %v, want %s", call, who, err, kind)
			}
			tried[kind]++
		}
		_, err := guarded.CreateJob(ctx, nf.PMJob{PMTarget: kept.target}, nf.CallbackAuth{})
		want("CreateJob", creating, err)
		_, err = guarded.CreateThreshold(ctx, nf.PMThreshold{PMTarget: kept.target}, nf.CallbackAuth{})
		want("CreateThreshold", creating, err)
		_, err = guarded.Job(ctx, "a")
		want("Job", reading, err)
		_, err = guarded.Report(ctx, "a", "r")
		want("Report", reading, err)
		_, err = guarded.Threshold(ctx, "a")
		want("Threshold", reading, err)
		_, err = guarded.ModifyJob(ctx, "a", nf.PMModification{})
		want("ModifyJob", changing, err)
		_, err = guarded.ModifyThreshold(ctx, "a", nf.PMModification{})
		want("ModifyThreshold", changing, err)
		want("DeleteJob", changing, guarded.DeleteJob(ctx, "a"))
		want("DeleteThreshold", changing, guarded.DeleteThreshold(ctx, "a"))
		shown := count(guarded.JobsFrom(ctx, nf.Cursor{})) + count(guarded.ThresholdsFrom(ctx, nf.Cursor{}))
		if (shown == 2) != (reading == nf.Internal) || (kept.changes == 6) != (changing == nf.Internal && creating == nf.Internal) {
			t.Errorf("%s is shown %d objects and makes %d changes", who, shown, kept.changes)
		}
	}
	if len(tried) < 4 {
		t.Errorf("only the outcomes %v were tried", tried)
	}
}

func count[T any](all iter.Seq2[T, error]) (n int) {
	for _, err := range all {
		if err == nil {
			n++
		}
	}
	return n
}
