package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// census collects the census of one owner, and runs the step that waits
// for the reports so far.
func census(t *testing.T, c *Cluster, owner string, kind nf.Ref, steps []func(seen map[string]nf.Status) bool) {
	t.Helper()
	seen := map[string]nf.Status{}
	for m, err := range c.Census(t.Context(), kind) {
		if err != nil {
			t.Fatalf("with %d steps to go: %v", len(steps), err)
		}
		if m.Owner == owner {
			seen[m.Key] = m.Status
		}
		if m.Synced {
			seen["synced"] = nf.Current
		}
		if steps[0](seen) {
			if steps = steps[1:]; len(steps) == 0 {
				return
			}
		}
	}
	t.Fatalf("the census ended with %d steps to go: %v", len(steps), seen)
}

func TestCensus(t *testing.T) {
	const vnf = "vnf-census"
	cases := map[string]struct {
		reason string
		object string
	}{
		"Deployment": {"its status tells", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {paused: true, replicas: 0, selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}`},
		"ConfigMap": {"that it is there is all there is to it", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`},
		"Secret":    {"its values are not read", `{apiVersion: v1, kind: Secret, metadata: {name: web}, stringData: {key: value}}`},
		"Role":      {"metadata have no kind of their own", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r, ns := recorded(t)
			owner := vnf + "-" + ns
			u := objects(t, owner, ns, tc.object)[0]
			ref := nf.RefOf(u)
			is := func(want nf.Status) func(map[string]nf.Status) bool {
				return func(seen map[string]nf.Status) bool { return seen[ref.Key()] == want }
			}
			then := func(step func(map[string]nf.Status) bool, do func()) func(map[string]nf.Status) bool {
				return func(seen map[string]nf.Status) bool {
					ok := step(seen)
					if ok {
						do()
					}
					return ok
				}
			}
			synced := func(seen map[string]nf.Status) bool { return seen["synced"] != "" }
			census(t, c, owner, ref, []func(map[string]nf.Status) bool{
				then(synced, func() { mustApply(t, c, owner, u) }),
				then(is(nf.Current), func() {
					if _, err := c.Delete(t.Context(), instance(owner), []nf.Ref{ref}); err != nil {
						t.Error(err)
					}
				}),
				is(nf.Absent),
			})
			mustApply(t, c, owner, u)
			census(t, c, owner, ref, []func(map[string]nf.Status) bool{
				then(func(seen map[string]nf.Status) bool { return is(nf.Current)(seen) && synced(seen) }, func() {
					if _, err := c.Orphan(t.Context(), instance(owner), []nf.Ref{ref}); err != nil {
						t.Error(err)
					}
				}),
				is(nf.Absent), // it no longer belongs to the owner
			})
			for _, q := range r.Requests() {
				if meta := strings.Contains(q.Accept, "PartialObjectMetadata"); q.Query.Has("labelSelector") && q.Query.Get("labelSelector") == nf.OwnerLabel && meta != bare(ref) {
					t.Errorf("%s: %s %s asks for %q", tc.reason, q.Method, q.Path, q.Accept)
				}
			}
		})
	}
}

// TestCensusEnds is about errors that a census does not wait out: its caller must
// know that the statuses are no longer up to date.
func TestCensusEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   nf.Ref
		region stub
		spoil  func(p *Pool)
		want   nf.Kind
		says   string
	}{
		"not served":      {reason: "there is nothing to count", kind: nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo"}, region: served, want: nf.Unsupported},
		"refused":         {reason: "it may not be listed", kind: awaited, region: failingList(403), want: nf.Failed},
		"away":            {reason: "an unreachable region is reported at once", kind: awaited, region: failingList(503), want: nf.Unreachable},
		"removed":         {reason: "a region that is removed while the census waits", kind: awaited, region: served, spoil: func(p *Pool) { time.AfterFunc(time.Second, func() { p.Forget("east") }) }, want: nf.Unreachable, says: "replaced"},
		"removed at once": {reason: "a region that is removed before the watch begins", kind: awaited, region: served, spoil: func(p *Pool) { p.Forget("east") }, want: nf.Unreachable, says: "replaced"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, c, _ := alone(t, tc.region)
				var last error
				for m, err := range c.Census(t.Context(), tc.kind) {
					if m.Synced && tc.spoil != nil {
						tc.spoil(p)
					}
					last = err
				}
				wantKind(t, last, tc.want)
				if tc.says != "" && nf.ReasonOf(last) != tc.says {
					t.Errorf("%s: the reason is %q, want %q", tc.reason, nf.ReasonOf(last), tc.says)
				}
			})
		})
	}
}

