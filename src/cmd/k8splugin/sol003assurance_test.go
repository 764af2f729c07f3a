package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/metricsserver"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
)

// assured is a service with a VNF of one pod, a subscriber, and a region with a metrics
// server.
type assured struct {
	*testService

	to        *subscriber.Simulator
	metrics   *metricsserver.Simulator
	callback  string
	namespace string
	vnf       string
}

// assure starts an assured service.
func assure(t *testing.T, version string) assured {
	t.Helper()
	out := assured{to: subscriber.New(subscriber.Config{Version: version, Links: "https://vnfm.example"}), metrics: metricsserver.New(), namespace: clustertest.Namespace(t)}
	server := httptest.NewServer(out.to)
	t.Cleanup(server.Close)
	out.callback = server.URL + subscriber.Callback
	out.testService = startBareService(t, func(c *Config) {
		c.CallbackAllow = "127.0.0.1"
		c.VNFNotify = vnfNotifySettings{Endpoint: "https://vnfm.example", Test: true, FaultEvery: 100 * time.Millisecond, FaultLasting: time.Second}
	})
	out.want(http.StatusCreated, out.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "sandbox", "kubeconfig": measuredRegion(t, out.metrics)}))
	workload := strings.Replace(webWorkload, "image: example.com/web:1", "image: example.com/web:1, resources: {limits: {cpu: 500m, memory: 200Mi}}", 1)
	files := csartest.Files(map[string]string{"Files/kubernetes/web.yaml": workload})
	delete(files, "sample.mf")
	files["Definitions/df_simple.yaml"] = webFlavor
	files["sample.mf"] = csartest.Manifest(files)
	out.upload("web", files)
	const all = "/vnflcm/v2/vnf_instances"
	lcm := func(method, path string, body any) answer {
		return out.send(t.Context(), method, path, body, "Version", "2.0.0")
	}
	out.vnf = out.want(http.StatusCreated, lcm("POST", all, map[string]any{"vnfdId": csartest.VNFD})).text(t, "id")
	begun := out.want(http.StatusAccepted, lcm("POST", all+"/"+out.vnf+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]string{"vimId": nf.Region{ID: "sandbox"}.VIMID(), "vimType": "ETSINFV.KUBERNETES.V_1"}},
		"additionalParams": map[string]any{"namespace": out.namespace, "lcm-kubernetes-def-files": []string{"Files/kubernetes/web.yaml"}},
	}))
	until(t, "the VNF is instantiated", func() bool {
		got := out.want(http.StatusOK, lcm("GET", "/vnflcm/v2/vnf_lcm_op_occs/"+path.Base(begun.header.Get("Location")), nil))
		return got.text(t, "operationState") == string(nf.OccurrenceCompleted)
	})
	return out
}

// measuredRegion returns the kubeconfig of the sandbox with a metrics server.
func measuredRegion(t *testing.T, metrics *metricsserver.Simulator) []byte {
	t.Helper()
	r := clustertest.NewRecorder(t)
	r.Fail(func(r clustertest.Request) bool { return strings.HasPrefix(r.Path, metricsserver.Group) },
		func(w http.ResponseWriter, r *http.Request, _ http.Handler) { metrics.ServeHTTP(w, r) })
	return r.Kubeconfig()
}

// notified waits for a notification of a type, and returns it.
func (a assured) notified(kind string) map[string]any {
	a.t.Helper()
	var out map[string]any
	until(a.t, "a notification arrives: "+kind, func() bool {
		for _, e := range a.to.Journal() {
			if e.Method == http.MethodPost && e.Document["notificationType"] == kind {
				out = e.Document
			}
		}
		delay.For(a.t.Context(), 50*time.Millisecond, nil)
		return out != nil
	})
	if wrong := a.to.Violations(); len(wrong) > 0 {
		a.t.Errorf("violations: %q", wrong)
	}
	return out
}

