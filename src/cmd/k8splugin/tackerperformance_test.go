//go:build tacker

package main

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/metricsserver"
)

// TestTackerClientPerformance runs the commands for PM jobs of the real client. The client
// has none for thresholds yet.
func TestTackerClientPerformance(t *testing.T) {
	t.Parallel()
	a := assure(t, "2.1.0")
	pods, err := a.parts.engine.Pods(t.Context(), a.vnf)
	if err != nil || len(pods) != 1 {
		t.Fatalf("the pods are %v: %v", pods, err)
	}
	a.metrics.Measure(metricsserver.Pod{
		Namespace: a.namespace, Name: pods[0].Name, Labels: pods[0].Labels, Containers: []metricsserver.Container{{Name: "c", CPU: "125m", Memory: "50Mi"}},
	})
	c := vnfClient{tackerClient{t, []string{"--os-tacker-api-version", "2", "--os-auth-type", "none", "--os-endpoint", a.url}}, "2", nf.Region{ID: "sandbox"}.VIMID(), ""}
	id := fmt.Sprint(c.shown("a job", "vnfpm", "job", "create", c.file(map[string]any{
		"objectType": "Vnf", "objectInstanceIds": []string{a.vnf}, "callbackUri": a.callback,
		"criteria": map[string]any{"performanceMetric": []string{"VCpuUsageMeanVnf." + a.vnf}, "performanceMetricGroup": []string{}, "collectionPeriod": 5, "reportingPeriod": 5},
		"metadata": map[string]any{"monitoring": map[string]string{"monitorName": "prometheus", "driverType": "external"}},
	}))["ID"])
	for _, args := range [][]string{{}, {"--filter", "(eq,objectType,Vnf)"}, {"--all_fields"}, {"--fields", "reports"}, {"--exclude_fields", "criteria"}, {"--exclude_default"}} {
		if text := c.run("it is listed", 0, append([]string{"vnfpm", "job", "list", "-f", "value"}, args...)...); !strings.Contains(text, id) {
			t.Errorf("%v: the client prints %q", args, text)
		}
	}
	c.run("its callback is changed", 0, "vnfpm", "job", "update", id, c.file(map[string]string{"callbackUri": a.callback + "?of=job"}))
	var report string
	until(t, "there is a report", func() bool {
		job, err := a.parts.vnfs.meter.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(job.Reports) > 0 {
			report = job.Reports[0].ID
		}
		delay.For(t.Context(), 100*time.Millisecond, nil)
		return report != ""
	})
	if shown := fmt.Sprint(c.shown("it is shown", "vnfpm", "job", "show", id)); !strings.Contains(shown, "of=job") || !strings.Contains(shown, path.Join(id, "reports", report)) {
		t.Errorf("the job is %s", shown)
	}
	if shown := fmt.Sprint(c.shown("and its report", "vnfpm", "report", "show", id, report)); !strings.Contains(shown, "VCpuUsageMeanVnf."+a.vnf) || !strings.Contains(shown, "25") {
		t.Errorf("the report is %s", shown)
	}
	c.run("it is deleted", 0, "vnfpm", "job", "delete", id)
	if text := c.run("there is none", 1, "vnfpm", "job", "show", id); !strings.Contains(text, "does not exist") {
		t.Errorf("the client prints %q", text)
	}
}
