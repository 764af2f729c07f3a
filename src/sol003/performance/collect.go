package performance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// measure measures what is due, until the context ends.
func (m *Meter) measure(ctx context.Context) {
	at := newCollector(m)
	var swept time.Time
	for ctx.Err() == nil {
		next, err := at.round(ctx)
		if err == nil && m.now().Sub(swept) > sweepEvery {
			swept, err = m.now(), m.sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "failed to measure VNFs; will retry", "error", err)
			at, next = newCollector(m), m.now().Add(time.Second) // a write may have succeeded
		}
		delay.For(ctx, delay.Positive(min(next.Sub(m.now()), longest)), m.changed)
	}
}

// collector is what the leader knows of jobs and thresholds.
type collector struct {
	m       *Meter
	open    map[string]*openPeriod // by job
	crossed map[string]int64       // the last measurement of thresholds, by id
}

// openPeriod is a stored period.
type openPeriod struct {
	period

	read store.Revision
}

func newCollector(m *Meter) *collector {
	return &collector{m, map[string]*openPeriod{}, map[string]int64{}}
}

// round measures the VNFs of all jobs and thresholds that are due, and returns when the
// next ones are.
func (c *collector) round(ctx context.Context) (next time.Time, err error) {
	jobs, err := c.m.jobs.List(ctx, "")
	if err != nil {
		return next, err
	}
	thresholds, err := c.m.thresholds.List(ctx, "")
	if err != nil {
		return next, err
	}
	now := c.m.now()
	wanted := map[string]bool{}
	for _, job := range jobs {
		if err := c.load(ctx, job.ID); err != nil {
			return next, err
		}
		if scheduleOf(job).tick(now) > c.open[job.ID].Tick {
			mark(wanted, job.PMTarget)
		}
	}
	for _, t := range thresholds {
		if thresholdSchedule(t).tick(now) > c.crossed[t.ID] {
			mark(wanted, t.PMTarget)
		}
	}
	got := c.m.usages(ctx, slices.Sorted(maps.Keys(wanted)))
	for id, one := range got {
		if one.err != nil {
			c.m.cfg.Logger.InfoContext(ctx, "failed to measure a VNF", "vnf", id, "error", one.err)
			delete(got, id)
		}
	}
	next = now.Add(longest)
	for _, job := range jobs {
		at, err := c.job(ctx, job, now, got)
		if err != nil {
			return next, err
		}
		next = earlier(next, at)
	}
	for _, t := range thresholds {
		at, err := c.threshold(ctx, t, now, got)
		if err != nil {
			return next, err
		}
		next = earlier(next, at)
	}
	return next, ctx.Err() // a measurement that was cut off is not one
}

func mark(wanted map[string]bool, t nf.PMTarget) {
	for _, id := range t.VNFs {
		wanted[id] = true
	}
}

// earlier returns the earlier of two times; other may be zero.
func earlier(a, other time.Time) time.Time {
	if !other.IsZero() && other.Before(a) {
		return other
	}
	return a
}

// load loads the open period of a job.
func (c *collector) load(ctx context.Context, job string) error {
	if c.open[job] != nil {
		return nil
	}
	p, read, err := c.m.periods.GetRevision(ctx, job)
	if nf.KindOf(err) == nf.NotFound {
		p, read, err = period{}, store.Absent, nil
	}
	if err == nil {
		c.open[job] = &openPeriod{p, read}
	}
	return err
}

// job measures and reports a job as far as that is due, and returns when it is due next.
func (c *collector) job(ctx context.Context, job nf.PMJob, now time.Time, got map[string]usage) (next time.Time, err error) {
	p, when := c.open[job.ID], scheduleOf(job)
	if tick := when.tick(now); tick > p.Tick {
		if len(p.Sums) > 0 && when.index(tick) > p.Index {
			if err := c.report(ctx, job); err != nil {
				return next, err
			}
		}
		changed := p.period
		changed.Sums = slices.Clone(p.Sums)
		changed.Tick, changed.Index = tick, when.index(tick)
		for _, id := range job.VNFs {
			if one, found := got[id]; found {
				changed.add(when.time(tick), entries(job.PMTarget, len(job.Groups) > 0, one))
			}
		}
		if err := c.save(ctx, job.ID, changed); err != nil {
			return next, err
		}
	}
	if len(p.Sums) > 0 && !now.Before(when.end(p.Index)) {
		if err := c.report(ctx, job); err != nil {
			return next, err
		}
	}
	next, over := when.next(p.period)
	if over {
		return time.Time{}, nil
	}
	return next, nil
}

// save stores the open period of a job, after other ops.
func (c *collector) save(ctx context.Context, job string, p period, before ...store.Op) error {
	op, err := c.m.periods.ReplaceOp(job, p, c.open[job].read)
	if err != nil {
		return err
	}
	revisions, err := store.Write(ctx, c.m.cfg.KV, append(before, op))
	if err == nil {
		c.open[job].period, c.open[job].read = p, revisions[len(before)]
	}
	return err
}

