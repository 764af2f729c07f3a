package cluster

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// TestUnready reads pods whose status the test writes in the kubelet's place.
func TestUnready(t *testing.T) {
	state := func(ready, state string) string {
		return `{"phase":"Pending","conditions":[{"type":"Ready","status":"` + map[string]string{"true": "True", "false": "False"}[ready] + `"}],
			"containerStatuses":[{"name":"c","image":"i:1","imageID":"","ready":` + ready + `,"restartCount":0,` + state + `}]}`
	}
	cases := map[string]struct {
		reason   string
		kind     string // Deployment when empty
		spec     string
		replicas int
		status   string
		events   []string // reason, last second, message
		deny     string   // a part of the paths that are forbidden
		most     int
		says     []string // of each reported pod
		more     int
		kindOf   nf.Kind // of the error; Internal: none
	}{
		"Creating": {
			reason: "the event says what the status does not", replicas: 1, most: 5, status: state("false", `"state":{"waiting":{"reason":"ContainerCreating"}}`),
			events: []string{"Scheduled 01 assigned", "FailedMount 03 no volume", "Pulled 02 pulled"},
			says:   []string{"Pending; container c is waiting: ContainerCreating; last event: FailedMount: no volume"},
		},
		"Crashed": {
			reason: "how it ended before is why it waits", replicas: 1, most: 5, spec: "serviceName: db,", kind: "StatefulSet",
			status: state("false", `"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}`),
			says:   []string{"Pending; container c is waiting (it ended with exit code 137: OOMKilled before): CrashLoopBackOff: back-off 10s"},
		},
		"Ended": {
			reason: "a container that failed and is not started again yet", replicas: 1, most: 5,
			status: state("false", `"state":{"terminated":{"exitCode":1,"reason":"Error","message":"no database"}}`),
			says:   []string{"Pending; container c ended with exit code 1: Error: no database"},
		},
		"NotReady": {
			reason: "a probe fails", replicas: 1, most: 5, status: state("false", `"state":{"running":{}}`), events: []string{"Unhealthy 01 probe failed: 503"},
			says: []string{"Pending; container c runs and is not ready; last event: Unhealthy: probe failed: 503"},
		},
		"Ready":  {reason: "a ready pod is not reported", replicas: 1, most: 5, status: state("true", `"state":{"running":{}}`), says: []string{}},
		"NoNode": {reason: "the scheduler's words", replicas: 1, most: 5, status: `{"conditions":[{"type":"PodScheduled","status":"False","message":"0/3 nodes"}]}`, says: []string{"Pending; it is not scheduled: 0/3 nodes"}},
		"Many": {
			reason: "only as many as asked for", replicas: 3, most: 2, status: state("false", `"state":{"waiting":{"reason":"ContainerCreating"}}`),
			says: []string{"Pending; container c is waiting: ContainerCreating", "Pending; container c is waiting: ContainerCreating"}, more: 1,
		},
		"Long": {
			reason: "a long text is cut", replicas: 1, most: 5, status: state("false", `"state":{"waiting":{"reason":"X","message":"`+strings.Repeat("y", 400)+`"}}`),
			says: []string{"Pending; container c is waiting: X: " + strings.Repeat("y", 262) + "… (138 more bytes)"},
		},
		"EventsForbidden": {
			reason: "without events the rest is reported", replicas: 1, most: 5, status: state("false", `"state":{"waiting":{"reason":"ContainerCreating"}}`),
			events: []string{"FailedMount 01 no volume"}, deny: "/events",
			says: []string{"Pending; container c is waiting: ContainerCreating"},
		},
		"PodsForbidden": {
			reason: "without pods there is no report", replicas: 1, most: 5, status: `{}`, deny: "/pods",
			kindOf: nf.Failed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r, ns := recorded(t)
			kind := "Deployment"
			if tc.kind != "" {
				kind = tc.kind
			}
			u := workloadOf(t, ns, kind, "web", held, tc.spec)
			if err := unstructured.SetNestedField(u.Object, int64(tc.replicas), "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
			mustApply(t, c, "vnf-1", u)
			heldPods(t, ns, tc.replicas, func(p *unstructured.Unstructured) {
				patchStatus(t, c, "/api/v1/namespaces/"+ns+"/pods/"+p.GetName(), tc.status)
				for _, e := range tc.events {
					tell(t, p, strings.SplitN(e, " ", 3))
				}
			})
			if tc.deny != "" {
				r.Fail(func(req clustertest.Request) bool { return strings.HasSuffix(req.Path, tc.deny) }, clustertest.Status(http.StatusForbidden))
			}
			pods, more, err := c.Unready(t.Context(), instance("vnf-1"), refs(u), tc.most)
			if nf.KindOf(err) != tc.kindOf || (err != nil) != (tc.kindOf != nf.Internal) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			says := []string{}
			for _, p := range pods {
				if says = append(says, p.Message); p.Kind != "Pod" || !strings.HasPrefix(p.Name, "web-") || p.Namespace != ns {
					t.Errorf("%s: told of %s", tc.reason, p.Ref)
				}
			}
			if diff := cmp.Diff(tc.says, says); diff != "" || more != tc.more {
				t.Errorf("%s: %d more, want %d (-want +got):\n%s", tc.reason, more, tc.more, diff)
			}
		})
	}
}

