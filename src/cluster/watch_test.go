package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The workloads of these tests come in two sorts: those whose pods the sandbox
// runs, and those that are held, whose pods no scheduler takes, so that a test
// can be their kubelet.
func workloadOf(t *testing.T, namespace, kind, name, scheduler, spec string) *unstructured.Unstructured {
	t.Helper()
	version := "apps/v1"
	if kind == "Job" {
		version = "batch/v1"
	}
	restart, selector := "", `selector: {matchLabels: {app: `+name+`}},`
	if kind == "Job" {
		restart, selector = `, restartPolicy: Never`, ""
	}
	return objects(t, "vnf-1", namespace, `{apiVersion: `+version+`, kind: `+kind+`, metadata: {name: `+name+`}, spec: {`+spec+selector+`
		template: {metadata: {labels: {app: `+name+`}}, spec: {schedulerName: `+scheduler+`, containers: [{name: c, image: "i:1"}]`+restart+`}}}}`)[0]
}

const scheduled, held = "default-scheduler", "nobody"

func TestWatchUntilCurrent(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	us := []*unstructured.Unstructured{
		workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 3,"),
		workloadOf(t, ns, "Deployment", "none", scheduled, "replicas: 0,"),
		workloadOf(t, ns, "Deployment", "paused", scheduled, "paused: true,"),
		workloadOf(t, ns, "StatefulSet", "db", scheduled, "replicas: 2, serviceName: db,"),
		workloadOf(t, ns, "StatefulSet", "manual", scheduled, "updateStrategy: {type: OnDelete}, serviceName: db,"),
		workloadOf(t, ns, "DaemonSet", "agent", scheduled, ""),
		workloadOf(t, ns, "Job", "once", scheduled, ""),
		configMap(t, vnf, ns, "conf", "1"),
	}
	us = append(us, objects(t, vnf, ns, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`+
		"\n---\n"+`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)...)
	us[len(us)-2].SetName("lb")
	made := mustApply(t, c, vnf, us...)
	last := await(t.Context(), t, c, vnf, made, nf.Current)
	for _, change := range made {
		if h := last[change.Name]; h.UID != change.UID || h.Generation < change.Generation {
			t.Errorf("%v speaks of uid %s, generation %d; the change was %s, %d", h.Ref, h.UID, h.Generation, change.UID, change.Generation)
		}
	}
	health, err := c.Health(t.Context(), instance(vnf), refs(us...))
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range health {
		if h != last[us[i].GetName()] {
			t.Errorf("Health tells %+v, Watch told %+v", h, last[us[i].GetName()])
		}
	}
}

func TestWatchOfDeletion(t *testing.T) {
	c, ns := sandbox(t)
	web := workloadOf(t, ns, "Deployment", "web", scheduled, "")
	await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", web), nf.Current)
	var seen []nf.Status
	var deleted []nf.Change
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: nf.RefOf(web)}}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, h.Status); h.Status == nf.Absent {
			break
		}
		if deleted == nil {
			if deleted, err = c.Delete(t.Context(), instance("vnf-1"), refs(web)); err != nil {
				t.Fatal(err)
			}
		}
	}
	diff(t, "each status is told once", []nf.Status{nf.Current, nf.StatusDeleting, nf.Absent}, seen)
	pods := nf.Ref{Version: "v1", Kind: "Pod", Namespace: ns}
	if n := len(list(t, c, pods)); n > 0 {
		t.Errorf("%d pods outlive their Deployment", n)
	}
	await(t.Context(), t, c, "vnf-1", deleted, nf.Absent)
}