// report stores the report of the open period, its notices and its place in the job, and
// closes the period.
func (c *collector) report(ctx context.Context, job nf.PMJob) error {
	p := c.open[job.ID]
	made := p.report(job)
	stored, err := c.m.reports.PutOp(job.ID+"/"+made.ID, made)
	if err != nil {
		return err
	}
	ops := []store.Op{stored}
	for i, vnf := range vnfs(made) {
		op, err := c.m.notice(nf.NoticeReport, made.Ready, fmt.Sprintf("%s-%03d", made.ID, i), nf.VNF{ID: vnf, Project: job.Project}, nf.PMNotice{Target: job.PMTarget, Report: made.ID})
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	now, read, err := c.m.jobs.GetRevision(ctx, job.ID)
	if nf.KindOf(err) == nf.NotFound {
		return nil // it was deleted; its period is swept
	}
	if err != nil {
		return err
	}
	var old []nf.PMReportRef
	if !slices.Contains(now.Reports, made.PMReportRef) {
		now.Reports = append(now.Reports, made.PMReportRef)
		if n := len(now.Reports) - MaxReports; n > 0 {
			old, now.Reports = now.Reports[:n], now.Reports[n:]
		}
		op, err := c.m.jobs.ReplaceOp(job.ID, now, read)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	if err := c.save(ctx, job.ID, period{Tick: p.Tick, Index: p.Index}, ops...); err != nil {
		return err
	}
	c.m.noticed.Send()
	for _, r := range old {
		if err := nf.IgnoreNotFound(c.m.reports.Delete(ctx, job.ID+"/"+r.ID)); err != nil {
			return err
		}
	}
	return nil
}

// notice returns the op that stores a notice.
func (m *Meter) notice(kind nf.NoticeKind, at time.Time, id string, of nf.VNF, pm nf.PMNotice) (store.Op, error) {
	n := nf.Notice{ID: fmt.Sprintf("%020d-%s", at.UnixNano(), id), Kind: kind, Time: at, VNF: of, PM: &pm}
	return m.notices.PutOp(n.ID, n)
}

func thresholdSchedule(t nf.PMThreshold) schedule {
	return schedule{created: t.Created, collection: ThresholdPeriod, reporting: ThresholdPeriod}
}

// threshold compares the objects of a threshold with it if that is due, and returns when it
// is due next.
func (c *collector) threshold(ctx context.Context, t nf.PMThreshold, now time.Time, got map[string]usage) (next time.Time, err error) {
	when := thresholdSchedule(t)
	tick := when.tick(now)
	next = when.time(tick + 1)
	one, measured := got[t.VNFs[0]]
	if tick <= c.crossed[t.ID] || !measured {
		c.crossed[t.ID] = tick
		return next, nil
	}
	var ops []store.Op
	above := stillThere(t.Above, one.vnf)
	for i, e := range entries(t.PMTarget, false, one) {
		e.Time, e.Value = when.time(tick), rounded(e.Value)
		is := crosses(t, t.Above[e.Name()], e.Value)
		if is == t.Above[e.Name()] {
			continue
		}
		above[e.Name()] = is
		op, err := c.m.notice(nf.NoticeCrossed, e.Time, fmt.Sprintf("%s-%03d", t.ID, i), nf.VNF{ID: e.VNF, Project: t.Project}, nf.PMNotice{Target: t.PMTarget, Entry: e, Up: is})
		if err != nil {
			return next, err
		}
		ops = append(ops, op)
	}
	if len(ops) > 0 {
		err = c.cross(ctx, t.ID, above, ops)
	}
	if err == nil {
		c.crossed[t.ID] = tick
	}
	return next, err
}

// stillThere returns the objects that are above a threshold, without the components that
// the VNF no longer has.
func stillThere(above map[string]bool, v nf.VNF) map[string]bool {
	out := map[string]bool{}
	for name, is := range above {
		_, object := nf.CutPMMetric(name)
		if is && (object == v.ID || slices.ContainsFunc(v.Instantiated.VNFCs, func(c nf.VNFC) bool { return c.ID() == object })) {
			out[name] = true
		}
	}
	return out
}

// crosses reports whether an object is above a threshold, if it was so before.
func crosses(t nf.PMThreshold, above bool, value float64) bool {
	if above {
		return value > t.Value-t.Hysteresis || t.Hysteresis == 0 && value == t.Value
	}
	return value >= t.Value+t.Hysteresis
}

// cross stores the objects that are above a threshold, after their notices.
func (c *collector) cross(ctx context.Context, id string, above map[string]bool, notices []store.Op) error {
	now, read, err := c.m.thresholds.GetRevision(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	now.Above = above
	op, err := c.m.thresholds.ReplaceOp(id, now, read)
	if err != nil {
		return err
	}
	_, err = store.Write(ctx, c.m.cfg.KV, append(notices, op))
	c.m.noticed.Send()
	return err
}
