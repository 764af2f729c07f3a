package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// requestsOf returns the requests of a call about objects, in any order. It leaves out API
// discovery and schemas, which many calls share.
func requestsOf(r *clustertest.Recorder, namespace string, call func()) map[string]int {
	r.Reset()
	call()
	out := map[string]int{}
	for _, req := range r.Requests() {
		path := strings.ReplaceAll(req.Path, namespace, "NS")
		if path == "/api" || path == "/apis" || strings.HasPrefix(path, "/openapi") {
			continue
		}
		verb := req.Method
		switch {
		case req.Query.Get("watch") != "":
			verb = "WATCH"
		case req.Query.Get("dryRun") != "":
			verb = "DRY-RUN"
		}
		out[verb+" "+path[strings.Index(path[1:], "/")+2:]]++
	}
	return out
}

// TestPreflightRequests counts what is read before objects are applied.
func TestPreflightRequests(t *testing.T) {
	c, r, _ := clocked(t)
	const vnf = "vnf-1"
	four := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: c}}
---
` + web("")
	reads := map[string]int{
		"GET v1/namespaces/NS": 1, "GET v1/namespaces/NS/configmaps/a": 1, "GET v1/namespaces/NS/secrets/b": 1,
		"GET v1/namespaces/NS/serviceaccounts/c": 1, "GET apps/v1/namespaces/NS/deployments/web": 1,
	}
	foreign := clustertest.Namespace(t)
	foreignApply(t, c, "kubectl", clustertest.Documents(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+foreign+`}}`)[0])
	cases := map[string]struct {
		reason    string
		namespace string
		names     []string
		dryRuns   map[string]int
		ensure    map[string]int
		want      nf.Namespace
	}{
		"new": {"it is created at once", clustertest.Namespace(t), nil, map[string]int{}, map[string]int{"POST v1/namespaces": 1}, nf.Namespace{Created: true, Project: "p"}},
		"of another": {"it has just been seen", foreign, nil, map[string]int{"DRY-RUN v1/namespaces/NS/configmaps/a": 1, "DRY-RUN v1/namespaces/NS/secrets/b": 1,
			"DRY-RUN v1/namespaces/NS/serviceaccounts/c": 1, "DRY-RUN apps/v1/namespaces/NS/deployments/web": 1}, map[string]int{}, nf.Namespace{}},
		"of the service": {"another replica may have removed it", newNamespace(t), nil, nil, map[string]int{"GET v1/namespaces/NS": 1}, nf.Namespace{Created: true, Project: nf.DefaultProject}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			us := objects(t, vnf, "", four)
			got := requestsOf(r, tc.namespace, func() {
				if _, err := c.Preflight(t.Context(), instance(vnf), inside(tc.namespace), us); err != nil {
					t.Fatal(err)
				}
			})
			want := reads
			if name == "new" {
				want = map[string]int{"GET v1/namespaces/NS": 1}
			}
			diff(t, "the objects and their namespace are read once, and nothing in a namespace that is missing", want, got)
			if tc.dryRuns != nil {
				got := requestsOf(r, tc.namespace, func() {
					if _, err := c.DryRun(t.Context(), instance(vnf), us, nil); err != nil {
						t.Fatal(err)
					}
				})
				diff(t, "the namespace is not read again", tc.dryRuns, got)
			}
			got = requestsOf(r, tc.namespace, func() {
				is, err := c.EnsureNamespace(t.Context(), tc.namespace, "p")
				if err != nil || is != tc.want {
					t.Errorf("%s: namespace is %+v, %v", tc.reason, is, err)
				}
			})
			diff(t, tc.reason, tc.ensure, got)
		})
	}
}

// TestPreflightOfManyObjects has objects of one kind, which are read one by one
// only if they are few.
func TestPreflightOfManyObjects(t *testing.T) {
	c, r, ns := recorded(t)
	of := func(n int) map[string]int {
		var us []*unstructured.Unstructured
		for i := range n {
			us = append(us, configMap(t, "vnf-1", ns, fmt.Sprint("a", i), "1"))
		}
		return requestsOf(r, ns, func() {
			if _, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), us); err != nil {
				t.Fatal(err)
			}
		})
	}
	want := map[string]int{"GET v1/namespaces/NS": 1}
	for i := range mostGets {
		want[fmt.Sprint("GET v1/namespaces/NS/configmaps/a", i)] = 1
	}
	diff(t, "few objects are read one by one", want, of(mostGets))
	diff(t, "many objects are listed", map[string]int{"GET v1/namespaces/NS/configmaps": 1}, of(mostGets+1))
	mustApply(t, c, "vnf-2", configMap(t, "vnf-2", ns, "a16", "1"))
	us := []*unstructured.Unstructured{configMap(t, "vnf-1", ns, "a16", "1")}
	_, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), us)
	wantKind(t, err, nf.Conflict)
}

// TestNamespaceSeenMissing has other clients create a namespace after it was seen.
func TestNamespaceSeenMissing(t *testing.T) {
	c, r, after := clocked(t)
	ns := clustertest.Namespace(t)
	preflight := func() error {
		_, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), []*unstructured.Unstructured{configMap(t, "vnf-1", "", "a", "1")})
		return err
	}
	if err := preflight(); err != nil {
		t.Fatal(err)
	}
	other := openAt(t, clustertest.Kubeconfig(t))
	if _, err := other.EnsureNamespace(t.Context(), ns, "theirs"); err != nil {
		t.Fatal(err)
	}
	mustApply(t, other, "vnf-2", configMap(t, "vnf-2", ns, "a", "1"))
	got := requestsOf(r, ns, func() {
		is, err := c.EnsureNamespace(t.Context(), ns, "ours")
		if err != nil || is.Project != "theirs" {
			t.Errorf("the namespace is %+v, %v; want what it has become", is, err)
		}
	})
	diff(t, "the creation fails, and shows that it exists", map[string]int{"POST v1/namespaces": 1, "GET v1/namespaces/NS": 1}, got)
	wantKind(t, preflight(), nf.Conflict)
	if kept, err := c.RemoveNamespace(t.Context(), ns); err != nil || len(kept) != 1 {
		t.Fatalf("the namespace has an object: %v, %v", kept, err)
	}
	got = requestsOf(r, ns, func() { _ = preflight() })
	diff(t, "a namespace that was to be removed is read again", map[string]int{"GET v1/namespaces/NS": 1, "GET v1/namespaces/NS/configmaps/a": 1}, got)
	after.Add(int64(namespaceTime))
	got = requestsOf(r, ns, func() { _ = preflight() })
	diff(t, "one that has existed is not", map[string]int{"GET v1/namespaces/NS/configmaps/a": 1}, got)
}

// TestForeignNamespaceStaysSeen asks to remove a namespace that the service has not
// created.
func TestForeignNamespaceStaysSeen(t *testing.T) {
	c, r, _ := clocked(t)
	ns := clustertest.Namespace(t)
	foreignApply(t, c, "kubectl", clustertest.Documents(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+ns+`}}`)[0])
	if kept, err := c.RemoveNamespace(t.Context(), ns); err != nil || len(kept) > 0 {
		t.Fatal(kept, err)
	}
	got := requestsOf(r, ns, func() {
		if _, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), []*unstructured.Unstructured{configMap(t, "vnf-1", "", "a", "1")}); err != nil {
			t.Error(err)
		}
		if is, err := c.EnsureNamespace(t.Context(), ns, "p"); err != nil || is.Created {
			t.Errorf("the namespace is %+v, %v", is, err)
		}
	})
	diff(t, "it is not read again", map[string]int{"GET v1/namespaces/NS/configmaps/a": 1}, got)
}

// TestNamespaceSeen has other clients delete a namespace after it was seen.
func TestNamespaceSeen(t *testing.T) {
	c, r, after := clocked(t)
	ns := clustertest.Namespace(t)
	if _, err := c.EnsureNamespace(t.Context(), ns, "ours"); err != nil {
		t.Fatal(err)
	}
	other := openAt(t, clustertest.Kubeconfig(t))
	if kept, err := other.RemoveNamespace(t.Context(), ns); err != nil || len(kept) > 0 {
		t.Fatal(kept, err)
	}
	after.Add(int64(namespaceTime))
	us := []*unstructured.Unstructured{configMap(t, "vnf-1", "", "a", "1")}
	got := requestsOf(r, ns, func() {
		if existing, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), us); err != nil || existing > 0 {
			t.Errorf("%d objects exist, %v", existing, err)
		}
		if unchecked, err := c.DryRun(t.Context(), instance("vnf-1"), us, nil); err != nil || len(unchecked) != 1 {
			t.Errorf("the API server checked an object in a missing namespace: %v, %v", unchecked, err)
		}
	})
	diff(t, "it is taken to exist", map[string]int{"GET v1/namespaces/NS/configmaps/a": 1, "DRY-RUN v1/namespaces/NS/configmaps/a": 1}, got)
	got = requestsOf(r, ns, func() {
		if is, err := c.EnsureNamespace(t.Context(), ns, "theirs"); err != nil || is.Project != "theirs" {
			t.Errorf("the namespace is %+v, %v", is, err)
		}
	})
	diff(t, "it is created again", map[string]int{"GET v1/namespaces/NS": 1, "POST v1/namespaces": 1}, got)
}

// TestWatchRequests counts what is read until applied objects are ready.
func TestWatchRequests(t *testing.T) {
	c, r, ns := recorded(t)
	fixed := mustApply(t, c, "vnf-1", configMap(t, "vnf-1", ns, "a", "1"))
	ready, never := workloadOf(t, ns, "Deployment", "ready", scheduled, "replicas: 0,"), workloadOf(t, ns, "Deployment", "never", held, "")
	cases := map[string]struct {
		reason string
		made   []nf.Change
		pods   bool
	}{
		"ready": {"a workload that becomes ready is not explained before its time", mustApply(t, c, "vnf-1", ready), false},
		"never": {"the pods tell why", mustApply(t, c, "vnf-1", never), true},
	}
	await(t.Context(), t, c, "vnf-1", cases["ready"].made, nf.Current)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			var pods atomic.Int64 // how long after the start they are read first
			defer r.Fail(func(req clustertest.Request) bool {
				if strings.HasSuffix(req.Path, "/pods") {
					pods.CompareAndSwap(0, int64(time.Since(began)))
					cancel()
				}
				return false
			}, clustertest.Drop)()
			got := requestsOf(r, ns, func() {
				for h, err := range c.Watch(ctx, instance("vnf-1"), append(tc.made, fixed...)) {
					if err != nil {
						t.Fatal(err)
					}
					if h.Kind == "Deployment" && h.Status == nf.Current {
						break
					}
				}
			})
			early := pods.Load() > 0 && time.Duration(pods.Load()) < explainAfter
			if early || tc.pods && pods.Load() == 0 || got["GET v1/namespaces/NS/configmaps"]+got["WATCH v1/namespaces/NS/configmaps"] > 0 {
				t.Errorf("%s: requests are %v", tc.reason, got)
			}
		})
	}
	got := requestsOf(r, ns, func() {
		for h, err := range c.Watch(t.Context(), instance("vnf-1"), fixed) {
			if err != nil || h.Status != nf.Current || h.UID != fixed[0].UID {
				t.Errorf("an applied ConfigMap is %+v, %v", h, err)
			}
			break
		}
	})
	diff(t, "a ConfigMap is current when it is applied", map[string]int{}, got)
	fixed[0].Action = nf.Deleted
	deleteForeign(t, c, configMap(t, "vnf-1", ns, "a", "1"))
	await(t.Context(), t, c, "vnf-1", fixed, nf.Absent)
}

// TestRequestsOfInstances counts the requests for instances of one package with
// four kinds in four stages, as the engine makes them.
func TestRequestsOfInstances(t *testing.T) {
	c, r, _ := clocked(t)
	spaces := []string{clustertest.Namespace(t), clustertest.Namespace(t), newNamespace(t), newNamespace(t)}
	create := func(id, name, ns string) map[string]int {
		us := objects(t, id, "", strings.ReplaceAll(`{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: NAME}}
