package performance

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// period has the measurements of a job that are not reported yet.
type period struct {
	Tick  int64 `json:"tick"`  // the last measurement: that many collection periods after the job's creation
	Index int64 `json:"index"` // of the reporting period
	Sums  []sum `json:"sums,omitempty"`
}

// sum is what was measured of a metric of an object. The entry has the sum of the values,
// or the highest one.
type sum struct {
	nf.PMEntry

	Count int `json:"count"`
}

// schedule is when a job is measured and reported.
type schedule struct {
	created               time.Time
	collection, reporting time.Duration
	boundary              time.Time // zero: none
}

func scheduleOf(job nf.PMJob) schedule {
	return schedule{job.Created, job.Collection, job.Reporting, job.Boundary}
}

// tick returns the last measurement that is due at a time.
func (s schedule) tick(now time.Time) int64 {
	if !s.boundary.IsZero() && now.After(s.boundary) {
		now = s.boundary
	}
	return max(0, int64(now.Sub(s.created)/s.collection))
}

// time returns when a measurement is due.
func (s schedule) time(tick int64) time.Time {
	return s.created.Add(time.Duration(tick) * s.collection)
}

// index returns the reporting period that a measurement belongs to. One at the end of a
// period belongs to it.
func (s schedule) index(tick int64) int64 {
	return int64((time.Duration(tick)*s.collection - 1) / s.reporting)
}

// end returns the end of a reporting period.
func (s schedule) end(index int64) time.Time {
	end := s.created.Add(time.Duration(index+1) * s.reporting)
	if !s.boundary.IsZero() && end.After(s.boundary) {
		end = s.boundary
	}
	return end
}

// next returns when there is something to do: a measurement, or a report of those that are
// there. Over says that there is nothing any more.
func (s schedule) next(p period) (at time.Time, over bool) {
	at, over = s.time(p.Tick+1), false
	if !s.boundary.IsZero() && at.After(s.boundary) {
		at, over = s.boundary, len(p.Sums) == 0
	}
	if end := s.end(p.Index); len(p.Sums) > 0 && end.Before(at) {
		at = end
	}
	return at, over
}

// add adds measurements to a period.
func (p *period) add(at time.Time, measured []nf.PMEntry) {
	known := map[string]int{}
	for i, s := range p.Sums {
		known[s.Name()] = i
	}
	for _, e := range measured {
		i, found := known[e.Name()]
		switch {
		case found:
		case len(p.Sums) < maxEntries:
			i = len(p.Sums)
			p.Sums = append(p.Sums, sum{PMEntry: e})
			p.Sums[i].Value = 0
		default:
			continue
		}
		s := &p.Sums[i]
		s.Time, s.Count = at, s.Count+1
		if e.Metric.Peak() {
			s.Value = max(s.Value, e.Value)
		} else {
			s.Value += e.Value
		}
	}
}

// report returns the report of a period. It is the same whenever it is made.
func (p *period) report(job nf.PMJob) nf.PMReport {
	out := nf.PMReport{Job: job.ID}
	out.ID = nf.UUIDOf("k8splugin.io/pm/" + job.ID + "/" + strconv.FormatInt(p.Index, 10))
	out.Ready = scheduleOf(job).end(p.Index).UTC()
	for _, s := range p.Sums {
		e := s.PMEntry
		if !e.Metric.Peak() {
			e.Value /= float64(s.Count)
		}
		e.Value = rounded(e.Value)
		out.Entries = append(out.Entries, e)
	}
	return out
}

// rounded returns a percentage with three decimals.
func rounded(value float64) float64 { return math.Round(value*1000) / 1000 }

// vnfs returns the VNFs that a report has entries of.
func vnfs(r nf.PMReport) []string {
	var out []string
	for _, e := range r.Entries {
		if !slices.Contains(out, e.VNF) {
			out = append(out, e.VNF)
		}
	}
	return out
}
