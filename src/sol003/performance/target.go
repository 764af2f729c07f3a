package performance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// CreateJob stores a new job and returns it, with an id and a time. It returns nf.Invalid,
// with a violation for each wrong field; nf.NotFound if a VNF does not exist in the
// project; nf.Conflict if it is not instantiated, or the project has too many jobs;
// nf.Unsupported if it cannot be measured; and nf.Failed if the callback does not pass its
// test.
func (m *Meter) CreateJob(ctx context.Context, job nf.PMJob, auth nf.CallbackAuth) (nf.PMJob, error) {
	v := append(checkTarget(job.PMTarget, "objectInstanceIds", "criteria.performanceMetric"), m.checkJob(job)...)
	if len(v) > 0 {
		return nf.PMJob{}, nf.E(nf.Invalid, "create", "a PM job", v)
	}
	of := func(j nf.PMJob) nf.PMTarget { return j.PMTarget }
	if err := atMost(m.jobs.All(ctx, ""), of, job.Project, "PM jobs"); err != nil {
		return nf.PMJob{}, err
	}
	callback, err := m.prepare(ctx, &job.PMTarget, auth)
	if err != nil {
		return nf.PMJob{}, err
	}
	record, err := m.jobs.InsertOp(job.ID, job)
	return job, m.write(ctx, err, callback, record)
}

// CreateThreshold stores a new threshold and returns it. Its errors are those of CreateJob.
func (m *Meter) CreateThreshold(ctx context.Context, t nf.PMThreshold, auth nf.CallbackAuth) (nf.PMThreshold, error) {
	v := append(checkTarget(t.PMTarget, "objectInstanceId", "criteria.performanceMetric"), checkThreshold(t)...)
	if len(v) > 0 {
		return nf.PMThreshold{}, nf.E(nf.Invalid, "create", "a threshold", v)
	}
	of := func(t nf.PMThreshold) nf.PMTarget { return t.PMTarget }
	if err := atMost(m.thresholds.All(ctx, ""), of, t.Project, "thresholds"); err != nil {
		return nf.PMThreshold{}, err
	}
	callback, err := m.prepare(ctx, &t.PMTarget, auth)
	if err != nil {
		return nf.PMThreshold{}, err
	}
	record, err := m.thresholds.InsertOp(t.ID, t)
	return t, m.write(ctx, err, callback, record)
}

// write writes ops, unless there was an error before, and wakes the measuring.
func (m *Meter) write(ctx context.Context, err error, ops ...store.Op) error {
	if err == nil {
		_, err = store.Write(ctx, m.cfg.KV, ops)
	}
	m.changed.Send()
	return err
}

// atMost returns nf.Conflict if a project has as many targets as it may.
func atMost[T any](all iter.Seq2[T, error], target func(T) nf.PMTarget, project, noun string) error {
	n := 0
	for one, err := range all {
		if err != nil {
			return err
		}
		if nf.ProjectOf(target(one).Project) == nf.ProjectOf(project) {
			n++
		}
	}
	if n >= MaxTargets {
		return nf.E(nf.Conflict, "create", "one more", fmt.Errorf("the project has %d %s; delete one first", n, noun))
	}
	return nil
}

// prepare gives a target an id and a time, checks that it can be measured, and tests its
// callback. It returns the op that stores the callback.
func (m *Meter) prepare(ctx context.Context, t *nf.PMTarget, auth nf.CallbackAuth) (store.Op, error) {
	if err := m.measurable(ctx, *t); err != nil {
		return store.Op{}, err
	}
	t.ID, t.Created = nf.UUIDOf("k8splugin.io/pm/"+m.cfg.NewID()), m.now()
	return m.cfg.Callbacks.CallbackOp(ctx, nf.VNFSubscription{
		ID: t.ID, Project: t.Project, Interface: nf.VNFPerformance, Callback: t.Callback, Auth: auth, Created: t.Created,
	})
}

