package cluster

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// moment is a state of an object, some time after a watch began.
type moment struct {
	after  time.Duration
	object string // %d is its resource version; empty: it is deleted
}

// change is a status that a watch has reported.
type change struct {
	After   time.Duration
	Status  nf.Status
	Message string // its beginning
}

// TestWatchSettles has statuses that count only after a time.
func TestWatchSettles(t *testing.T) {
	const (
		silent   = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, uid: %s, generation: %d, resourceVersion: "%%d"}, spec: {}}`
		vlan     = `{apiVersion: kubeovn.io/v1, kind: Vlan, metadata: {name: w, uid: u, generation: 1, resourceVersion: "%d"}}`
		vlanFine = `{apiVersion: kubeovn.io/v1, kind: Vlan, metadata: {name: w, uid: u, generation: 1, resourceVersion: "%d"}, status: {conflict: false}}`
		vlanBad  = `{apiVersion: kubeovn.io/v1, kind: Vlan, metadata: {name: w, uid: u, generation: 1, resourceVersion: "%d"}, status: {conflict: true}}`
		ready    = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, uid: u, generation: 1, resourceVersion: "%d"}, status: {conditions: [{type: Ready, status: "True"}]}}`
		refused  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, uid: u, resourceVersion: "%d", generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True", message: 'pods "x" is forbidden: exceeded quota: q'}]}}`
		running  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, uid: u, resourceVersion: "%d", generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`
		failed   = `{apiVersion: batch/v1, kind: Job, metadata: {name: w, uid: u, resourceVersion: "%d"}, status: {conditions: [{type: Failed, status: "True", message: "it has reached its limit"}]}}`
		overdue  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, uid: u, resourceVersion: "%%d", generation: 2, managedFields: [{manager: k8splugin/vnf-1, operation: Apply, time: "2026-01-02T00:00:10Z"}]}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, lastUpdateTime: %q, message: "it has timed out"}]}}`
		unset    = `{apiVersion: v1, kind: Pod, metadata: {name: w, uid: u, resourceVersion: "%d"}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: CreateContainerConfigError, message: secret "s" not found}}}]}}`
		started  = `{apiVersion: v1, kind: Pod, metadata: {name: w, uid: u, resourceVersion: "%d"}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
		built    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: w, uid: u, resourceVersion: "%d"}}`
	)
	widget := func(uid string, generation int) string { return fmt.Sprintf(silent, uid, generation) }
	busy := make([]moment, 40) // it changes each second
	for i := range busy {
		busy[i] = moment{time.Duration(i) * time.Second, widget("u", 1)}
	}
	cases := map[string]struct {
		reason string
		states []moment
		want   []change
		action nf.Action // what the apply did
	}{
		"Silent": {
			"an object that says nothing must be still", []moment{{0, widget("u", 1)}},
			[]change{{0, nf.InProgress, "it has changed less than 2s ago"}, {2 * time.Second, nf.Current, "it exists; nothing else is known"}}, "",
		},
		"Changes": {
			"each change begins anew", []moment{{0, widget("u", 1)}, {time.Second, widget("u", 1)}, {5 * time.Second, widget("u", 1)}},
			[]change{
				{0, nf.InProgress, "it has changed"}, {3 * time.Second, nf.Current, "it exists"},
				{5 * time.Second, nf.InProgress, "it has changed"}, {7 * time.Second, nf.Current, "it exists"},
			}, "",
		},
		"Restless": {
			"an object that changes all the time is not waited for without end", busy,
			[]change{{0, nf.InProgress, "it has changed"}, {30 * time.Second, nf.Current, "it exists"}}, "",
		},
		"Generation": {
			"a new generation begins anew", []moment{{0, widget("u", 1)}, {29 * time.Second, widget("u", 2)}},
			[]change{
				{0, nf.InProgress, "it has changed"}, {2 * time.Second, nf.Current, "it exists"},
				{29 * time.Second, nf.InProgress, "it has changed"}, {31 * time.Second, nf.Current, "it exists"},
			}, "",
		},
		"Speaks": {
			"a condition ends the wait", []moment{{0, widget("u", 1)}, {time.Second, ready}},
			[]change{{0, nf.InProgress, "it has changed"}, {time.Second, nf.Current, "Resource is Ready"}}, "",
		},
		"Deleted": {
			"an object that is gone does not become ready", []moment{{0, widget("u", 1)}, {time.Second, ""}},
			[]change{{0, nf.InProgress, "it has changed"}, {time.Second, nf.Absent, ""}}, "",
		},
		"No status": {
			"a controller gets time to write a status, and changes of others do not prolong it", []moment{{0, vlan}, {4 * time.Second, vlan}},
			[]change{{0, nf.InProgress, "its controller has not written a status yet"}, {5 * time.Second, nf.Current, ""}}, "",
		},
		"Status": {
			"it has written one", []moment{{0, vlan}, {time.Second, vlanFine}},
			[]change{{0, nf.InProgress, "its controller"}, {time.Second, nf.Current, ""}}, "",
		},
		"Bad status": {
			"the rule decides", []moment{{0, vlan}, {time.Second, vlanBad}},
			[]change{{0, nf.InProgress, "its controller"}, {time.Second, nf.InProgress, "it is not ready yet"}}, "",
		},
		"Built in": {
			"kinds of Kubernetes are judged at once", []moment{{0, built}},
			[]change{{0, nf.Current, "Resource is always ready"}}, "",
		},
		"Fails": {
			"a failure counts at once after a change", []moment{{0, refused}},
			[]change{{0, nf.StatusFailed, `pods "x" is forbidden: exceeded quota: q`}}, nf.Configured,
		},
		"Recovers": {
			"a failure from before an apply without a change does not count at once", []moment{{0, refused}, {time.Second, running}},
			[]change{{0, nf.InProgress, `pods "x" is forbidden: exceeded quota: q; it had failed before, and has 20s to recover`}, {time.Second, nf.Current, "Deployment is available"}}, nf.Unchanged,
		},
		"Does not recover": {
			"it counts if it lasts", []moment{{0, refused}},
			[]change{{0, nf.InProgress, `pods "x" is forbidden: exceeded quota: q`}, {20 * time.Second, nf.StatusFailed, `pods "x" is forbidden: exceeded quota: q`}}, nf.Unchanged,
		},
		"Overdue before": {
			"the controller keeps the condition after a change, until pods make progress", []moment{{0, fmt.Sprintf(overdue, "2026-01-02T00:00:10Z")}, {time.Second, running}},
			[]change{{0, nf.InProgress, "it has timed out; it had failed before, and has 20s to recover"}, {time.Second, nf.Current, "Deployment is available"}}, nf.Configured,
		},
		"Overdue": {
			"the change itself has made no progress", []moment{{0, fmt.Sprintf(overdue, "2026-01-02T00:00:11Z")}},
			[]change{{0, nf.StatusFailed, "it has timed out"}}, nf.Configured,
		},
		"Secret to come": {
			"another controller creates the Secret", []moment{{0, unset}, {19 * time.Second, started}},
			[]change{{0, nf.InProgress, `pod w: container c: CreateContainerConfigError: secret "s" not found; it has 20s to recover`}, {19 * time.Second, nf.Current, "Pod is Ready"}}, nf.Created,
		},
		"No Secret": {
			"the time begins with the first failure", []moment{{0, unset}, {5 * time.Second, unset}},
			[]change{{0, nf.InProgress, `pod w: container c: CreateContainerConfigError`}, {20 * time.Second, nf.StatusFailed, `pod w: container c: CreateContainerConfigError: secret "s" not found`}}, nf.Created,
		},
		"Has ended": {
			"a Job that has failed does not recover", []moment{{0, failed}},
			[]change{{0, nf.StatusFailed, "it has reached its limit"}}, nf.Unchanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, _ := alone(t, well)
				set, began := newStreamSet(c.client, instance("vnf-1")), time.Now()
				first := parsed(t, fmt.Sprintf(tc.states[0].object, 0))
				key := nf.RefOf(first).Key()
				go func() {
					synctest.Wait() // until the watch waits for a change
					for i, s := range tc.states {
						time.AfterFunc(s.after, func() {
							if s.object == "" {
								set.view.drop(key)
								return
							}
							set.view.put(parsed(t, fmt.Sprintf(s.object, i)))
						})
					}
				}()
				var got []change
				time.AfterFunc(time.Minute, c.transport.close)
				set.watch(t.Context(), []nf.Change{{Ref: nf.RefOf(first), Action: tc.action}}, func(h nf.Health, err error) bool {
					if err == nil {
						got = append(got, change{time.Since(began), h.Status, h.Message})
					}
					return err == nil
				})
				for i := range min(len(got), len(tc.want)) {
					if strings.HasPrefix(got[i].Message, tc.want[i].Message) {
						got[i].Message = tc.want[i].Message
					}
				}
				diff(t, tc.reason, tc.want, got)
			})
		})
	}
}

