package notify_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// measured stores the callback of a job or a threshold.
func (w *world) measured(r *replica, id, url string) {
	w.t.Helper()
	s := nf.VNFSubscription{
		ID: id, Interface: nf.VNFPerformance, Callback: url, Auth: nf.CallbackAuth{Kind: nf.CallbackBasic, User: "u", Password: nf.Secret("p")}, Created: time.Now(),
	}
	op, err := r.CallbackOp(w.t.Context(), s)
	if err == nil {
		_, err = store.Write(w.t.Context(), w.kv, []store.Op{op})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestPerformance notifies the callback of a job or a threshold, and no other one.
func TestPerformance(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{Version: "2.1.0", User: "u", Password: "p"}, func(t *testing.T, w *world) {
		r := w.replica(nil)
		w.measured(r, "j", callback)
		w.measured(r, "t", callback)
		w.start(r)
		w.notice(r, created("v")) // neither of them subscribes to it
		w.notice(r, nf.Notice{Kind: nf.NoticeReport, VNF: vnf("v"), PM: &nf.PMNotice{Target: nf.PMTarget{ID: "j", Object: nf.PMVNFC, VNFCs: []string{"c"}}, Report: "r"}})
		crossed := nf.PMNotice{Target: nf.PMTarget{ID: "t", Object: nf.PMVNF}, Entry: nf.PMEntry{VNF: "v", Metric: nf.PMCPUMean, Value: 81.5}, Up: true}
		w.notice(r, nf.Notice{Kind: nf.NoticeCrossed, VNF: vnf("v"), PM: &crossed})
		w.later(time.Second)
		var got []map[string]any
		for _, e := range w.to.Journal() {
			if e.Method == "POST" {
				delete(e.Document, "id")
				delete(e.Document, "timeStamp")
				got = append(got, e.Document)
			}
		}
		link := func(path string) any { return map[string]any{"href": path} }
		want := []map[string]any{
			{
				"notificationType": "PerformanceInformationAvailableNotification", "pmJobId": "j", "objectType": "Vnfc", "objectInstanceId": "v",
				"subObjectInstanceIds": []any{"c"}, "_links": map[string]any{
					"objectInstance": link("/vnflcm/v2/vnf_instances/v"), "pmJob": link("/vnfpm/v2/pm_jobs/j"), "performanceReport": link("/vnfpm/v2/pm_jobs/j/reports/r"),
				},
			},
			{
				"notificationType": "ThresholdCrossedNotification", "thresholdId": "t", "crossingDirection": "UP", "objectType": "Vnf", "objectInstanceId": "v",
				"performanceMetric": "VCpuUsageMeanVnf.v", "performanceValue": 81.5, "_links": map[string]any{
					"objectInstance": link("/vnflcm/v2/vnf_instances/v"), "threshold": link("/vnfpm/v2/thresholds/t"),
				},
			},
		}
		if len(got) == 2 && got[0]["pmJobId"] == nil {
			got[0], got[1] = got[1], got[0] // each has its own queue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// TestChangedCallback sends what is pending to the present URL, so that credentials reach
// the server only that they were given for.
func TestChangedCallback(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{Version: "2.1.0", User: "u", Password: "p"}, func(t *testing.T, w *world) {
		r := w.replica(nil)
		w.measured(r, "j", "http://former.example"+subscriber.Callback)
		w.to.Script(subscriber.Fault{Status: 503}, -1)
		w.start(r)
		w.notice(r, nf.Notice{Kind: nf.NoticeReport, VNF: vnf("v"), PM: &nf.PMNotice{Target: nf.PMTarget{ID: "j", Object: nf.PMVNF}, Report: "r"}})
		w.later(time.Second)
		w.to.Clear()
		w.measured(r, "j", callback)
		w.to.Journal()
		w.later(10 * time.Minute)
		sent := 0
		for _, e := range w.to.Journal() {
			if e.Method == "POST" {
				sent++
				if e.Host != "nfvo.example" || e.Status != 204 {
					t.Errorf("it is sent to %s: %d", e.Host, e.Status)
				}
			}
		}
		if sent != 1 {
			t.Errorf("it is sent %d times", sent)
		}
	})
}
