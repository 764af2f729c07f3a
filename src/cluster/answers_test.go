package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// clocked is recorded with a clock that starts now and goes on by after.
func clocked(t *testing.T) (c *Cluster, r *clustertest.Recorder, after *atomic.Int64) {
	t.Helper()
	r, after = clustertest.NewRecorder(t), &atomic.Int64{}
	start := time.Now()
	p := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: func() time.Time { return start.Add(time.Duration(after.Load())) }})
	c, err := p.Open("test", accessTo(t, r.Kubeconfig())) // as openAt, so that another cluster is another replica
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c, r, after
}

// TestDryRunRemembers counts the objects that are sent when instances of one
// package are created one after another.
func TestDryRunRemembers(t *testing.T) {
	c, r, after := clocked(t)
	spaces := []string{newNamespace(t), newNamespace(t)}
	cron := func(name, schedule string) string {
		return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: ` + name + `-tick}, spec: {schedule: "` + schedule + `",
			jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`
	}
	dryRun := func(id, name, ns, text string, all bool) (sent []string, err error) {
		us := objects(t, id, ns, text)
		if _, err := c.Preflight(t.Context(), instance(id), inside(ns), us); err != nil {
			t.Fatal(err)
		}
		names := []string{id, name, ns}
		if all {
			names = nil
		}
		r.Reset()
		unchecked, err := c.DryRun(t.Context(), instance(id), us, names)
		if len(unchecked) > 0 {
			t.Errorf("%v were not checked", unchecked)
		}
		for _, req := range r.Requests() {
			if req.Method == http.MethodPatch {
				sent = append(sent, req.Path[strings.LastIndex(req.Path, "/")+1:])
			}
		}
		return sent, err
	}
	fine := cron("alpha", "* * * * *")
	want := func(reason string, want []string, sent []string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		diff(t, reason, want, sent)
	}
	sent, err := dryRun("vnf-1", "alpha", spaces[0], fine, false)
	want("it is new", []string{"alpha-tick"}, sent, err)
	sent, err = dryRun("vnf-2", "gamma", spaces[1], cron("gamma", "* * * * *"), false)
	want("only the names differ", nil, sent, err)
	sent, err = dryRun("vnf-2", "gamma", spaces[1], cron("gamma", "* * * * *"), true)
	want("the request asks for it", []string{"gamma-tick"}, sent, err)
	for range 2 {
		sent, err = dryRun("vnf-2", "gamma", spaces[1], cron("gamma", "never"), false)
		wantKind(t, err, nf.Invalid)
		diff(t, "a rejection is not remembered", []string{"gamma-tick"}, sent)
	}
	after.Add(int64(acceptedTime))
	sent, err = dryRun("vnf-2", "gamma", spaces[1], cron("gamma", "* * * * *"), false)
	want("the API server may have changed", []string{"gamma-tick"}, sent, err)
	mustApply(t, c, "crd", objects(t, "crd", "", definition(spaces[0]+".test", "Namespaced"))[0])
	for sent = nil; sent == nil && err == nil; { // until the API server publishes the new schema
		after.Add(int64(indexTime))
		sent, err = dryRun("vnf-2", "gamma", spaces[1], cron("gamma", "* * * * *"), false)
		<-time.After(10 * time.Millisecond)
	}
	want("the API server has other kinds", []string{"gamma-tick"}, sent, err)
}

// TestDryRunsRememberedAreBounded has more objects than are remembered.
func TestDryRunsRememberedAreBounded(t *testing.T) {
	a := newAnswers(time.Now)
	for i := range mostAccepted + 1 {
		a.accept(newFingerprinter(fmt.Sprint(i), nf.Subject{}, nil).of(&unstructured.Unstructured{}))
	}
	oldest := newFingerprinter("0", nf.Subject{}, nil).of(&unstructured.Unstructured{})
	newest := newFingerprinter(fmt.Sprint(mostAccepted), nf.Subject{}, nil).of(&unstructured.Unstructured{})
	if a.accepts(oldest) || !a.accepts(newest) {
		t.Error("the oldest is forgotten, and only that one")
	}
}

// TestIndexIsReadAgain has a definition that changes after the index was read.
func TestIndexIsReadAgain(t *testing.T) {
	c, r, _ := clocked(t)
	ns := newNamespace(t)
	schema := func(type_ string) string {
		return strings.Replace(definition(ns+".test", "Namespaced"), "x-kubernetes-preserve-unknown-fields: true",
			"properties: {spec: {type: "+type_+"}}", 1)
	}
	made := objects(t, "crd", "", schema("integer"))[0]
	await(t.Context(), t, c, "crd", mustApply(t, c, "crd", made), nf.Current)
	check := func(spec string) error {
		_, err := c.Preflight(t.Context(), instance("vnf-1"), inside(ns), objects(t, "vnf-1", "", schema("integer")+"spec: "+spec)[1:])
		return err
	}
	for err := check("text"); nf.KindOf(err) != nf.Invalid; err = check("text") {
		<-time.After(10 * time.Millisecond) // until the API server publishes the schema
	}
	if err := check("5"); err != nil {
		t.Fatal(err)
	}
	r.Reset()
	if err := check("5"); err != nil {
		t.Fatal(err)
	}
	for _, req := range r.Requests() {
		if req.Path == "/openapi/v3" {
			t.Error("the index is read although it was read just now")
		}
	}
	mustApply(t, c, "crd", objects(t, "crd", "", schema("string"))[0])
	for err := check("text"); err != nil; err = check("text") {
		wantKind(t, err, nf.Invalid)
		<-time.After(10 * time.Millisecond) // as above; a stale index would reject it for a minute
	}
}
