package bundle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

func record(t *testing.T, l *bundle.InstanceRecords, k bundle.ConfigKey, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		v := bundle.Version{ConfigKey: k, Number: n, Template: "t", Package: fmt.Sprint("rb-", n), Values: json.RawMessage(`{"n":1}`)}
		if err := l.Record(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

func numbers(t *testing.T, l *bundle.InstanceRecords, k bundle.ConfigKey) []int {
	t.Helper()
	all, err := l.Versions(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, v := range all {
		out = append(out, v.Number)
	}
	return out
}

func TestVersions(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	k := bundle.ConfigKey{Instance: "vnf-1", Generation: "g1", Config: "a/b ü " + strings.Repeat("long", 200)}
	near := bundle.ConfigKey{Instance: "vnf-1", Generation: "g1", Config: "a"}
	record(t, l, k, 1, 2, 2, 10)
	record(t, l, near, 1)
	if diff := cmp.Diff([]int{1, 2, 10}, numbers(t, l, k)); diff != "" {
		t.Errorf("a configuration of any name has its versions, in order, each once (-want +got):\n%s", diff)
	}
	v, err := l.Version(t.Context(), k, 10)
	if err != nil || v.Config != k.Config || string(v.Values) != `{"n":1}` {
		t.Errorf("the version is %+v, %v", v, err)
	}
	if _, err := l.Version(t.Context(), k, 3); nf.KindOf(err) != nf.NotFound {
		t.Errorf("a version that is not there gives %v", err)
	}
	if err := l.DeleteConfig(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if got, other := numbers(t, l, k), numbers(t, l, near); len(got) != 0 || len(other) != 1 {
		t.Errorf("%v are left of what was forgotten, and %v of its neighbour", got, other)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	k := bundle.ConfigKey{Instance: "vnf-1", Generation: "g1", Config: "a"}
	record(t, l, k, 1, 2)
	if err := l.SetTag(t.Context(), bundle.Tag{ConfigKey: k, Name: "golden", Number: 2}); err != nil {
		t.Fatal(err)
	}
	for n := 3; n <= 103; n++ {
		record(t, l, k, n)
	}
	got := numbers(t, l, k)
	if len(got) != 101 || got[0] != 2 || got[1] != 4 {
		t.Errorf("%d versions are kept, from %v on: want 100 and the one that has a tag", len(got), got[:2])
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	k := bundle.ConfigKey{Instance: "vnf-1", Generation: "g1", Config: "a"}
	for _, n := range []int{1, 4} {
		if err := l.SetTag(t.Context(), bundle.Tag{ConfigKey: k, Name: "golden", Number: n}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.Tag(t.Context(), k, "golden"); err != nil || got.Number != 4 {
		t.Errorf("a tag that was given twice is %+v, %v: want the second", got, err)
	}
	if _, err := l.Tag(t.Context(), k, "silver"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("a tag that was not given gives %v", err)
	}
	if err := l.SetTag(t.Context(), bundle.Tag{ConfigKey: k, Number: 1}); nf.KindOf(err) != nf.Invalid {
		t.Errorf("a tag without a name gives %v", err)
	}
}

func TestForgetFormer(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	old, now := bundle.ConfigKey{Instance: "vnf-1", Generation: "g1", Config: "a"}, bundle.ConfigKey{Instance: "vnf-1", Generation: "g2", Config: "a"}
	near := bundle.ConfigKey{Instance: "vnf-10", Generation: "g1", Config: "a"}
	for _, k := range []bundle.ConfigKey{old, now, near} {
		record(t, l, k, 1)
		if err := l.SetTag(t.Context(), bundle.Tag{ConfigKey: k, Name: "x", Number: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.DeleteFormerConfigs(t.Context(), "vnf-1", "g2"); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[bundle.ConfigKey]int{old: 0, now: 1, near: 1} {
		tags, err := l.Tags(t.Context(), k)
		if got := numbers(t, l, k); len(got) != want || len(tags) != want || err != nil {
			t.Errorf("%+v has versions %v and tags %v, %v: want %d", k, got, tags, err, want)
		}
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	if got, err := l.Alias(t.Context(), "x1"); err != nil || !cmp.Equal(got, bundle.Alias{ID: "x1", Engine: "x1"}) {
		t.Errorf("an id that was never moved means %+v, %v", got, err)
	}
	for _, next := range []string{"x2", "x3"} {
		if _, err := l.Realias(t.Context(), "x1", func(a *bundle.Alias) error {
			a.Leaving, a.Engine = append(a.Leaving, a.Engine), next
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Alias(t.Context(), "x1")
	if diff := cmp.Diff(bundle.Alias{ID: "x1", Engine: "x3", Leaving: []string{"x1", "x2"}}, got); diff != "" || err != nil {
		t.Errorf("an id that was moved twice (-want +got):\n%s%v", diff, err)
	}
	for engine, behind := range map[string]bool{"x1": true, "x2": true, "x3": false, "x4": false} {
		if got.Behind(engine) != behind {
			t.Errorf("%s is behind: %t", engine, !behind)
		}
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range 103 {
		r := bundle.Run{ID: fmt.Sprintf("hc%d", 200-i), Instance: "vnf-1", Operation: "op", Created: begun.Add(time.Duration(i) * time.Second)}
		if err := l.AddRun(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.Runs(t.Context(), "vnf-1")
	if err != nil || len(all) != 100 || all[0].ID != "hc197" || all[99].ID != "hc98" {
		t.Errorf("%d runs are kept, from %+v to %+v, %v: want the last 100, the oldest first", len(all), all[0], all[len(all)-1], err)
	}
	if _, err := l.Run(t.Context(), "vnf-2", "hc98"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("another's run gives %v", err)
	}
	if err := l.DeleteRun(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteRun(t.Context(), all[0]); nf.KindOf(err) != nf.NotFound {
		t.Errorf("ending a run twice gives %v", err)
	}
}

func TestLedgerSweep(t *testing.T) {
	t.Parallel()
	l := bundle.NewInstanceRecords(memory.New())
	// Of moved, only the instance that it means now is there; of gone, none is.
	for id, engine := range map[string]string{"moved": "moved-2", "gone": "gone-2"} {
		if _, err := l.Realias(t.Context(), id, func(a *bundle.Alias) error {
			if a.Engine, a.Leaving = engine, []string{id}; id == "moved" {
				a.Leaving = append(a.Leaving, "here") // it has not left yet
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"moved", "gone", "here", "away"} {
		record(t, l, bundle.ConfigKey{Instance: id, Generation: "g", Config: "a"}, 1)
		if err := l.AddRun(t.Context(), bundle.Run{ID: "hc", Instance: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sweep(t.Context(), func(_ context.Context, id string) (bool, error) { return id == "moved-2" || id == "here", nil }); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"moved": 1, "gone": 0, "here": 1, "away": 0} {
		runs, err := l.Runs(t.Context(), id)
		if got := numbers(t, l, bundle.ConfigKey{Instance: id, Generation: "g", Config: "a"}); len(got) != want || len(runs) != want || err != nil {
			t.Errorf("%s has %v versions and %v runs, %v: want %d", id, got, runs, err, want)
		}
	}
	for id, want := range map[string]bundle.Alias{"moved": {ID: "moved", Engine: "moved-2", Leaving: []string{"here"}}, "gone": {ID: "gone", Engine: "gone"}} {
		left, err := l.Alias(t.Context(), id)
		if diff := cmp.Diff(want, left); diff != "" || err != nil {
			t.Errorf("the alias of %s (-want +got):\n%s%v", id, diff, err)
		}
	}
	if used, err := l.Packages(t.Context()); err != nil || !cmp.Equal(used, map[string]bool{"rb-1": true}) {
		t.Errorf("the packages that are needed are %v, %v", used, err)
	}
}
