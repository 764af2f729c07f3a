package aaisync_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// Places implements aaisync.Instances.
func (f *facts) Places(context.Context) ([]aai.Place, error) {
	return []aai.Place{{Owner: "k8s", Region: "r1"}}, nil
}

// Exists implements aaisync.Instances.
func (f *facts) Exists(_ context.Context, id string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.versions[id] != "", f.errors[id]
}

// adapted creates an object of SO's adapter of an instance.
func (w *world) adapted(id, instance string) {
	w.Helper()
	w.as("PUT", resourcePath+"/"+id, fmt.Sprintf(`{"name": "x", "group": "", "version": "v1", "kind": "Pod", "namespace": "", "selflink": "x",
		"data-owner": "CnfAdapter", "data-source": "K8sPlugin", "labels": ["app=x", "k8splugin.io/rb-instance-id=%s"]}`, instance))
}

// orphans returns the objects of the instances that a keeper reports.
func (w *world) orphans(k *aaisync.Keeper) map[string][]string {
	w.Helper()
	out := map[string][]string{}
	for l, err := range k.Orphans(w.Context()) {
		if err != nil {
			w.Fatal(err)
		}
		if l.State != nf.ListingOrphaned || l.Reason == "" || l.Since.IsZero() {
			w.Errorf("the listing is %+v", l)
		}
		out[l.Subject.ID] = l.Objects
	}
	return out
}

// TestOrphans looks for objects that SO's adapter has left.
func TestOrphans(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper(func(cfg *aaisync.Config) { cfg.Instances = w.facts })
		stop := w.run(k)
		defer stop()
		w.facts.set("bear", "1")
		w.adapted("1", "bear")
		w.adapted("2", "fox")
		w.adapted("3", "fox")
		w.adapted("4", "no id")
		w.adapted("5", "owl")
		pass(6 * time.Minute)
		if got := w.orphans(k); len(got) > 0 {
			t.Errorf("SO may be deleting them, so one search is not enough: %v", got)
		}
		w.delete(resourcePath + "/5")
		pass(5 * time.Minute)
		want := map[string][]string{"fox": {resourcePath + "/2", resourcePath + "/3"}}
		if diff := cmp.Diff(want, w.orphans(k)); diff != "" {
			t.Errorf("only objects of instances that do not exist are reported (-want +got):\n%s", diff)
		}
		pass(time.Minute)
		if got := k.Counts()[nf.ListingOrphaned]; got != 1 {
			t.Errorf("they are counted: %d", got)
		}

		w.facts.fail("fox", errUnreachable)
		w.facts.set("bear", "")
		pass(2 * time.Hour)
		if diff := cmp.Diff(want, w.orphans(k)); diff != "" {
			t.Errorf("a search that fails changes nothing (-want +got):\n%s", diff)
		}
		w.facts.fail("fox", nil)
		w.facts.set("fox", "1")
		pass(2 * time.Hour)
		if diff := cmp.Diff(map[string][]string{"bear": {resourcePath + "/1"}}, w.orphans(k)); diff != "" {
			t.Errorf("an instance that is gone is reported, and one that is back is not (-want +got):\n%s", diff)
		}
		if got := w.as("GET", resourcePath+"/1", "").Code; got != 200 {
			t.Errorf("nothing of the adapter may be deleted: %d", got)
		}
		w.delete(resourcePath + "/1")
		pass(2 * time.Hour)
		if n := w.rows("aai/orphans/"); n != 0 || k.Counts()[nf.ListingOrphaned] != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// TestOrphansDenied has A&AI deny the search.
func TestOrphansDenied(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		k := w.keeper(func(cfg *aaisync.Config) { cfg.Instances = w.facts })
		stop := w.run(k)
		defer stop()
		w.adapted("2", "fox")
		pass(12 * time.Minute)
		w.simulator.Script(simulator.Fault{Code: 3300, Times: -1})
		pass(2 * time.Hour)
		if got := w.orphans(k); len(got) != 1 {
			t.Errorf("what is known stays: %v", got)
		}
	})
}
