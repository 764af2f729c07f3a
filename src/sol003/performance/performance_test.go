package performance_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003/performance"
)

const available = string(nf.NoticeReport)

// TestReports measures a VNF, and reports means and peaks.
func TestReports(t *testing.T) {
	t.Parallel()
	play(t, func(_ *testing.T, w *world) {
		m := w.meter(w.kv)
		w.start(m)
		j := w.create(m, job("VCpuUsageMeanVnf", "VCpuUsagePeakVnf.v"))
		w.set(func() { w.reads = nil })
		w.later(15 * time.Second)
		w.use(0.9, 0.3)
		w.later(14 * time.Second)
		w.want("the period has not ended", w.reported(m, j.ID))
		w.later(time.Second)
		const first = "30s VCpuUsageMeanVnf.v=50 VCpuUsagePeakVnf.v=90" // 30, 60 and 60 %
		w.want("three measurements", w.reported(m, j.ID), first)
		w.want("one notice of each VNF", w.told(m), available)
		w.later(30 * time.Second)
		w.want("the next period", w.reported(m, j.ID), first, "1m0s VCpuUsageMeanVnf.v=60 VCpuUsagePeakVnf.v=90")
		var want []time.Duration
		for i := range 6 {
			want = append(want, time.Duration(i+1)*10*time.Second)
		}
		if d := cmp.Diff(want, w.reads); d != "" {
			t.Errorf("the region is read in each collection period: -want +got:\n%s", d)
		}
	})
}

// TestObjects measures other objects.
func TestObjects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		edit   func(*nf.PMJob)
		world  func(*world)
		want   []string
	}{
		"Group": {"all metrics", func(j *nf.PMJob) { j.Metrics, j.Groups = nil, []string{nf.PMGroup} }, nil, []string{
			"30s VCpuUsageMeanVnf.v=30 VCpuUsagePeakVnf.v=50 VMemoryUsageMeanVnf.v=0 VMemoryUsagePeakVnf.v=0",
		}},
		"Components": {"every component", func(j *nf.PMJob) { j.Object = nf.PMVNFC }, nil, []string{
			"30s VCpuUsageMeanVnf.VDU1-web-1=50 VCpuUsageMeanVnf.VDU1-web-2=10",
		}},
		"Component": {"one component", func(j *nf.PMJob) { j.VNFCs = []string{"VDU1-web-2"} }, nil, []string{"30s VCpuUsageMeanVnf.VDU1-web-2=10"}},
		"Named": {"a metric names its object", func(j *nf.PMJob) {
			j.VNFCs, j.Metrics = []string{"VDU1-web-1", "VDU1-web-2"}, []string{"VCpuUsageMeanVnf.VDU1-web-1"}
		}, nil, []string{"30s VCpuUsageMeanVnf.VDU1-web-1=50"}},
		"No limits": {"a pod without limits and requests has no percentage", nil, func(w *world) { w.set(func() { w.pods[0].CPU.Allotted = 0 }) }, []string{
			"30s VCpuUsageMeanVnf.v=10",
		}},
		"Boundary":    {"the job ends", func(j *nf.PMJob) { j.Boundary = time.Now().Add(25 * time.Second) }, nil, []string{"25s VCpuUsageMeanVnf.v=30"}},
		"Uneven":      {"a period may end between measurements", func(j *nf.PMJob) { j.Reporting = 25 * time.Second }, nil, []string{"25s VCpuUsageMeanVnf.v=30"}},
		"Unreachable": {"without measurements there is no report", nil, func(w *world) { w.set(func() { w.err = nf.E(nf.Unreachable, "list", "usage", nil) }) }, nil},
		"Terminated":  {"likewise", nil, func(w *world) { w.set(func() { w.vnf.Instantiated = nil }) }, nil},
		"Deleted":     {"likewise", nil, func(w *world) { w.set(func() { w.vnf.ID = "other" }) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(_ *testing.T, w *world) {
				m := w.meter(w.kv)
				w.start(m)
				asked := job("VCpuUsageMeanVnf")
				if tc.edit != nil {
					tc.edit(&asked)
				}
				j := w.create(m, asked)
				if tc.world != nil {
					tc.world(w)
				}
				w.later(40 * time.Second)
				w.want(tc.reason, w.reported(m, j.ID), tc.want...)
			})
		})
	}
}