// list reads all objects of a kind in a namespace.
func list(t *testing.T, c *Cluster, ref nf.Ref) []unstructured.Unstructured {
	t.Helper()
	ks, err := c.client.apis.kinds(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	k, _ := ks.exact(gvkOf(ref))
	all, err := watcher(t).Resource(k.gvr()).Namespace(ref.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all.Items
}

// breakPods waits for n pods that no kubelet has, and gives each a container
// that waits for the reason.
func breakPods(t *testing.T, c *Cluster, namespace, reason string, n int) {
	t.Helper()
	heldPods(t, namespace, n, func(p *unstructured.Unstructured) {
		patchStatus(t, c, "/api/v1/namespaces/"+namespace+"/pods/"+p.GetName(), `{"containerStatuses":[{"name":"c","image":"i:1","imageID":"",
			"ready":false,"restartCount":0,"state":{"waiting":{"reason":"`+reason+`","message":"as the test wants it"}}}]}`)
	})
}

// heldPods waits for n pods that no kubelet has, and hands over each.
func heldPods(t *testing.T, namespace string, n int, each func(*unstructured.Unstructured)) {
	t.Helper()
	w, err := watcher(t).Resource(podKind.gvr()).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	seen := map[string]bool{}
	for e := range w.ResultChan() {
		p, ok := e.Object.(*unstructured.Unstructured)
		if !ok || seen[p.GetName()] || text(p.Object, "spec", "schedulerName") != held {
			continue
		}
		seen[p.GetName()] = true
		each(p)
		if len(seen) == n {
			return
		}
	}
	t.Fatalf("%d of %d pods came", len(seen), n)
}

func TestWatchFailsFast(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   string
		spec   string
		waits  string
	}{
		"image of a Deployment":  {"the pod is its replica set's, the replica set the Deployment's", "Deployment", "", "ImagePullBackOff"},
		"crash of a StatefulSet": {"the pod is the set's own", "StatefulSet", "serviceName: db,", "CrashLoopBackOff"},
		"config of a DaemonSet":  {"the pod is the set's own", "DaemonSet", "", "CreateContainerConfigError"},
		"image name in a Job":    {"a Job does not try another image", "Job", "", "InvalidImageName"},
		"image of a ReplicaSet":  {"a replica set without a Deployment", "ReplicaSet", "", "ErrImageNeverPull"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, ns := sandbox(t)
			u := workloadOf(t, ns, tc.kind, "web", held, tc.spec)
			made := mustApply(t, c, "vnf-1", u)
			breakPods(t, c, ns, tc.waits, 1)
			last := await(t.Context(), t, c, "vnf-1", made, nf.StatusFailed)["web"]
			if !strings.HasPrefix(last.Message, "pod web-") || !strings.HasSuffix(last.Message, ": container c: "+tc.waits+": as the test wants it") {
				t.Errorf("%s: the message is %q, want the pod's own", tc.reason, last.Message)
			}
			health, err := c.Health(t.Context(), instance("vnf-1"), refs(u))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "Health tells the same", []nf.Health{last}, health)
		})
	}
}

// TestWatchOfUpgrade repairs a Deployment whose pods are broken: what is seen of
// the old pods must not fail the new revision.
func TestWatchOfUpgrade(t *testing.T) {
	c, ns := sandbox(t)
	made := mustApply(t, c, "vnf-1", workloadOf(t, ns, "Deployment", "web", held, "replicas: 2,"))
	breakPods(t, c, ns, "ImagePullBackOff", 2)
	await(t.Context(), t, c, "vnf-1", made, nf.StatusFailed)

	changed := mustApply(t, c, "vnf-1", workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,"))
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), changed) {
		switch {
		case err != nil:
			t.Fatal(err)
		case h.Status == nf.StatusFailed:
			t.Fatalf("the new revision fails because of the old one's pods: %+v", h)
		case h.Generation < changed[0].Generation:
			t.Errorf("a status of generation %d was told, the change made %d", h.Generation, changed[0].Generation)
		}
		if h.Status == nf.Current {
			break
		}
	}
}

func TestWatchOfQuota(t *testing.T) {
	c, ns := sandbox(t)
	limits := mustApply(t, c, "vnf-1", objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: "0"}}}`)...)
	await(t.Context(), t, c, "vnf-1", limits, nf.Current) // its limits are enforced
	made := mustApply(t, c, "vnf-1",
		workloadOf(t, ns, "Deployment", "d", scheduled, ""),
		workloadOf(t, ns, "StatefulSet", "s", scheduled, "serviceName: s,"),
		workloadOf(t, ns, "DaemonSet", "a", scheduled, ""),
		workloadOf(t, ns, "Job", "j", scheduled, ""))
	for name, h := range await(t.Context(), t, c, "vnf-1", made, nf.StatusFailed) {
		if !strings.Contains(h.Message, "exceeded quota: q") {
			t.Errorf("the message of %s is %q, want the API server's about the quota", name, h.Message)
		}
	}
}

func TestApplyOverQuota(t *testing.T) {
	c, ns := sandbox(t)
	made := mustApply(t, c, "vnf-1", objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/secrets: "0"}}}`)...)
	await(t.Context(), t, c, "vnf-1", made, nf.Current) // its limits are enforced
	_, err := c.Apply(t.Context(), instance("vnf-1"), objects(t, "vnf-1", ns, `{apiVersion: v1, kind: Secret, metadata: {name: s}}`))
	wantKind(t, err, nf.Failed)
	if nf.ReasonOf(err) != "quota" {
		t.Errorf("the reason is %q, want quota: %v", nf.ReasonOf(err), err)
	}
}