// tell creates an event of a pod: its reason, the second of its time, its message.
func tell(t *testing.T, p *unstructured.Unstructured, e []string) {
	t.Helper()
	kind := "Warning"
	if e[0] == "Scheduled" || e[0] == "Pulled" {
		kind = "Normal"
	}
	event := parsed(t, `{apiVersion: v1, kind: Event, metadata: {name: `+p.GetName()+strings.ToLower(e[0])+`}, type: `+kind+`, reason: `+e[0]+`, message: "`+e[2]+`",
		lastTimestamp: "2026-01-01T00:00:`+e[1]+`Z",
		involvedObject: {apiVersion: v1, kind: Pod, namespace: `+p.GetNamespace()+`, name: `+p.GetName()+`, uid: `+string(p.GetUID())+`}}`)
	if _, err := watcher(t).Resource(eventKind.gvr()).Namespace(p.GetNamespace()).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestPodsOfComparesGroups asks for the pods of custom resources whose kinds are
// those of workloads.
func TestPodsOfComparesGroups(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, uid: p, labels: {controller-revision-hash: old}, ownerReferences: [{uid: w, controller: true}]}}`
	cases := map[string]struct {
		reason string
		object string
		want   int
	}{
		"StatefulSet":        {"pods of an older revision do not count", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w, uid: w}, status: {updateRevision: new}}`, 0},
		"custom StatefulSet": {"its revisions are not known", `{apiVersion: example.org/v1, kind: StatefulSet, metadata: {name: w, uid: w}, status: {updateRevision: new}}`, 1},
		"Pod":                {"a pod is its own", `{apiVersion: v1, kind: Pod, metadata: {name: w, uid: w}}`, 1},
		"custom Pod":         {"it has no containers, but may control pods", `{apiVersion: example.org/v1, kind: Pod, metadata: {name: w, uid: w}}`, 1},
		"custom Deployment":  {"it may control pods itself", `{apiVersion: example.org/v1, kind: Deployment, metadata: {name: w, uid: w}}`, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := newView(instance("vnf-1"), readiness.Shipped())
			u := parsed(t, tc.object)
			v.put(u)
			v.put(parsed(t, pod))
			found := slices.Collect(v.podsOf(u))
			if len(found) != tc.want {
				t.Fatalf("%s: %d pods", tc.reason, len(found))
			}
			for _, p := range found {
				if p.GetAPIVersion() != "v1" {
					t.Errorf("%s: %v is no pod", tc.reason, nf.RefOf(p))
				}
			}
		})
	}
}

// TestStreamsCompareGroups has only Kubernetes' own workloads explained by pods
// and events.
func TestStreamsCompareGroups(t *testing.T) {
	cases := map[string]struct {
		reason string
		group  string
		kind   string
		want   []string // kinds that are read in addition
	}{
		"Deployment":        {"its pods are below replica sets", "apps", "Deployment", []string{"Pod", "Event", "ReplicaSet"}},
		"Pod":               {"events explain it", "", "Pod", []string{"Event"}},
		"custom Pod":        {"no event is about its network", "example.org", "Pod", nil},
		"custom Deployment": {"nothing is known of its pods", "example.org", "Deployment", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := nf.Ref{Group: tc.group, Version: "v1", Kind: tc.kind, Namespace: "ns", Name: "w"}
			own := target{ref, kind{gvkOf(ref), "x", true, nil, nil}, true}
			var got []string
			set := newStreamSet(&client{apis: &apis{}}, instance("vnf-1"))
			set.addHealth([]target{own}, []nf.Change{{Ref: ref}})
			for _, s := range set.streams[1:] {
				got = append(got, s.scope.kind.Kind)
			}
			diff(t, tc.reason, tc.want, got)
		})
	}
}