// TestRetention keeps the last reports.
func TestRetention(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		m := w.meter(w.kv)
		w.start(m)
		j := w.create(m, job("VCpuUsageMeanVnf"))
		w.later((performance.MaxReports + 5) * 30 * time.Second)
		got := w.reported(m, j.ID)
		if len(got) != performance.MaxReports || got[0] != "3m0s VCpuUsageMeanVnf.v=30" {
			t.Errorf("%d reports are kept, the first one is %s", len(got), got[0])
		}
		if err := m.DeleteJob(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		w.later(time.Minute)
		for e, err := range w.kv.List(t.Context(), "vnfperformance/", "") {
			if err != nil || !slices.ContainsFunc([]string{"notices/", "watch/"}, func(of string) bool {
				return len(e.Key) > len("vnfperformance/"+of) && e.Key[:len("vnfperformance/"+of)] == "vnfperformance/"+of
			}) {
				t.Errorf("%s is left of the job: %v", e.Key, err)
			}
		}
		if err := m.DeleteJob(t.Context(), j.ID); nf.KindOf(err) != nf.NotFound {
			t.Errorf("a second deletion: %v", err)
		}
	})
}

// TestThreshold crosses a threshold in both directions.
func TestThreshold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		hysteresis float64
		vnfcs      []string
		want       []string
	}{
		"Simple":     {"at 60 and below", 0, nil, []string{"1m0s up=true VCpuUsageMeanVnf.v=60", "1m30s up=false VCpuUsageMeanVnf.v=50", "2m0s up=true VCpuUsageMeanVnf.v=75", "2m30s up=false VCpuUsageMeanVnf.v=40"}},
		"Hysteresis": {"at 70, and at 50", 10, nil, []string{"2m0s up=true VCpuUsageMeanVnf.v=75", "2m30s up=false VCpuUsageMeanVnf.v=40"}},
		"Component":  {"its own usage", 0, []string{"VDU1-web-2"}, []string{"2m0s up=true VCpuUsageMeanVnf.VDU1-web-2=70", "2m30s up=false VCpuUsageMeanVnf.VDU1-web-2=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, w *world) {
				m := w.meter(w.kv)
				stop := w.start(m)
				made, err := m.CreateThreshold(t.Context(), nf.PMThreshold{
					PMTarget: nf.PMTarget{Project: "p", Object: nf.PMVNF, VNFs: []string{"v"}, VNFCs: tc.vnfcs, Metrics: []string{"VCpuUsageMeanVnf"}, Callback: "http://nfvo/"},
					Value:    60, Hysteresis: tc.hysteresis,
				}, nf.CallbackAuth{})
				if err != nil {
					t.Fatal(err)
				}
				for _, use := range [][]float64{{0.5, 0.1}, {0.7, 0.5}, {0.9, 0.1}, {0.8, 0.7}} {
					w.use(use...)
					w.later(30 * time.Second)
				}
				stop()
				m = w.meter(w.kv)
				w.start(m) // the state of the threshold is stored
				w.use(0.8, 0)
				w.later(30 * time.Second)
				w.want(tc.reason, w.told(m), tc.want...)
				if err := m.DeleteThreshold(t.Context(), made.ID); err != nil {
					t.Fatal(err)
				}
				if _, err := newCallbacks(w.kv).Subscription(t.Context(), made.ID); nf.KindOf(err) != nf.NotFound {
					t.Errorf("its callback is left: %v", err)
				}
			})
		})
	}
}