// TestSingleReadSettles has that a single read, which cannot observe how long a
// status lasts, does not wait for it.
func TestSingleReadSettles(t *testing.T) {
	v := newView(instance("vnf-1"), readiness.Shipped())
	u := parsed(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, uid: u}}`)
	v.put(u)
	if h, ok := v.of(nf.Change{Ref: nf.RefOf(u)}); !ok || h.Status != nf.Current || !strings.Contains(h.Message, "nothing else is known") {
		t.Errorf("%+v, %t", h, ok)
	}
}

// TestFailureIsRemembered has a Job that fails, and is deleted at the end of its time to
// live before the reader of the view takes its failure.
func TestFailureIsRemembered(t *testing.T) {
	v := newView(instance("vnf-1"), readiness.Shipped())
	v.observe()
	u := parsed(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: w, uid: u}, status: {conditions: [{type: Failed, status: "True", message: "it has reached its limit"}]}}`)
	v.drop(v.put(u))
	for _, tc := range []struct {
		reason string
		target nf.Change
		want   nf.Health
	}{
		{"it has failed", nf.Change{UID: "u"}, nf.Health{Status: nf.StatusFailed, Message: "it has reached its limit", UID: "u"}},
		{"it was to be deleted", nf.Change{UID: "u", Action: nf.Deleted}, nf.Health{Status: nf.Absent}},
		{"another one has failed", nf.Change{UID: "v"}, nf.Health{Status: nf.Absent}},
	} {
		tc.target.Ref, tc.want.Ref = nf.RefOf(u), nf.RefOf(u)
		got, ok := v.of(tc.target)
		if diff(t, tc.reason, tc.want, got); !ok {
			t.Errorf("%s: it is not reported", tc.reason)
		}
	}
}

