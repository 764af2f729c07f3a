package access

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// PMJobKeeper stores the PM jobs of SOL003, and their reports.
type PMJobKeeper interface {
	CreateJob(ctx context.Context, job nf.PMJob, auth nf.CallbackAuth) (nf.PMJob, error)
	Job(ctx context.Context, id string) (nf.PMJob, error)
	JobsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMJob, error]
	ModifyJob(ctx context.Context, id string, change nf.PMModification) (nf.PMJob, error)
	DeleteJob(ctx context.Context, id string) error
}

// PMReportKeeper stores the reports of PM jobs.
type PMReportKeeper interface {
	Report(ctx context.Context, job, id string) (nf.PMReport, error)
}

// PMThresholdKeeper stores the thresholds of SOL003.
type PMThresholdKeeper interface {
	CreateThreshold(ctx context.Context, t nf.PMThreshold, auth nf.CallbackAuth) (nf.PMThreshold, error)
	Threshold(ctx context.Context, id string) (nf.PMThreshold, error)
	ThresholdsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMThreshold, error]
	ModifyThreshold(ctx context.Context, id string, change nf.PMModification) (nf.PMThreshold, error)
	DeleteThreshold(ctx context.Context, id string) error
}

// PMKeeper stores PM jobs, their reports, and thresholds.
type PMKeeper interface {
	PMJobKeeper
	PMReportKeeper
	PMThresholdKeeper
}

// VNFPerformance gives access to a PMKeeper with the permissions of the identity in the
// context. A job and a threshold belong to their project, in all regions, as
// subscriptions do. Reading requires instance:read, and changing instance:change.
type VNFPerformance struct {
	guard  *guard
	keeper PMKeeper
}

var _ PMKeeper = VNFPerformance{}

// NewVNFPerformance returns the guarded jobs and thresholds of a keeper.
func NewVNFPerformance(guarded *Guarded, keeper PMKeeper) VNFPerformance {
	return VNFPerformance{guarded.guard, keeper}
}

func pmScope(t nf.PMTarget) nf.Scope { return nf.Scope{Project: nf.ProjectOf(t.Project)} }

// creates checks whether the identity may create a target, in its own project by default.
func (v VNFPerformance) creates(ctx context.Context, t *nf.PMTarget) error {
	inOwnProject(ctx, &t.Project)
	return v.guard.may(ctx, nf.ChangeInstance, pmScope(*t), t.VNFs...)
}

// sees returns the error of reading a target that was read, or that the identity may not
// read it.
func (v VNFPerformance) sees(ctx context.Context, t nf.PMTarget, hidden, err error) error {
	if err != nil {
		return orAbsent(err, hidden)
	}
	return v.guard.see(ctx, nf.ReadInstance, pmScope(t), hidden)
}

// changes checks whether the identity may change a target that it may read.
func (v VNFPerformance) changes(ctx context.Context, t nf.PMTarget, err error) error {
	if err != nil {
		return err
	}
	return v.guard.may(ctx, nf.ChangeInstance, pmScope(t), t.ID)
}

// CreateJob requires instance:change in the project.
func (v VNFPerformance) CreateJob(ctx context.Context, job nf.PMJob, auth nf.CallbackAuth) (nf.PMJob, error) {
	if err := v.creates(ctx, &job.PMTarget); err != nil {
		return nf.PMJob{}, err
	}
	return v.keeper.CreateJob(ctx, job, auth)
}

// Job requires instance:read in the project.
func (v VNFPerformance) Job(ctx context.Context, id string) (nf.PMJob, error) {
	job, err := v.keeper.Job(ctx, id)
	if err := v.sees(ctx, job.PMTarget, absent("PM job", id), err); err != nil {
		return nf.PMJob{}, err
	}
	return job, nil
}

// JobsFrom yields the jobs that the identity may read.
func (v VNFPerformance) JobsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMJob, error] {
	return shownTargets(ctx, v.guard, v.keeper.JobsFrom(ctx, from), func(j nf.PMJob) nf.Scope { return pmScope(j.PMTarget) })
}

// ModifyJob requires instance:change in the project.
func (v VNFPerformance) ModifyJob(ctx context.Context, id string, change nf.PMModification) (nf.PMJob, error) {
	job, err := v.Job(ctx, id)
	if err := v.changes(ctx, job.PMTarget, err); err != nil {
		return nf.PMJob{}, err
	}
	job, err = v.keeper.ModifyJob(ctx, id, change)
	return job, orAbsent(err, absent("PM job", id))
}

// DeleteJob requires instance:change in the project.
func (v VNFPerformance) DeleteJob(ctx context.Context, id string) error {
	job, err := v.Job(ctx, id)
	if err := v.changes(ctx, job.PMTarget, err); err != nil {
		return err
	}
	return orAbsent(v.keeper.DeleteJob(ctx, id), absent("PM job", id))
}

// Report requires instance:read in the project of the job.
func (v VNFPerformance) Report(ctx context.Context, job, id string) (nf.PMReport, error) {
	if _, err := v.Job(ctx, job); err != nil {
		return nf.PMReport{}, err
	}
	r, err := v.keeper.Report(ctx, job, id)
	return r, orAbsent(err, absent("PM report", id))
}

// CreateThreshold requires instance:change in the project.
func (v VNFPerformance) CreateThreshold(ctx context.Context, t nf.PMThreshold, auth nf.CallbackAuth) (nf.PMThreshold, error) {
	if err := v.creates(ctx, &t.PMTarget); err != nil {
		return nf.PMThreshold{}, err
	}
	return v.keeper.CreateThreshold(ctx, t, auth)
}

// Threshold requires instance:read in the project.
func (v VNFPerformance) Threshold(ctx context.Context, id string) (nf.PMThreshold, error) {
	t, err := v.keeper.Threshold(ctx, id)
	if err := v.sees(ctx, t.PMTarget, absent("threshold", id), err); err != nil {
		return nf.PMThreshold{}, err
	}
	return t, nil
}

// ThresholdsFrom yields the thresholds that the identity may read.
func (v VNFPerformance) ThresholdsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMThreshold, error] {
	return shownTargets(ctx, v.guard, v.keeper.ThresholdsFrom(ctx, from), func(t nf.PMThreshold) nf.Scope { return pmScope(t.PMTarget) })
}

// ModifyThreshold requires instance:change in the project.
func (v VNFPerformance) ModifyThreshold(ctx context.Context, id string, change nf.PMModification) (nf.PMThreshold, error) {
	t, err := v.Threshold(ctx, id)
	if err := v.changes(ctx, t.PMTarget, err); err != nil {
		return nf.PMThreshold{}, err
	}
	t, err = v.keeper.ModifyThreshold(ctx, id, change)
	return t, orAbsent(err, absent("threshold", id))
}

// DeleteThreshold requires instance:change in the project.
func (v VNFPerformance) DeleteThreshold(ctx context.Context, id string) error {
	t, err := v.Threshold(ctx, id)
	if err := v.changes(ctx, t.PMTarget, err); err != nil {
		return err
	}
	return orAbsent(v.keeper.DeleteThreshold(ctx, id), absent("threshold", id))
}

// shownTargets yields those of the jobs or thresholds that the identity may read.
func shownTargets[T any](ctx context.Context, g *guard, all iter.Seq2[T, error], scope func(T) nf.Scope) iter.Seq2[T, error] {
	visible, err := g.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[T](err)
	}
	return list[T]{all, scope, visible}.shown(func(one T) (T, error) { return one, nil })
}
