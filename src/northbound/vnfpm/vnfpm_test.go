package vnfpm_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013/sol013test"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpm"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
	"github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/sol003/performance"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

const (
	jobs       = "/vnfpm/v2/pm_jobs"
	thresholds = "/vnfpm/v2/thresholds"
	callback   = "http://nfvo.example" + subscriber.Callback
)

// vnfs is a VNF of one pod.
type vnfs struct{}

func (vnfs) VNF(_ context.Context, id string) (nf.VNF, error) {
	v := nf.VNF{ID: "v", Instantiated: &nf.InstantiatedVNF{VNFCs: []nf.VNFC{{VDU: "VDU1", Resource: "web"}}}}
	if id != v.ID {
		return nf.VNF{}, nf.E(nf.NotFound, "get", "VNF "+id, nil)
	}
	return v, nil
}

func (vnfs) Usage(context.Context, string) ([]nf.PodUsage, error) { return nil, nil }

// world is the API on a meter in memory.
type world struct {
	*sol013test.Server

	t  *testing.T
	kv store.KV
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, kv: memory.New()}
	to := subscriber.New(subscriber.Config{Version: "2.1.0", User: "u", Password: "s3cr3t"})
	var meter *performance.Meter
	ids := 0
	notifier, err := notify.New(notify.Config{
		Via: to, Sources: map[string]notify.Source{"performance": source{&meter}},
		Config: outbox.Config{KV: w.kv, NewID: rand.Text},
	})
	if err != nil {
		t.Fatal(err)
	}
	meter, err = performance.New(performance.Config{KV: w.kv, Source: vnfs{}, Callbacks: notifier, NewID: func() string { ids++; return fmt.Sprint(ids) }})
	if err != nil {
		t.Fatal(err)
	}
	api, err := vnfpm.New(vnfpm.Config{Jobs: meter, Reports: meter, Thresholds: meter, Endpoint: "https://vnfm.example"})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = sol013test.New(t, k8splugin.Swagger, api)
	t.Cleanup(func() {
		if wrong := to.Violations(); len(wrong) > 0 {
			t.Errorf("violations: %q", wrong)
		}
	})
	return w
}

const (
	auth      = `"authentication": {"authType": ["BASIC"], "paramsBasic": {"userName": "u", "password": "s3cr3t"}}`
	job       = `{"objectType": "Vnf", "objectInstanceIds": ["v"], "criteria": {"performanceMetric": ["VCpuUsageMeanVnf.v"], "collectionPeriod": 30, "reportingPeriod": 60}, "callbackUri": "` + callback + `", ` + auth + `, "metadata": {"monitoring": {"targetsInfo": [{"authInfo": {"ssh_password": "s3cr3t"}}]}}}`
	threshold = `{"objectType": "Vnfc", "objectInstanceId": "v", "subObjectInstanceIds": ["VDU1-web"], "criteria": {"performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": {"thresholdValue": 80, "hysteresis": 2.5}}, "callbackUri": "` + callback + `", ` + auth + `}`
)

// create creates a resource, and returns its path.
func (w *world) create(all, body string) string {
	w.t.Helper()
	made := w.Ask("POST", all, body)
	at, below := strings.CutPrefix(made.Header.Get("Location"), "https://vnfm.example")
	if made.Status != 201 || !below || made.Header.Get("Version") != "2.1.0" {
		w.t.Fatalf("%+v", made)
	}
	return at
}

