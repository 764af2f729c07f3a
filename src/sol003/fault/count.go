package fault

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// severities are those that find gives to alarms.
var severities = [...]nf.AlarmSeverity{nf.AlarmCritical, nf.AlarmMajor}

// AlarmCounts returns the number of alarms that are not cleared, by severity and
// acknowledgement, as of the last look at the instances. It reads nothing. It returns nil
// unless this replica is the one that raises alarms.
func (w *Watcher) AlarmCounts() []nf.AlarmCount {
	if counts := w.counts.Load(); counts != nil {
		return *counts
	}
	return nil
}

// count counts the alarms that are raised. The severities that alarms can have are counted
// even if there is none.
func (s *state) count() {
	numbers := map[nf.AlarmCount]int{}
	for _, severity := range severities {
		numbers[nf.AlarmCount{Severity: severity}] = 0
		numbers[nf.AlarmCount{Severity: severity, Acknowledged: true}] = 0
	}
	for _, all := range s.vnfs {
		for _, f := range all {
			if f.alarm != nil {
				numbers[nf.AlarmCount{Severity: f.alarm.Severity, Acknowledged: !f.alarm.Acknowledged.IsZero()}]++
			}
		}
	}
	out := make([]nf.AlarmCount, 0, len(numbers))
	for c, n := range numbers {
		c.Number = n
		out = append(out, c)
	}
	s.w.counts.Store(&out)
}

// acknowledge reads which of the alarms that are raised are acknowledged: any replica may
// have changed that.
func (s *state) acknowledge(ctx context.Context) error {
	for _, all := range s.vnfs {
		for _, f := range all {
			if f.alarm == nil {
				continue
			}
			stored, err := s.w.alarms.Get(ctx, f.alarm.ID)
			if err != nil {
				return err
			}
			f.alarm.Acknowledged = stored.Acknowledged
		}
	}
	return nil
}