// TestRefused creates nothing that cannot be measured.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		edit   func(*nf.PMJob)
		world  func(*world)
		kind   nf.Kind
	}{
		"No VNF":        {"something is measured", func(j *nf.PMJob) { j.VNFs = nil }, nil, nf.Invalid},
		"Many VNFs":     {"their number is limited", func(j *nf.PMJob) { j.VNFs = ids(performance.MaxObjects + 1) }, nil, nf.Invalid},
		"Twice":         {"one VNF is measured once", func(j *nf.PMJob) { j.VNFs = []string{"v", "v"} }, nil, nf.Invalid},
		"Components":    {"they are of one VNF", func(j *nf.PMJob) { j.VNFs, j.VNFCs = []string{"v", "x"}, []string{"c"} }, nil, nf.Invalid},
		"Component":     {"it is one of the VNF", func(j *nf.PMJob) { j.VNFCs = []string{"VDU1-web-3"} }, nil, nf.Invalid},
		"No metric":     {"something is measured", func(j *nf.PMJob) { j.Metrics = nil }, nil, nf.Invalid},
		"Metric":        {"the metric is unknown", func(j *nf.PMJob) { j.Metrics = []string{"Vcpu"} }, nil, nf.Invalid},
		"Object":        {"the metric is of another object", func(j *nf.PMJob) { j.Metrics = []string{"VCpuUsageMeanVnf.x"} }, nil, nf.Invalid},
		"Group":         {"the group is unknown", func(j *nf.PMJob) { j.Groups = []string{"VnfInternalCp"} }, nil, nf.Invalid},
		"Often":         {"the period is too short", func(j *nf.PMJob) { j.Collection = time.Second }, nil, nf.Invalid},
		"Early":         {"a report has at least one measurement", func(j *nf.PMJob) { j.Reporting = 5 * time.Second }, nil, nf.Invalid},
		"Over":          {"the job has ended", func(j *nf.PMJob) { j.Boundary = time.Now() }, nil, nf.Invalid},
		"Disk":          {"metrics.k8s.io has no disks", func(j *nf.PMJob) { j.Metrics = []string{"VDiskUsageMeanVnf"} }, nil, nf.Unsupported},
		"Ports":         {"metrics.k8s.io has no networks", func(j *nf.PMJob) { j.Object = "VnfExtCp" }, nil, nf.Unsupported},
		"No server":     {"the region does not measure", nil, func(w *world) { w.err = nf.E(nf.Unsupported, "read", "usage", nil) }, nf.Unsupported},
		"No limits":     {"there is nothing to compare with", nil, func(w *world) { w.pods = []nf.PodUsage{{Pod: "web-1"}} }, nf.Unsupported},
		"Unreachable":   {"the region does not respond", nil, func(w *world) { w.err = nf.E(nf.Unreachable, "read", "usage", nil) }, nf.Unreachable},
		"Unknown":       {"the VNF does not exist", func(j *nf.PMJob) { j.VNFs = []string{"x"} }, nil, nf.NotFound},
		"Other project": {"the VNF is one of another project", func(j *nf.PMJob) { j.Project = "q" }, nil, nf.NotFound},
		"Not running":   {"the VNF is not instantiated", nil, func(w *world) { w.vnf.Instantiated = nil }, nf.Conflict},
		"Callback":      {"it does not answer", func(j *nf.PMJob) { j.Callback = "http://deaf/" }, nil, nf.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, w *world) {
				m, asked := w.meter(w.kv), job("VCpuUsageMeanVnf")
				if tc.edit != nil {
					tc.edit(&asked)
				}
				if tc.world != nil {
					w.set(func() { tc.world(w) })
				}
				if _, err := m.CreateJob(t.Context(), asked, nf.CallbackAuth{}); nf.KindOf(err) != tc.kind || err == nil {
					t.Errorf("%s: %v, want %s", tc.reason, err, tc.kind)
				}
				for e, err := range w.kv.List(t.Context(), "", "") {
					t.Errorf("%s: %s is stored: %v", tc.reason, e.Key, err)
				}
			})
		})
	}
}

