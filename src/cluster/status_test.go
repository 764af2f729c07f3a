package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   nf.Status
	}{
		"new deployment": {
			"no controller has seen it", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0}}`, nf.InProgress,
		},
		"paused deployment": {
			"it does as it is told", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {paused: true}, status: {observedGeneration: 1}}`, nf.Current,
		},
		"paused deployment, changed": {
			"its controller is behind", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: 1}}`, nf.InProgress,
		},
		"deleted deployment": {
			"paused or not, it is going", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {paused: true}, status: {observedGeneration: 1}}`, nf.StatusDeleting,
		},
		"new stateful set without replicas": {
			"kstatus would not wait for its controller", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 0}}`, nf.InProgress,
		},
		"stateful set on delete": {
			"its pods must be ready at first", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, readyReplicas: 1}}`, nf.InProgress,
		},
		"stateful set on delete, ready": {
			"pods of the older revision are what the strategy wants", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, readyReplicas: 2}}`, nf.Current,
		},
		"daemon set on delete": {
			"its pods must be ready at first", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 1, numberAvailable: 1}}`, nf.InProgress,
		},
		"daemon set on delete, ready": {
			"pods of the older template are what the strategy wants", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 0, numberReady: 2, numberAvailable: 2}}`, nf.Current,
		},
		"daemon set on delete, not seen": {
			"its controller has not seen the new template", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 2, numberAvailable: 2}}`, nf.InProgress,
		},
		"daemon set on delete, new": {
			"its controller has not said how many pods there must be", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1}}`, nf.InProgress,
		},
		"daemon set on delete, no node": {
			"no node wants a pod", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 1, desiredNumberScheduled: 0, currentNumberScheduled: 0, numberReady: 0}}`, nf.Current,
		},
		"partitioned stateful set": {
			"only pods above the partition are updated", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}},
				status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 1, currentReplicas: 2, currentRevision: a, updateRevision: b}}`, nf.Current,
		},
		"running job": {
			"to run is not to be done", `{apiVersion: batch/v1, kind: Job, status: {startTime: "2026-01-01T00:00:00Z", active: 1}}`, nf.InProgress,
		},
		"suspended job": {
			"nothing happens until it is resumed", `{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}`, nf.Current,
		},
		"done job": {
			"its work is done", `{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`, nf.Current,
		},
		"failed job": {
			"it has given up", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", message: BackoffLimitExceeded}]}}`, nf.StatusFailed,
		},
		"cron job": {
			"its jobs are not the instance's", `{apiVersion: batch/v1, kind: CronJob}`, nf.Current,
		},
		"failed pod": {
			"kstatus takes it for completed", `{apiVersion: v1, kind: Pod, status: {phase: Failed}}`, nf.StatusFailed,
		},
		"unscheduled pod": {
			"a node may still come", `{apiVersion: v1, kind: Pod, metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`, nf.InProgress,
		},
		"ready pod": {
			"it runs and is ready", `{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, nf.Current,
		},
		"new quota": {
			"the API server admits objects by the limits in the status", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: "2"}}}`, nf.InProgress,
		},
		"changed quota": {
			"the former limits are still in the status", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: "2"}}, status: {hard: {pods: "1"}, used: {pods: "0"}}}`, nf.InProgress,
		},
		"quota": {
			"the status has its limits", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: "2"}}, status: {hard: {pods: "2"}, used: {pods: "0"}}}`, nf.Current,
		},
		"pending claim": {
			"it may wait for its first consumer", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, nf.Current,
		},
		"lost claim": {
			"its volume will not come back", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}`, nf.StatusFailed,
		},
		"load balancer": {
			"an address comes from outside, if at all", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`, nf.Current,
		},
		"definition": {
			"its kind is not served yet", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "True"}]}}`, nf.InProgress,
		},
		"replication controller": {
			"it is judged like a replica set", `{apiVersion: v1, kind: ReplicationController, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1}}`, nf.InProgress,
		},
		"custom object": {
			"it says so itself", `{apiVersion: example.org/v1, kind: Gizmo, status: {conditions: [{type: Ready, status: "False", message: not yet}]}}`, nf.InProgress,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judgeByKind(parsed(t, tc.object)); got.status != tc.want {
				t.Errorf("%s: %+v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestTrouble is about what must not fail a workload, or must.
func TestTrouble(t *testing.T) {
	const (
		oldTemplate = `template: {spec: {containers: [{name: c, image: "i:1"}]}, metadata: {labels: {app: web`
		newTemplate = `template: {spec: {containers: [{name: c, image: "i:2"}]}, metadata: {labels: {app: web`
		deployment  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: d, generation: 2}, spec: {replicas: 1, ` + newTemplate + `}}}}, status: {observedGeneration: 2, replicas: %}}`
		behind      = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: d, generation: 3}, spec: {replicas: 1, ` + newTemplate + `}}}}, status: {observedGeneration: 2}}`
		oldSet      = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, uid: r1, annotations: {deployment.kubernetes.io/revision: "9"}, ownerReferences: [{uid: d, controller: true}]}, spec: {` + oldTemplate + `, pod-template-hash: h1}}}}}`
		newSet      = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-2, uid: r2, annotations: {deployment.kubernetes.io/revision: "10"}, ownerReferences: [{uid: d, controller: true}]}, spec: {` + newTemplate + `, pod-template-hash: h2}}}}}`
		job         = `{apiVersion: batch/v1, kind: Job, metadata: {name: web, uid: d}}`
		set         = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, uid: d, generation: 1, creationTimestamp: "2026-01-01T00:00:10Z"}, status: {observedGeneration: 1, updateRevision: new}}`
	)
	pod := func(parent, more, status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: web-x, uid: p, ` + more + ` ownerReferences: [{uid: ` + parent + `, controller: true}]}, status: {` + status + `}}`
	}
	waits := func(list, reason string) string {
		return list + `: [{name: c, state: {waiting: {reason: ` + reason + `, message: m}}}]`
	}
	refused := func(more string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: d, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, ` + more + `
			conditions: [{type: ReplicaFailure, status: "True", message: 'pods "x" is forbidden: exceeded quota: q'}]}}`
	}
	event := func(at, message string) string {
		return `{apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {uid: d}, lastTimestamp: "` + at + `", reason: FailedCreate, message: "` + message + `"}`
	}
	told := func(at, reason string) string {
		return `{apiVersion: v1, kind: Event, metadata: {name: ` + strings.ToLower(reason) + `}, involvedObject: {uid: p}, lastTimestamp: "` + at + `", reason: ` + reason + `, message: m of ` + at[17:19] + `}`
	}
	cases := map[string]struct {
		reason  string
		objects []string
		want    objectStatus
	}{
		"no network": {
			"only an event tells that a pod gets no network", []string{
				deployment, newSet, pod("r2", "", "phase: Pending, "+waits("containerStatuses", "ContainerCreating")), told("2026-01-01T00:00:10Z", "FailedCreatePodSandBox"),
			},
			objectStatus{nf.InProgress, "Replicas: 0/1; pod web-x: FailedCreatePodSandBox: m of 10"},
		},
		"no volume": {
			"the last event counts", []string{
				deployment, newSet, pod("r2", "", "phase: Pending"), told("2026-01-01T00:00:11Z", "FailedMount"), told("2026-01-01T00:00:10Z", "FailedCreatePodSandBox"),
			},
			objectStatus{nf.InProgress, "Replicas: 0/1; pod web-x: FailedMount: m of 11"},
		},
		"network again": {
			"what held up a pod that runs is over", []string{deployment, newSet, pod("r2", "", "phase: Running"), told("2026-01-01T00:00:10Z", "FailedCreatePodSandBox")},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"other event": {
			"an event of another reason explains nothing", []string{deployment, newSet, pod("r2", "", "phase: Pending"), told("2026-01-01T00:00:10Z", "DNSConfigForming")},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"worse than an event": {
			"what the pod itself says goes first", []string{
				deployment, newSet, pod("r2", "", "phase: Pending, "+waits("containerStatuses", "ErrImagePull")), told("2026-01-01T00:00:10Z", "FailedMount"),
			},
			objectStatus{nf.InProgress, "Replicas: 0/1; pod web-x: container c: ErrImagePull: m"},
		},
		"lone pod": {
			"a pod without a controller is told of as well", []string{
				`{apiVersion: v1, kind: Pod, metadata: {name: web-x, uid: p}, status: {phase: Pending}}`, told("2026-01-01T00:00:10Z", "FailedMount"),
			},
			objectStatus{nf.InProgress, "Pod is in the Pending phase; pod web-x: FailedMount: m of 10"},
		},
		"new pod": {
			"the present template's pod cannot start", []string{deployment, oldSet, newSet, pod("r2", "", waits("containerStatuses", "ImagePullBackOff"))},
			objectStatus{nf.StatusFailed, "pod web-x: container c: ImagePullBackOff: m"},
		},
		"init container": {
			"init containers count", []string{deployment, newSet, pod("r2", "", waits("initContainerStatuses", "CrashLoopBackOff"))},
			objectStatus{nf.StatusFailed, "pod web-x: container c: CrashLoopBackOff: m"},
		},
		"old pod": {
			"the pod of an older template is on its way out", []string{deployment, oldSet, newSet, pod("r1", "", waits("containerStatuses", "ImagePullBackOff"))},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"old pod, and the new set is not seen": {
			"sets are watched apart from Deployments, and may come later", []string{deployment, oldSet, pod("r1", "", waits("containerStatuses", "ImagePullBackOff"))},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"deleted pod": {
			"a pod that is going says nothing", []string{deployment, newSet, pod("r2", `deletionTimestamp: "2026-01-01T00:00:00Z",`, waits("containerStatuses", "ImagePullBackOff"))},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"controller behind": {
			"which template is the present one is not known yet", []string{behind, newSet, pod("r2", "", waits("containerStatuses", "ImagePullBackOff"))},
			objectStatus{nf.InProgress, "Deployment generation is 3, but latest observed generation is 2"},
		},
		"first pull": {
			"a first failure may pass, and is told", []string{deployment, newSet, pod("r2", "", waits("containerStatuses", "ErrImagePull"))},
			objectStatus{nf.InProgress, "Replicas: 0/1; pod web-x: container c: ErrImagePull: m"},
		},
		"starting": {
			"all containers are created once", []string{deployment, newSet, pod("r2", "", waits("containerStatuses", "ContainerCreating"))},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"no node": {
			"why no node fits is told", []string{deployment, newSet, pod("r2", "", `conditions: [{type: PodScheduled, status: "False", message: 0/3 nodes}]`)},
			objectStatus{nf.InProgress, "Replicas: 0/1; pod web-x: 0/3 nodes"},
		},
		"crashing job": {
			"a Job counts its crashes itself", []string{job, pod("d", "", waits("containerStatuses", "CrashLoopBackOff"))},
			objectStatus{nf.InProgress, "Job not started"},
		},
		"quota": {
			"no pod can be made", []string{refused("")},
			objectStatus{nf.StatusFailed, `pods "x" is forbidden: exceeded quota: q`},
		},
		"quota in a rollout": {
			"old pods may still make room", []string{refused("replicas: 2, updatedReplicas: 1,")},
			objectStatus{nf.InProgress, `Updated: 1/2; pods "x" is forbidden: exceeded quota: q`},
		},
		"event": {
			"a stateful set has no condition for it", []string{set, event("2026-01-01T00:00:10Z", "forbidden: exceeded quota: q")},
			objectStatus{nf.StatusFailed, "forbidden: exceeded quota: q"},
		},
		"old event": {
			"an event of before the last change is over", []string{set, event("2026-01-01T00:00:09Z", "forbidden: exceeded quota: q")},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"event of something else": {
			"what is refused is no pod", []string{set, strings.Replace(event("2026-01-01T00:00:10Z", "forbidden: exceeded quota: q"), "FailedCreate", "FailedUpdate", 1)},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"event before a pod": {
			"a pod was made since", []string{set, event("2026-01-01T00:00:10Z", "forbidden: exceeded quota: q"), pod("d", `creationTimestamp: "2026-01-01T00:00:11Z",`, "")},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"passing event": {
			"a service account may come a moment later", []string{set, event("2026-01-01T00:00:10Z", "forbidden: error looking up service account a/b")},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"pod of another group": {
			"a custom resource may be called Pod", []string{
				deployment, newSet, strings.Replace(pod("r2", "", waits("containerStatuses", "ImagePullBackOff")), "apiVersion: v1", "apiVersion: example.org/v1", 1),
			},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"event of another group": {
			"a custom resource may be called Event", []string{
				set, strings.Replace(event("2026-01-01T00:00:10Z", "forbidden: exceeded quota: q"), "apiVersion: v1", "apiVersion: example.org/v1", 1),
			},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
		"workload of another group": {
			"what its controller makes of an event is not known", []string{
				strings.Replace(job, "batch/v1, kind: Job, metadata: {", `example.org/v1, kind: Job, status: {observedGeneration: 1, conditions: [{type: Reconciling, status: "True", message: it is made}]}, metadata: {generation: 1, `, 1),
				event("2026-01-01T00:00:10Z", "forbidden: exceeded quota: q"),
			},
			objectStatus{nf.InProgress, "it is made"},
		},
		"pod of an older revision": {
			"a rolling stateful set replaces it", []string{set, pod("d", "labels: {controller-revision-hash: old},", waits("containerStatuses", "ImagePullBackOff"))},
			objectStatus{nf.InProgress, "Replicas: 0/1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := newView(instance("vnf-1"), readiness.Shipped())
			var target *unstructured.Unstructured
			for _, text := range tc.objects {
				u := parsed(t, strings.ReplaceAll(text, "%", "0"))
				v.put(u)
				if target == nil {
					target = u
				}
			}
			if got := v.health(target); got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestViewRouses follows a change from where it happens to what it is about.
func TestViewRouses(t *testing.T) {
	v := newView(instance("vnf-1"), readiness.Shipped())
	pod := parsed(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, uid: p, ownerReferences: [{uid: r, controller: true}]}}`)
	set := parsed(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, uid: r, ownerReferences: [{uid: d, controller: true}]}}`)
	deployment := parsed(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, uid: d, ownerReferences: [{uid: p, controller: true}]}}`)
	for _, u := range []*unstructured.Unstructured{pod, set, deployment} { // the child comes first, and they go round in a circle
		v.put(u)
	}
	_, _ = v.take()
	for _, change := range []func(){func() { v.put(pod) }, func() { v.drop(nf.RefOf(pod).Key()) }} {
		change()
		if changed, _ := v.take(); !changed[nf.RefOf(deployment).Key()] {
			t.Errorf("a change of the pod changes its Deployment: %v", changed)
		}
	}
	if len(v.below["r"]) != 0 || len(v.names) != 2 {
		t.Errorf("what is gone is forgotten: %v, %v", v.below, v.names)
	}
}

// TestFinalizers names the finalizers that an object is waiting for.
func TestFinalizers(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kubeovn.io/v1")
	u.SetKind("Subnet")
	u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	u.SetFinalizers([]string{"kubeovn.io/kube-ovn-controller", "example.org/other"})
	want := readiness.Verdict{Status: nf.StatusDeleting, Message: "its deletion waits for the finalizers kubeovn.io/kube-ovn-controller, example.org/other"}
	if got := judge(readiness.Shipped(), u, nil); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestStatusless has the kinds that are not watched after they were applied.
func TestStatusless(t *testing.T) {
	for gk := range statusless {
		ref := nf.Ref{Group: gk.Group, Version: "v1", Kind: gk.Kind, Name: "a"}
		for _, action := range []nf.Action{nf.Created, nf.Configured, nf.Unchanged} {
			change := nf.Change{Ref: ref, Action: action, UID: "u", Generation: 2}
			if got := currentHealth(change); !isCurrent(change) || got.Status != nf.Current || got.UID != "u" || got.Generation != 2 {
				t.Errorf("%s is %+v as soon as it exists", gk, got)
			}
		}
		for _, change := range []nf.Change{{Ref: ref, Action: nf.Created}, {Ref: ref, Action: nf.Deleted, UID: "u"}, {Ref: ref, UID: "u"}} {
			if isCurrent(change) {
				t.Errorf("%+v does not say that the object exists", change)
			}
		}
	}
	if isCurrent(nf.Change{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment"}, Action: nf.Created, UID: "u"}) {
		t.Error("a Deployment becomes ready some time after it was applied")
	}
}