// document compares a document with the one that is wanted.
func (w *world) document(reason, got, want string) {
	w.t.Helper()
	var one, other any
	if err := json.Unmarshal([]byte(got), &one); err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &other); err != nil {
		w.t.Fatal(err)
	}
	if d := cmp.Diff(other, one); d != "" || strings.Contains(got, "s3cr3t") {
		w.t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

// TestJob creates, shows, lists, modifies and deletes a job.
func TestJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.create(jobs, job)
	id := strings.TrimPrefix(at, jobs+"/")
	ready := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stored := store.NewTable[nf.PMJob](w.kv, "vnfperformance/jobs/", "job")
	if _, err := stored.Update(t.Context(), id, func(j *nf.PMJob) error { j.Reports = []nf.PMReportRef{{ID: "r", Ready: ready}}; return nil }); err != nil {
		t.Fatal(err)
	}
	const links = `"_links": {"self": {"href": "https://vnfm.example/vnfpm/v2/pm_jobs/ID"}, "objects": [{"href": "https://vnfm.example/vnflcm/v2/vnf_instances/v"}]}`
	const reports = `"reports": [{"href": "https://vnfm.example/vnfpm/v2/pm_jobs/ID/reports/r", "readyTime": "2026-01-01T00:00:00Z"}]`
	const shown = `{"id": "ID", "objectType": "Vnf", "objectInstanceIds": ["v"], "criteria": {"performanceMetric": ["VCpuUsageMeanVnf.v"], "collectionPeriod": 30,
		"reportingPeriod": 60}, "callbackUri": "` + callback + `", `
	fill := func(text string) string { return strings.ReplaceAll(text, "ID", id) }
	w.document("one job", w.Ask("GET", at, "").Body, fill(shown+reports+", "+links+"}"))
	w.document("a list leaves out reports", w.Ask("GET", jobs, "").Body, fill("["+shown+links+"}]"))
	w.document("unless they are asked for", w.Ask("GET", jobs+"?all_fields", "").Body, fill("["+shown+reports+", "+links+"}]"))
	w.document("a filter", w.Ask("GET", jobs+"?filter=(eq,objectType,Vnfc)", "").Body, "[]")
	w.document("a modification", w.Ask("PATCH", at, `{"callbackUri": "`+callback+`"}`, "Content-Type", "application/merge-patch+json").Body, `{"callbackUri": "`+callback+`"}`)
	w.document("a client sends application/json", w.Ask("PATCH", at, `{`+auth+`}`).Body, `{"callbackUri": "`+callback+`"}`)
	report := nf.PMReport{Job: id, PMReportRef: nf.PMReportRef{ID: "r", Ready: ready}, Entries: []nf.PMEntry{
		{Object: nf.PMVNF, VNF: "v", Metric: nf.PMCPUMean, Time: ready, Value: 12.5}, {Object: nf.PMVNFC, VNF: "v", VNFC: "c", Metric: nf.PMMemoryPeak, Time: ready, Value: 50},
	}}
	if err := store.NewTable[nf.PMReport](w.kv, "vnfperformance/reports/", "report").Put(t.Context(), id+"/r", report); err != nil {
		t.Fatal(err)
	}
	w.document("a report", w.Ask("GET", at+"/reports/r", "").Body, `{"entries": [
		{"objectType": "Vnf", "objectInstanceId": "v", "performanceMetric": "VCpuUsageMeanVnf.v", "performanceValues": [{"timeStamp": "2026-01-01T00:00:00Z", "value": 12.5}]},
		{"objectType": "Vnfc", "objectInstanceId": "v", "subObjectInstanceId": "c", "performanceMetric": "VMemoryUsagePeakVnf.c", "performanceValues": [{"timeStamp": "2026-01-01T00:00:00Z", "value": 50}]}]}`)
	for _, status := range []int{204, 404} {
		if got := w.Ask("DELETE", at, ""); got.Status != status {
			t.Errorf("a deletion: %+v, want %d", got, status)
		}
	}
	for _, path := range []string{at, at + "/reports/r"} {
		if got := w.Ask("GET", path, ""); got.Status != 404 {
			t.Errorf("%s is left: %+v", path, got)
		}
	}
}

// TestThreshold creates, shows, lists, modifies and deletes a threshold.
func TestThreshold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.create(thresholds, threshold)
	shown := `{"id": "` + strings.TrimPrefix(at, thresholds+"/") + `", "objectType": "Vnfc", "objectInstanceId": "v", "subObjectInstanceIds": ["VDU1-web"], "criteria": {
		"performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": {"thresholdValue": 80, "hysteresis": 2.5}}, "callbackUri": "` + callback + `",
		"_links": {"self": {"href": "https://vnfm.example` + at + `"}, "object": {"href": "https://vnfm.example/vnflcm/v2/vnf_instances/v"}}}`
	w.document("one threshold", w.Ask("GET", at, "").Body, shown)
	w.document("a list", w.Ask("GET", thresholds, "").Body, "["+shown+"]")
	w.document("a filter", w.Ask("GET", thresholds+"?filter=(gt,criteria/simpleThresholdDetails/thresholdValue,90)", "").Body, "[]")
	w.document("a modification", w.Ask("PATCH", at, `{"callbackUri": "`+callback+`"}`).Body, `{"callbackUri": "`+callback+`"}`)
	for _, status := range []int{204, 404} {
		if got := w.Ask("DELETE", at, ""); got.Status != status {
			t.Errorf("a deletion: %+v, want %d", got, status)
		}
	}
}