func TestWatchSaysNothingOfOthers(t *testing.T) {
	c, ns := sandbox(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	made := mustApply(t, c, "vnf-1", u)
	older, other, newer := made[0], made[0], made[0]
	older.UID = ""                                                  // speaks of whatever is there
	other.Name, other.UID, other.Action = "b", "an-earlier-one", "" // not as an apply returned it
	newer.Name, newer.Generation = "web", 99
	b := configMap(t, "vnf-1", ns, "b", "1")
	mustApply(t, c, "vnf-1", b)
	web := workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 0,")
	newer.Ref, newer.UID = nf.RefOf(web), mustApply(t, c, "vnf-1", web)[0].UID
	theirs := nf.Change{Ref: nf.RefOf(configMap(t, "vnf-1", ns, "theirs", "1"))}
	mustApply(t, c, "vnf-2", configMap(t, "vnf-2", ns, "theirs", "1"))

	got := map[string]nf.Status{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for h, err := range c.Watch(ctx, instance("vnf-1"), []nf.Change{older, other, newer, theirs}) {
		if err != nil {
			t.Fatal(err)
		}
		if got[h.Name] = h.Status; len(got) == 2 {
			// If the other two were reported by mistake, they would have been
			// with the first of their kinds, or are by the time web is seen.
			await(t.Context(), t, c, "vnf-1", []nf.Change{{Ref: nf.RefOf(web)}}, nf.Current)
			cancel()
		}
	}
	diff(t, "another uid and an older generation are not told; another owner's object is absent",
		map[string]nf.Status{"a": nf.Current, "theirs": nf.Absent}, got)
}

func TestWatchEnds(t *testing.T) {
	c, ns := sandbox(t)
	made := mustApply(t, c, "vnf-1", workloadOf(t, ns, "Deployment", "web", held, ""), configMap(t, "vnf-1", ns, "a", "1"))
	cases := map[string]struct {
		reason string
		stop   func(cancel func()) (goOn bool)
	}{
		"break":  {"who leaves the loop leaves nothing behind", func(func()) bool { return false }},
		"cancel": {"a context that ends ends the sequence without an error", func(cancel func()) bool { cancel(); return true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, err := range c.Watch(ctx, instance("vnf-1"), made) {
				if err != nil {
					t.Fatal(err)
				}
				if !tc.stop(cancel) {
					break
				}
			}
			cancel()
			if err := goleak.Find(before); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestWatchThroughFaults(t *testing.T) {
	watches := func(q clustertest.Request) bool { return q.Query.Get("watch") != "" }
	lists := func(q clustertest.Request) bool {
		return q.Method == "GET" && strings.HasSuffix(q.Path, "/configmaps") && !watches(q)
	}
	c, r, ns := recorded(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	mustApply(t, c, "vnf-1", u)
	r.Fail(clustertest.Times(2, watches), clustertest.Drop)
	r.Fail(clustertest.Times(1, watches), clustertest.Status(410))
	r.Fail(clustertest.Times(1, lists), clustertest.Status(503))
	var seen []nf.Status
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: nf.RefOf(u)}}) {
		if err != nil {
			t.Fatal(err)
		}
		if h.Status == nf.StatusDeleting {
			continue // it may be seen on its way, or not
		}
		if seen = append(seen, h.Status); h.Status == nf.Absent {
			break
		}
		if _, err := c.Delete(t.Context(), instance("vnf-1"), refs(u)); err != nil {
			t.Fatal(err)
		}
	}
	diff(t, "what breaks is taken up again, and nothing is missed or told twice", []nf.Status{nf.Current, nf.Absent}, seen)
}

func TestWatchRefused(t *testing.T) {
	c, r, ns := recorded(t)
	made := mustApply(t, c, "vnf-1", configMap(t, "vnf-1", ns, "a", "1"), workloadOf(t, ns, "Deployment", "web", scheduled, ""))
	heal := r.Fail(func(q clustertest.Request) bool { return strings.HasSuffix(q.Path, "/pods") }, clustertest.Status(403))
	await(t.Context(), t, c, "vnf-1", made, nf.Current) // pods only explain
	heal()
	r.Fail(func(q clustertest.Request) bool {
		return strings.HasSuffix(q.Path, "/configmaps") || strings.HasSuffix(q.Path, "/deployments")
	}, clustertest.Status(403))
	var last error
	for _, err := range c.Watch(t.Context(), instance("vnf-1"), made) {
		last = err
	}
	wantKind(t, last, nf.Failed)
	health, err := c.Health(t.Context(), instance("vnf-1"), refs(configMap(t, "vnf-1", ns, "a", "1")))
	if err != nil || health[0].Status != nf.Unknown {
		t.Errorf("a look that is refused is told, a watch that is refused has ended: %+v, %v", health, err)
	}
}

func TestNothingAnswers(t *testing.T) {
	r := clustertest.NewRecorder(t)
	r.Fail(func(clustertest.Request) bool { return true }, clustertest.Hang)
	c := openAt(t, r.Kubeconfig())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Apply(ctx, instance("vnf-1"), []*unstructured.Unstructured{configMap(t, "vnf-1", "ns", "a", "1")})
	wantKind(t, err, nf.Timeout)
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	_, err = c.Delete(stopped, instance("vnf-1"), []nf.Ref{{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}})
	wantKind(t, err, nf.Cancelled)
	if !strings.Contains(err.Error(), "enough") {
		t.Errorf("the error is %v, want it to tell why it was cancelled", err)
	}
}