func ids(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// TestModify changes callbacks. Their credentials stay at their server.
func TestModify(t *testing.T) {
	t.Parallel()
	basic := nf.CallbackAuth{Kind: nf.CallbackBasic, User: "u", Password: nf.Secret("p")}
	other := nf.CallbackAuth{Kind: nf.CallbackTLS}
	for name, tc := range map[string]struct {
		reason string
		change nf.PMModification
		kind   nf.Kind // Internal: it is made
		auth   nf.CallbackAuthKind
	}{
		"Path":           {"the server is the same", nf.PMModification{Callback: "http://nfvo/other"}, nf.Internal, nf.CallbackBasic},
		"Authentication": {"the URL stays", nf.PMModification{Auth: &other}, nf.Internal, nf.CallbackTLS},
		"Both":           {"another server has its own credentials", nf.PMModification{Callback: "http://else/", Auth: &other}, nf.Internal, nf.CallbackTLS},
		"Server":         {"credentials are not sent to another server", nf.PMModification{Callback: "http://else/"}, nf.Invalid, nf.CallbackBasic},
		"Deaf":           {"the callback is tested", nf.PMModification{Callback: "http://deaf/", Auth: &other}, nf.Failed, nf.CallbackBasic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, w *world) {
				m := w.meter(w.kv)
				made, err := m.CreateJob(t.Context(), job("VCpuUsageMeanVnf"), basic)
				if err != nil {
					t.Fatal(err)
				}
				changed, err := m.ModifyJob(t.Context(), made.ID, tc.change)
				if (err == nil) != (tc.kind == nf.Internal) || err != nil && nf.KindOf(err) != tc.kind {
					t.Errorf("%s: %v, want %s", tc.reason, err, tc.kind)
				}
				stored, err := newCallbacks(w.kv).Subscription(t.Context(), made.ID)
				now, wrong := m.Job(t.Context(), made.ID)
				if errors.Join(err, wrong) != nil || stored.Auth.Kind != tc.auth || stored.Callback != now.Callback || tc.kind == nf.Internal && now.Callback != changed.Callback {
					t.Errorf("%s: %+v and %+v: %v", tc.reason, stored, now, errors.Join(err, wrong))
				}
			})
		})
	}
	play(t, func(t *testing.T, w *world) {
		if _, err := w.meter(w.kv).ModifyThreshold(t.Context(), "x", nf.PMModification{}); nf.KindOf(err) != nf.NotFound {
			t.Errorf("there is none: %v", err)
		}
	})
}

// TestMostJobs limits the jobs of a project.
func TestMostJobs(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		m := w.meter(w.kv)
		for range performance.MaxTargets {
			w.create(m, job("VCpuUsageMeanVnf"))
		}
		if _, err := m.CreateJob(t.Context(), job("VCpuUsageMeanVnf"), nf.CallbackAuth{}); nf.KindOf(err) != nf.Conflict {
			t.Errorf("one more job: %v", err)
		}
	})
}

// TestSweep deletes what a crash has left of a job.
func TestSweep(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, w *world) {
		m := w.meter(w.kv)
		left := nf.VNFSubscription{ID: "gone", Interface: nf.VNFPerformance, Created: time.Now()}
		client := nf.VNFSubscription{ID: "client", Interface: nf.VNFFaults, Created: time.Now()}
		for _, s := range []nf.VNFSubscription{left, client} {
			if err := newCallbacks(w.kv).table.Put(t.Context(), s.ID, s); err != nil {
				t.Fatal(err)
			}
		}
		w.start(m)
		j := w.create(m, job("VCpuUsageMeanVnf"))
		w.later(30 * time.Minute)
		if _, err := newCallbacks(w.kv).Subscription(t.Context(), "gone"); err != nil {
			t.Errorf("a callback whose job may be about to be stored is kept: %v", err)
		}
		w.later(2 * time.Hour)
		var kept []string
		for s, err := range newCallbacks(w.kv).SubscriptionsFrom(t.Context(), nf.Cursor{}) {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, s.ID)
		}
		slices.Sort(kept)
		want := []string{"client", j.ID}
		slices.Sort(want)
		w.want("the callbacks of clients and of jobs stay", kept, want...)
	})
}

// TestNewRefuses rejects a configuration that is not complete.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := performance.New(performance.Config{}); err == nil {
		t.Error("it needs a store, a source and callbacks")
	}
}