func failingList(code int) stub {
	return func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/configmaps") {
			return answer(code, "")
		}
		return served(req)
	}
}

// TestCensusHoldsLittle holds a region with many objects to what is kept of each.
func TestCensusHoldsLittle(t *testing.T) {
	c, ns := sandbox(t)
	owner := "vnf-little-" + ns
	large := objects(t, owner, ns, `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {a: "`+strings.Repeat("x", 100<<10)+`"}}, spec: {ports: [{port: 80}]}}`)
	mustApply(t, c, owner, large...)
	census(t, c, owner, nf.RefOf(large[0]), []func(map[string]nf.Status) bool{func(seen map[string]nf.Status) bool {
		if kept := c.transport.usage.kept.Load(); seen["synced"] != "" && (kept == 0 || kept > 100*leanWeight) {
			t.Errorf("%d bytes are counted, want some %d for each object", kept, leanWeight)
		}
		return seen["synced"] != ""
	}})
	if kept := c.transport.usage.kept.Load(); kept != 0 {
		t.Errorf("%d bytes are still counted when it is over", kept)
	}
}

// TestCensusLeavesRoom is about a region with more objects than may be counted:
// the census ends, and what operations wait for still finds room.
func TestCensusLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var items []string
		for i := range 200 {
			items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"ns","name":"c%d","labels":{"k8splugin.io/rb-instance-id":"vnf-1"}}}`, i))
		}
		p, _ := stubbed(map[string]stub{"east": func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/configmaps") && req.URL.Query().Get("watch") == "" {
				return answer(200, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`+strings.Join(items, ",")+`]}`)
			}
			return served(req)
		}})
		p.cfg.limits.kept = 2 * 100 * leanWeight
		c := opening(t, p, "east")
		var last error
		for _, err := range c.Census(t.Context(), awaited) {
			last = err
		}
		wantKind(t, last, nf.Unreachable)
		if nf.ReasonOf(last) != "oversized" {
			t.Errorf("there are too many: %v", last)
		}
		if kept, skimmed := c.transport.usage.kept.Load(), c.transport.usage.keptLean.Load(); kept != 0 || skimmed != 0 {
			t.Errorf("%d and %d bytes are counted when it is over", kept, skimmed)
		}
	})
}

func TestTallyOfOwners(t *testing.T) {
	var told []Mark
	tell := func(m Mark, _ error) bool { told = append(told, m); return true }
	k := kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespaced: true}
	y := &ownerSink{scope: k.in(""), bare: true, owners: map[string]string{}, yield: tell}
	for _, owner := range []string{"a", "a", "b"} {
		y.put(objects(t, owner, "ns", `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`)[0])
	}
	y.drop("ConfigMap/ns/x")
	y.drop("ConfigMap/ns/never")
	for i := range told { // see TestStampOf
		told[i].Stamp = 0
	}
	diff(t, "an object that has got another owner is gone for the former", []Mark{
		{Owner: "a", Key: "ConfigMap/ns/x", Status: nf.Current}, {Owner: "a", Key: "ConfigMap/ns/x", Status: nf.Current},
		{Owner: "a", Key: "ConfigMap/ns/x", Status: nf.Absent}, {Owner: "b", Key: "ConfigMap/ns/x", Status: nf.Current},
		{Owner: "b", Key: "ConfigMap/ns/x", Status: nf.Absent},
	}, told)
}

// TestStampOf checks what is a change of an object for those that look for drift.
func TestStampOf(t *testing.T) {
	const was = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, uid: u, generation: 1, resourceVersion: "1"}, status: {ready: 1}}`
	cases := map[string]struct {
		reason string
		is     string
		same   bool
	}{
		"Same":    {"nothing has changed", was, true},
		"Status":  {"a controller has reported something", strings.NewReplacer(`"1"`, `"2"`, "ready: 1", "ready: 2").Replace(was), true},
		"Content": {"a client has changed a field", strings.NewReplacer(`"1"`, `"2"`, "generation: 1", "generation: 2").Replace(was), false},
		"Another": {"it was created again", strings.ReplaceAll(was, "uid: u", "uid: v"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := objects(t, "vnf-1", "ns", was)[0], objects(t, "vnf-1", "ns", tc.is)[0]
			if same := stampOf(before) == stampOf(after); same != tc.same {
				t.Errorf("%s: the stamps are equal: %t", tc.reason, same)
			}
		})
	}
}
