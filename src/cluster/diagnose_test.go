package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWatchTellsEvents has the kubelet say by an event alone why pods do not
// start, while they are watched.
func TestWatchTellsEvents(t *testing.T) {
	c, ns := sandbox(t)
	made := mustApply(t, c, "vnf-1",
		workloadOf(t, ns, "Deployment", "web", held, ""),
		objects(t, "vnf-1", ns, `{apiVersion: v1, kind: Pod, metadata: {name: alone}, spec: {schedulerName: `+held+`, containers: [{name: c, image: "i:1"}]}}`)[0])
	events := watcher(t).Resource(eventKind.gvr()).Namespace(ns)
	heldPods(t, ns, len(made), func(p *unstructured.Unstructured) {
		for reason, message := range map[string]string{"FailedCreatePodSandBox": "no network red", "Unhealthy": "not this"} {
			e := parsed(t, `{apiVersion: v1, kind: Event, metadata: {name: `+p.GetName()+strings.ToLower(reason)+`}, type: Warning, reason: `+reason+`, message: `+message+`,
				involvedObject: {apiVersion: v1, kind: Pod, namespace: `+ns+`, name: `+p.GetName()+`, uid: `+string(p.GetUID())+`}}`)
			if _, err := events.Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	told := map[string]bool{}
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), made) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(h.Message, "FailedCreatePodSandBox: no network red") {
			told[h.Name] = true
		}
		if h.Status == nf.StatusFailed {
			t.Fatalf("the kubelet goes on trying, so must the watch: %+v", h)
		}
		if len(told) == len(made) {
			return
		}
	}
	t.Fatalf("the watch ended, and had told of %v alone", told)
}