// modify returns the op that stores the changed callback of a target.
func (m *Meter) modify(ctx context.Context, t *nf.PMTarget, change nf.PMModification) (store.Op, error) {
	s, err := m.cfg.Callbacks.Subscription(ctx, t.ID)
	if err != nil {
		return store.Op{}, err
	}
	if change.Auth != nil {
		s.Auth = *change.Auth
	}
	if change.Callback != "" {
		if change.Auth == nil && s.Auth.Kind != "" && !sameServer(s.Callback, change.Callback) {
			return store.Op{}, nf.E(nf.Invalid, "modify", "the callback", nf.Violations{{
				Field: "authentication", Message: "is required, because callbackUri names another server; credentials are not sent to another server than that they were given for",
			}})
		}
		s.Callback, t.Callback = change.Callback, change.Callback
	}
	return m.cfg.Callbacks.CallbackOp(ctx, s)
}

func sameServer(a, b string) bool {
	one, err := url.Parse(a)
	other, wrong := url.Parse(b)
	return errors.Join(err, wrong) == nil && one.Scheme == other.Scheme && one.Host == other.Host
}

// ModifyJob changes the callback of a job, or returns nf.NotFound, or the errors of a
// callback.
func (m *Meter) ModifyJob(ctx context.Context, id string, change nf.PMModification) (nf.PMJob, error) {
	job, read, err := m.jobs.GetRevision(ctx, id)
	if err != nil {
		return nf.PMJob{}, err
	}
	callback, err := m.modify(ctx, &job.PMTarget, change)
	if err != nil {
		return nf.PMJob{}, err
	}
	record, err := m.jobs.ReplaceOp(id, job, read)
	return job, m.write(ctx, err, callback, record)
}

// ModifyThreshold changes the callback of a threshold as ModifyJob does.
func (m *Meter) ModifyThreshold(ctx context.Context, id string, change nf.PMModification) (nf.PMThreshold, error) {
	t, read, err := m.thresholds.GetRevision(ctx, id)
	if err != nil {
		return nf.PMThreshold{}, err
	}
	callback, err := m.modify(ctx, &t.PMTarget, change)
	if err != nil {
		return nf.PMThreshold{}, err
	}
	record, err := m.thresholds.ReplaceOp(id, t, read)
	return t, m.write(ctx, err, callback, record)
}

// Job returns a job, or nf.NotFound.
func (m *Meter) Job(ctx context.Context, id string) (nf.PMJob, error) { return m.jobs.Get(ctx, id) }

// JobsFrom yields the jobs, sorted by id.
func (m *Meter) JobsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMJob, error] {
	return m.jobs.After(ctx, "", from)
}

// Report returns a report of a job, or nf.NotFound.
func (m *Meter) Report(ctx context.Context, job, id string) (nf.PMReport, error) {
	return m.reports.Get(ctx, job+"/"+id)
}

// DeleteJob deletes a job with its callback and its reports, or returns nf.NotFound. If it
// fails after that, the rest is deleted later.
func (m *Meter) DeleteJob(ctx context.Context, id string) error {
	job, err := m.jobs.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := m.jobs.Delete(ctx, id); err != nil {
		return err
	}
	for _, r := range job.Reports {
		err = errors.Join(err, nf.IgnoreNotFound(m.reports.Delete(ctx, id+"/"+r.ID)))
	}
	return errors.Join(err, nf.IgnoreNotFound(m.periods.Delete(ctx, id)), nf.IgnoreNotFound(m.cfg.Callbacks.Unsubscribe(ctx, id)))
}

// Threshold returns a threshold, or nf.NotFound.
func (m *Meter) Threshold(ctx context.Context, id string) (nf.PMThreshold, error) {
	return m.thresholds.Get(ctx, id)
}

// ThresholdsFrom yields the thresholds, sorted by id.
func (m *Meter) ThresholdsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMThreshold, error] {
	return m.thresholds.After(ctx, "", from)
}

// DeleteThreshold deletes a threshold with its callback, or returns nf.NotFound.
func (m *Meter) DeleteThreshold(ctx context.Context, id string) error {
	if err := m.thresholds.Delete(ctx, id); err != nil {
		return err
	}
	return nf.IgnoreNotFound(m.cfg.Callbacks.Unsubscribe(ctx, id))
}
