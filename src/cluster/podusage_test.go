package cluster

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/metricsserver"
)

// TestUsage reads the usage of pods from a metrics server beside the API server.
func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		spec     string // of the pods
		measured []metricsserver.Container
		fault    int // status of the metrics server
		want     []nf.PodUsage
		kind     nf.Kind // of the error; Internal: none
	}{
		"Limits": {
			reason: "all containers count, in any unit", spec: `{containers: [{name: c, image: "i:1", resources: {limits: {cpu: 500m, memory: 1Mi}, requests: {cpu: 100m, memory: 1Ki}}},
				{name: d, image: "i:1", resources: {requests: {cpu: "1", memory: 1Mi}}}]}`,
			measured: []metricsserver.Container{{Name: "c", CPU: "250m", Memory: "512Ki"}, {Name: "d", CPU: "500000000n", Memory: "512Ki"}},
			want:     []nf.PodUsage{{CPU: nf.ResourceUsage{Used: 0.75, Allotted: 1.5}, Memory: nf.ResourceUsage{Used: 1 << 20, Allotted: 2 << 20}}},
		},
		"Sidecar": {
			reason: "init containers that have ended do not count", spec: `{containers: [{name: c, image: "i:1", resources: {limits: {cpu: "1", memory: 1Mi}}}], initContainers: [
				{name: s, image: "i:1", restartPolicy: Always, resources: {limits: {cpu: "1", memory: 1Mi}}}, {name: i, image: "i:1", resources: {limits: {cpu: "4", memory: 4Mi}}}]}`,
			measured: []metricsserver.Container{{Name: "c", CPU: "1", Memory: "0"}},
			want:     []nf.PodUsage{{CPU: nf.ResourceUsage{Used: 1, Allotted: 2}, Memory: nf.ResourceUsage{Allotted: 2 << 20}}},
		},
		"None":     {reason: "a container without limits and requests", spec: `{containers: [{name: c, image: "i:1"}]}`, measured: []metricsserver.Container{{Name: "c", CPU: "1", Memory: "1"}}, want: []nf.PodUsage{{CPU: nf.ResourceUsage{Used: 1}, Memory: nf.ResourceUsage{Used: 1}}}},
		"New":      {reason: "the pod has not been measured yet", spec: `{containers: [{name: c, image: "i:1"}]}`},
		"Unserved": {reason: "there is no metrics server", spec: `{containers: [{name: c, image: "i:1"}]}`, fault: http.StatusNotFound, kind: nf.Unsupported},
		"Down":     {reason: "the metrics server does not run", spec: `{containers: [{name: c, image: "i:1"}]}`, fault: http.StatusServiceUnavailable, kind: nf.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			c, r, ns := recorded(t)
			metrics := metricsserver.New()
			r.Fail(func(r clustertest.Request) bool { return strings.HasPrefix(r.Path, metricsserver.Group) },
				func(w http.ResponseWriter, r *http.Request, _ http.Handler) { metrics.ServeHTTP(w, r) })
			u := workloadOf(t, ns, "Deployment", "web", held, "")
			spec := parsed(t, tc.spec)
			for name, list := range spec.Object {
				if err := unstructured.SetNestedField(u.Object, list, "spec", "template", "spec", name); err != nil {
					t.Fatal(err)
				}
			}
			mustApply(t, c, "vnf-1", u)
			heldPods(t, ns, 1, func(p *unstructured.Unstructured) {
				for i := range tc.want {
					tc.want[i].Pod = p.GetName()
				}
				if tc.measured != nil {
					metrics.Measure(metricsserver.Pod{Namespace: ns, Name: p.GetName(), Labels: p.GetLabels(), Containers: tc.measured})
				}
			})
			metrics.Measure(metricsserver.Pod{Namespace: ns, Name: "other", Labels: map[string]string{"app": "web"}})
			if tc.fault != 0 {
				metrics.Script(metricsserver.Fault{Status: tc.fault}, -1)
			}
			got, err := NewGauge(c).Usage(t.Context(), instance("vnf-1"), refs(u))
			if nf.KindOf(err) != tc.kind || (err != nil) != (tc.kind != nf.Internal) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, d)
			}
			if wrong := metrics.Violations(); len(wrong) > 0 || len(metrics.Requests()) > 1 {
				t.Errorf("%s: violations %q", tc.reason, wrong)
			}
			if tc.fault == http.StatusServiceUnavailable && !slices.ContainsFunc(r.Requests(), func(r clustertest.Request) bool { return strings.HasPrefix(r.Path, metricsserver.Group) }) {
				t.Error("the metrics server was not asked")
			}
		})
	}
}
