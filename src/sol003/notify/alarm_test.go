package notify_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
)

// TestAlarmFilter notifies a subscription that selects severities of each alarm that has one,
// and of the end of alarms.
func TestAlarmFilter(t *testing.T) {
	t.Parallel()
	const raised, cleared = "AlarmNotification", "AlarmClearedNotification"
	for name, tc := range map[string]struct {
		reason string
		filter nf.VNFFilter
		want   []any
	}{
		"None":           {"no filter selects all", nf.VNFFilter{}, []any{raised, cleared}},
		"Severity":       {"an alarm that the subscriber knows is cleared", nf.VNFFilter{Severities: []nf.AlarmSeverity{nf.AlarmCritical}}, []any{raised, cleared}},
		"Other severity": {"another severity is not told, but the end of each alarm is", nf.VNFFilter{Severities: []nf.AlarmSeverity{nf.AlarmMajor}}, []any{cleared}},
		"Type":           {"the type selects, too", nf.VNFFilter{Severities: []nf.AlarmSeverity{nf.AlarmCritical}, Types: []nf.NoticeKind{nf.NoticeAlarm}}, []any{raised}},
		"Event":          {"the other lists select all notices", nf.VNFFilter{Severities: []nf.AlarmSeverity{nf.AlarmCritical}, Events: []string{"QOS_ALARM"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, subscriber.Config{Version: "1.3.0"}, func(t *testing.T, w *world) {
				r := w.replica(nil)
				w.subscribe(r, func(s *nf.VNFSubscription) { s.Interface, s.Filter = nf.VNFFaults, tc.filter })
				w.start(r)
				alarm := nf.Alarm{ID: "alarm", VNF: "a", Severity: nf.AlarmCritical, Event: "PROCESSING_ERROR_ALARM", Fault: "VnfcDown", Raised: time.Now()}
				w.notice(r, nf.Notice{Kind: nf.NoticeAlarm, VNF: vnf("a"), Alarm: &alarm})
				gone := alarm
				gone.Severity, gone.Cleared = nf.AlarmCleared, time.Now()
				w.notice(r, nf.Notice{Kind: nf.NoticeCleared, VNF: vnf("a"), Alarm: &gone})
				w.later(time.Second)
				var got []any
				for _, e := range w.to.Journal() {
					if e.Method == "POST" {
						got = append(got, e.Document["notificationType"])
					}
				}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