// TestVNFCrashLoop has the pods of a VNF crash: the alarm is raised, notified,
// acknowledged and cleared.
func TestVNFCrashLoop(t *testing.T) {
	t.Parallel()
	a := assure(t, "1.3.0")
	fm := func(method, path string, body any) answer {
		return a.send(t.Context(), method, path, body, "Version", "1.3.0")
	}
	a.want(http.StatusCreated, fm("POST", "/vnffm/v1/subscriptions", map[string]any{"callbackUri": a.callback}))
	clustertest.Unblock(t, a.namespace, "web", "sandbox.invalid/crash:1")
	var alarm map[string]any
	for alarm == nil || alarm["faultType"] != "CrashLoop" { // before its first restart, the pod is only down
		alarm = a.notified("AlarmNotification")["alarm"].(map[string]any)
	}
	if alarm["managedObjectId"] != a.vnf || alarm["perceivedSeverity"] != "CRITICAL" || alarm["ackState"] != "UNACKNOWLEDGED" {
		t.Errorf("the alarm is %v", alarm)
	}
	at := "/vnffm/v1/alarms/" + fmt.Sprint(alarm["id"])
	tag := a.want(http.StatusOK, fm("GET", at, nil)).header.Get("ETag")
	a.want(http.StatusOK, a.send(t.Context(), "PATCH", at, map[string]string{"ackState": "ACKNOWLEDGED"}, "Version", "1.3.0", "If-Match", tag))
	clustertest.Unblock(t, a.namespace, "web", "example.com/web:1")
	for cleared := ""; cleared != alarm["id"]; {
		cleared = fmt.Sprint(a.notified("AlarmClearedNotification")["alarmId"])
	}
	got := a.want(http.StatusOK, fm("GET", at, nil))
	if got.text(t, "perceivedSeverity") != "CLEARED" || got.text(t, "ackState") != "ACKNOWLEDGED" {
		t.Errorf("the cleared alarm is %s", got.body)
	}
}

// TestVNFPerformance measures a VNF in a region with a metrics server, and reports that.
func TestVNFPerformance(t *testing.T) {
	t.Parallel()
	a := assure(t, "2.1.0")
	pods, err := a.parts.engine.Pods(t.Context(), a.vnf)
	if err != nil || len(pods) != 1 {
		t.Fatalf("the pods are %v: %v", pods, err)
	}
	a.metrics.Measure(metricsserver.Pod{
		Namespace: a.namespace, Name: pods[0].Name, Labels: pods[0].Labels, Containers: []metricsserver.Container{{Name: "c", CPU: "125000001n", Memory: "50Mi"}},
	})
	pm := func(method, path string, body any) answer {
		return a.send(t.Context(), method, path, body, "Version", "2.1.0")
	}
	request := map[string]any{
		"objectType": "Vnf", "objectInstanceIds": []string{a.vnf}, "callbackUri": a.callback,
		"criteria": map[string]any{"performanceMetricGroup": []string{nf.PMGroup}, "collectionPeriod": 5, "reportingPeriod": 5},
	}
	a.metrics.Script(metricsserver.Fault{Status: http.StatusNotFound}, -1)
	refused := a.want(http.StatusUnprocessableEntity, pm("POST", "/vnfpm/v2/pm_jobs", request))
	if !strings.Contains(string(refused.body), "metrics.k8s.io") {
		t.Errorf("the reason is %s", refused.body)
	}
	a.metrics.Clear()
	made := a.want(http.StatusCreated, pm("POST", "/vnfpm/v2/pm_jobs", request))
	at := "/vnfpm/v2/pm_jobs/" + made.text(t, "id")
	links := a.notified("PerformanceInformationAvailableNotification")["_links"].(map[string]any)
	href := fmt.Sprint(links["performanceReport"].(map[string]any)["href"])
	report := a.want(http.StatusOK, pm("GET", strings.TrimPrefix(href, "https://vnfm.example"), nil))
	values := map[string]any{}
	for _, e := range report.field(t, "entries").([]any) {
		entry := e.(map[string]any)
		values[fmt.Sprint(entry["performanceMetric"])] = entry["performanceValues"].([]any)[0].(map[string]any)["value"]
	}
	for metric, want := range map[string]any{"VCpuUsageMeanVnf": 25.0, "VCpuUsagePeakVnf": 25.0, "VMemoryUsageMeanVnf": 25.0, "VMemoryUsagePeakVnf": 25.0} {
		if got := values[metric+"."+a.vnf]; got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	if got := a.want(http.StatusOK, pm("GET", at, nil)); !strings.Contains(string(got.body), href) {
		t.Errorf("the job is %s, without %s", got.body, href)
	}
	a.want(http.StatusNoContent, pm("DELETE", at, nil))
	if wrong := a.metrics.Violations(); len(wrong) > 0 {
		t.Errorf("violations: %q", wrong)
	}
}