// TestJudgeCustom has the order of the rules for custom resources.
func TestJudgeCustom(t *testing.T) {
	rules, err := readiness.New("r.yaml", []byte("- {group: example.com, kind: Widget, current: object.status.up}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, object string
		categories     []string
		want           nf.Status
	}{
		"Deletion":   {"deletion comes first", `{apiVersion: example.com/v1, kind: Widget, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {up: true}}`, nil, nf.StatusDeleting},
		"Configured": {"then the operator's rule", `{apiVersion: example.com/v1, kind: Widget, status: {up: false, conditions: [{type: Ready, status: "True"}]}}`, nil, nf.InProgress},
		"Category":   {"or one for a category", `{apiVersion: example.com/v1, kind: Bucket, status: {conditions: [{type: Ready, status: "True"}]}}`, []string{"managed"}, nf.InProgress},
		"kstatus":    {"then kstatus", `{apiVersion: example.com/v1, kind: Gadget, status: {conditions: [{type: Ready, status: "False"}]}}`, nil, nf.InProgress},
		"Own annotation": {
			"kinds of Kubernetes have no rules",
			`{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {k8splugin.io/readiness: '{"current":"false"}'}}}`, nil, nf.Current,
		},
	} {
		if got := judge(rules, parsed(t, tc.object), tc.categories); got.Status != tc.want {
			t.Errorf("%s: %s: %+v, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// TestCategoriesReachTheView has categories of a kind, from its discovery to the
// judgment of its objects.
func TestCategoriesReachTheView(t *testing.T) {
	set := newStreamSet(&client{apis: &apis{rules: readiness.Shipped()}}, instance("vnf-1"))
	ref := nf.Ref{Group: "example.com", Version: "v1", Kind: "Bucket", Name: "w"}
	set.addHealth([]target{{ref, kind{gvkOf(ref), "buckets", true, nil, []string{"managed"}}, true}}, []nf.Change{{Ref: ref}})
	if got := set.view.categories[schema.GroupKind{Group: "example.com", Kind: "Bucket"}]; len(got) != 1 {
		t.Fatalf("the kind is in %v", got)
	}
	set.view.put(parsed(t, `{apiVersion: example.com/v1, kind: Bucket, metadata: {name: w, uid: u}, status: {conditions: [{type: Ready, status: "True"}]}}`))
	if h, _ := set.view.of(nf.Change{Ref: ref}); h.Status != nf.InProgress {
		t.Errorf("it is not synced: %+v", h)
	}
}