---
{apiVersion: v1, kind: Service, metadata: {name: NAME}, spec: {ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME}, spec: {replicas: 0, selector: {matchLabels: {a: NAME}},
  template: {metadata: {labels: {a: NAME}}, spec: {containers: [{name: c, image: i}]}}}}`, "NAME", name))
		return requestsOf(r, ns, func() {
			if existing, err := c.Preflight(t.Context(), instance(id), inside(ns), us); err != nil || existing > 0 {
				t.Fatal(existing, err)
			}
			if _, err := c.DryRun(t.Context(), instance(id), us, []string{id, name, ns}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.EnsureNamespace(t.Context(), ns, nf.DefaultProject); err != nil {
				t.Fatal(err)
			}
			for _, u := range us { // each is a stage
				made, err := c.ApplyNew(t.Context(), instance(id), []*unstructured.Unstructured{u})
				if err != nil {
					t.Fatal(err)
				}
				await(t.Context(), t, c, id, made, nf.Current)
			}
		})
	}
	cases := []struct {
		reason          string
		id, name, space string
		most, dryRuns   int
	}{
		{"a new namespace", "vnf-1", "alpha", spaces[0], 7, 0},
		{"another new namespace", "vnf-2", "gamma", spaces[1], 7, 0},
		{"an existing namespace, and objects that the API server has not seen", "vnf-3", "delta", spaces[2], 15, 4},
		{"an existing namespace, and objects that the API server has accepted", "vnf-4", "theta", spaces[3], 11, 0},
		{"a namespace that this process has read before", "vnf-5", "kappa", spaces[3], 10, 0},
		{"a namespace that this process has created", "vnf-6", "sigma", spaces[0], 10, 0},
	}
	for _, tc := range cases {
		got, sum, dryRuns := create(tc.id, tc.name, tc.space), 0, 0
		for request, n := range got {
			if explains := strings.HasSuffix(request, "/pods") || strings.HasSuffix(request, "/events") || strings.HasSuffix(request, "/replicasets"); explains {
				continue // only if the machine is so slow that the Deployment is not ready in time
			}
			sum += n
			if strings.HasPrefix(request, "DRY-RUN") {
				dryRuns += n
			}
		}
		if sum > tc.most || dryRuns != tc.dryRuns {
			t.Errorf("%s: %d requests, at most %d wanted; %d dry runs, %d wanted: %v", tc.reason, sum, tc.most, dryRuns, tc.dryRuns, got)
		}
	}
}

// TestIndexIsReadBeside has the API server answer the other reads of a preflight only
// once the index of its schemas is requested.
func TestIndexIsReadBeside(t *testing.T) {
	c, r, ns := recorded(t)
	us := []*unstructured.Unstructured{configMap(t, "vnf-1", ns, "a", "1")}
	cases := []struct{ reason, path string }{
		{"the namespace is read for the first time", "/api/v1/namespaces/" + ns},
		{"the namespace is known", "/api/v1/namespaces/" + ns + "/configmaps/a"},
	}
	for _, tc := range cases {
		requested := make(chan struct{})
		heal := []func(){
			r.Fail(clustertest.Times(1, func(req clustertest.Request) bool { return req.Path == "/openapi/v3" }), func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				close(requested)
				next.ServeHTTP(w, req)
			}),
			r.Fail(func(req clustertest.Request) bool { return req.Path == tc.path }, func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				select {
				case <-requested:
					next.ServeHTTP(w, req)
				case <-req.Context().Done():
				}
			}),
		}
		if _, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), us); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		for _, heal := range heal {
			heal()
		}
		c.client.answers.expireIndex()
	}
}

// TestIndexIsReadOnce has objects that the API server would reject. The index of its
// schemas may be stale only if it was read before the preflight.
func TestIndexIsReadOnce(t *testing.T) {
	c, r, ns := recorded(t)
	us := objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {key: value}}`)
	calls := map[string]func() error{
		"Preflight": func() error {
			_, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), us)
			return err
		},
		"PreflightAdopt": func() error {
			_, err := c.PreflightAdopt(t.Context(), instance("vnf-1"), inside(ns), nf.AdoptionSelector{Unowned: true}, us)
			return err
		},
	}
	for name, call := range calls {
		c.client.answers.expireIndex()
		for _, reason := range []string{"the index was unknown", "the index was known"} {
			r.Reset()
			wantKind(t, call(), nf.Invalid)
			read := slices.DeleteFunc(r.Requests(), func(req clustertest.Request) bool { return req.Path != "/openapi/v3" })
			if len(read) != 1 {
				t.Errorf("%s: %s, and it was read %d times", name, reason, len(read))
			}
		}
	}
}