// TestWrong rejects wrong requests, as SOL003 describes it.
func TestWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, over := w.create(jobs, job), w.create(thresholds, threshold)
	edited := func(of, old, replacement string) string {
		out := strings.Replace(of, old, replacement, 1)
		if out == of {
			t.Fatalf("%s is not in the request", old)
		}
		return out
	}
	for name, tc := range map[string]struct {
		reason, method, path, body string
		header                     []string
		status                     int
		says                       string
	}{
		"Version":     {"the header is required", "GET", jobs, "", []string{"Version", ""}, 400, "Version"},
		"Other":       {"there is one version", "GET", jobs, "", []string{"Version", "2.0.0"}, 406, "2.1.0"},
		"Media":       {"the response is JSON", "GET", jobs, "", []string{"Accept", "text/html"}, 406, "application/json"},
		"Text":        {"the request is JSON", "POST", jobs, job, []string{"Content-Type", "text/plain"}, 415, ""},
		"No criteria": {"they are required", "POST", jobs, `{"objectType": "Vnf", "objectInstanceIds": ["v"], "callbackUri": "` + callback + `"}`, nil, 400, "criteria"},
		"No VNF":      {"it does not exist", "POST", jobs, edited(edited(job, `["v"]`, `["x"]`), "Vnf.v", "Vnf"), nil, 404, "VNF x"},
		"Metric":      {"it is unknown", "POST", jobs, edited(job, "VCpuUsageMeanVnf.v", "Vcpu"), nil, 400, "VMemoryUsagePeakVnf"},
		"Disk":        {"metrics.k8s.io has no disks", "POST", jobs, edited(job, "VCpuUsageMeanVnf.v", "VDiskUsageMeanVnf.v"), nil, 422, "metrics.k8s.io"},
		"Port":        {"metrics.k8s.io has no networks", "POST", jobs, edited(job, `"Vnf"`, `"VnfIntCp"`), nil, 422, "metrics.k8s.io"},
		"Period":      {"it is too short", "POST", jobs, edited(job, `"collectionPeriod": 30`, `"collectionPeriod": 1`), nil, 400, "collectionPeriod"},
		"Periods":     {"a report has a measurement", "POST", jobs, edited(job, `"reportingPeriod": 60`, `"reportingPeriod": 10`), nil, 400, "reportingPeriod"},
		"Password":    {"the callback refuses it", "POST", jobs, edited(job, "s3cr3t", "wr0ng"), nil, 422, "401"},
		"No password": {"the type needs it", "POST", jobs, edited(job, "paramsBasic", "params"), nil, 400, "authentication"},
		"URL":         {"it is no URL", "POST", jobs, edited(job, callback, "nfvo"), nil, 400, "callbackUri"},
		"Server":      {"credentials stay at their server", "PATCH", at, `{"callbackUri": "http://else.example/"}`, nil, 400, "authentication"},
		"Nothing":     {"a modification changes something", "PATCH", at, `{}`, nil, 400, ""},
		"No job":      {"it does not exist", "PATCH", jobs + "/x", `{"callbackUri": "` + callback + `"}`, nil, 404, "PM job"},
		"No report":   {"it does not exist", "GET", at + "/reports/x", "", nil, 404, "PM report"},
		"Type":        {"there is one type", "POST", thresholds, edited(threshold, "SIMPLE", "STATIC"), nil, 400, "thresholdType"},
		"Value":       {"it is a percentage", "POST", thresholds, edited(threshold, "80", "-1"), nil, 400, "thresholdValue"},
		"Component":   {"it is one of the VNF", "POST", thresholds, edited(threshold, "VDU1-web", "VDU1-db"), nil, 400, "subObjectInstanceIds"},
		"Threshold":   {"it does not exist", "GET", thresholds + "/x", "", nil, 404, "threshold"},
		"Callback":    {"it is tested", "PATCH", over, `{` + edited(auth, "s3cr3t", "wr0ng") + `}`, nil, 422, "401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := w.Ask(tc.method, tc.path, tc.body, tc.header...)
			if got.Status != tc.status || !strings.Contains(got.Body, tc.says) || strings.Contains(got.Body, "s3cr3t") || strings.Contains(got.Body, "wr0ng") {
				t.Errorf("%s: %+v, want %d and %q", tc.reason, got, tc.status, tc.says)
			}
		})
	}
}

// TestNewRefuses rejects a configuration that is not complete.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := vnfpm.New(vnfpm.Config{}); err == nil {
		t.Error("it needs jobs, reports and thresholds")
	}
}
