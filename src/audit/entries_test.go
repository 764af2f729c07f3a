package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/audit"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestEntries selects entries, without an index and with one.
func TestEntries(t *testing.T) {
	t.Parallel()
	t.Run("Store", func(t *testing.T) { testEntries(t, memory.New()) })
	t.Run("Index", func(t *testing.T) { testEntries(t, indexed(t, memory.New())) })
}

// indexed returns a store with an index of the entries, which is filled.
func indexed(t *testing.T, kv store.KV) store.KV {
	t.Helper()
	s, err := index.New(index.Config{KV: kv, Tables: []index.Table{index.Of[nf.AuditEntry]("audit/")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for tries := 0; !s.Status()["audit"].Filled; tries++ {
		delay.For(t.Context(), delay.Doubled(time.Millisecond, time.Second, tries), nil)
	}
	return s
}

func testEntries(t *testing.T, kv store.KV) {
	t.Helper()
	log, err := audit.New(audit.Config{KV: kv, Clock: func() time.Time { return time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	at := func(days, hours int) time.Time {
		return time.Date(2026, 11, 4, 11, 30, 0, 0, time.UTC).AddDate(0, 0, -days).Add(-time.Duration(hours) * time.Hour)
	}
	entries := []nf.AuditEntry{
		{ID: "old", Time: at(40, 0), Kind: "user", Identity: "ann", Project: "a", Region: "east"},
		{ID: "week", Time: at(7, 3), Kind: "token", Identity: "so", Project: "b", Region: "east"},
		{ID: "day", Time: at(1, 0), Kind: "user", Identity: "so", Project: "a", Region: "west"},
		{ID: "hour", Time: at(0, 1), Kind: "user", Identity: "ann", Project: "b", Region: "west"},
		{ID: "now", Time: at(0, 0), Kind: "user", Identity: "ann"},
	}
	for _, e := range entries {
		if err := audit.Put(t.Context(), log, e); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		filter nf.AuditFilter
		want   []string
	}{
		"All":      {"the newest first", nf.AuditFilter{}, []string{"now", "hour", "day", "week", "old"}},
		"From":     {"a time is the first that is selected", nf.AuditFilter{From: at(1, 0)}, []string{"now", "hour", "day"}},
		"To":       {"and the first that is not", nf.AuditFilter{To: at(1, 0)}, []string{"week", "old"}},
		"Between":  {"in whatever zone", nf.AuditFilter{From: at(8, 0).In(time.FixedZone("x", 3600)), To: at(0, 0)}, []string{"hour", "day", "week"}},
		"Nothing":  {"a time before itself selects nothing", nf.AuditFilter{From: at(0, 0), To: at(1, 0)}, nil},
		"Identity": {"a name", nf.AuditFilter{Identity: "so"}, []string{"day", "week"}},
		"Kind":     {"of a kind", nf.AuditFilter{Identity: "so", Kind: "token"}, []string{"week"}},
		"Project":  {"a project", nf.AuditFilter{Project: "a"}, []string{"day", "old"}},
		"Caller":   {"the scopes of a caller that sees only some", nf.AuditFilter{From: at(30, 0), Kind: "user", Region: "west"}, []string{"hour", "day"}},
		"Absent":   {"no entry has the identity", nf.AuditFilter{Identity: "eve"}, nil},
		"Both":     {"a filter after a marker, in a time", nf.AuditFilter{Identity: "ann", Before: entries[4].Place(), From: at(40, 0), To: at(0, 0)}, []string{"hour", "old"}},
		"Since":    {"a filter in a time", nf.AuditFilter{Identity: "ann", From: at(39, 0)}, []string{"now", "hour"}},
		"Region":   {"in a region", nf.AuditFilter{Project: "a", Region: "east"}, []string{"old"}},
		"Marker":   {"a list goes on where it was", nf.AuditFilter{Before: entries[3].Place()}, []string{"day", "week", "old"}},
		"MarkerTo": {"within its bounds", nf.AuditFilter{Before: entries[3].Place(), From: at(2, 0)}, []string{"day"}},
	}
	for name, c := range cases {
		if got := listed(t, log, c.filter); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %s: %v, want %v", name, c.reason, got, c.want)
		}
	}
	for _, err := range log.Entries(t.Context(), nf.AuditFilter{Before: "yesterday"}) {
		if nf.KindOf(err) != nf.Invalid {
			t.Errorf("a marker that is none: %v", err)
		}
	}
	for e, err := range log.Entries(t.Context(), nf.AuditFilter{}) {
		if err != nil || e.ID != "now" {
			t.Errorf("the first is %s, %v", e.ID, err)
		}
		break // leaving the loop ends it
	}
}

// TestCostOfFilteredEntries reads a page of the entries of one identity, in which the
// caller sees only some scopes. The index must not read the other entries.
func TestCostOfFilteredEntries(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	for _, number := range []int{300, 3000} {
		reads := 0
		kv := indexed(t, storetest.Failing{KV: memory.New(), Fail: func(method, _ string) error {
			if method == "Get" {
				reads++
			}
			return nil
		}})
		log, err := audit.New(audit.Config{KV: kv, Clock: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		for i := range number {
			e := nf.AuditEntry{ID: fmt.Sprintf("%05d", i), Time: now.Add(-time.Duration(i) * time.Minute), Identity: []string{"ann", "so"}[i%2], Project: []string{"a", "b", "c"}[i%3]}
			if err := audit.Put(t.Context(), log, e); err != nil {
				t.Fatal(err)
			}
		}
		for name, tc := range map[string]struct {
			filter nf.AuditFilter
			want   int
		}{
			"Identity": {nf.AuditFilter{Identity: "so"}, 20},
			"Scope":    {nf.AuditFilter{In: func(s nf.Scope) bool { return s.Project == "b" }}, 20},
			"Absent":   {nf.AuditFilter{Identity: "eve"}, 0},
		} {
			reads = 0
			items := 0
			for _, err := range log.Entries(t.Context(), tc.filter) {
				if err != nil {
					t.Fatal(err)
				}
				if items++; items == 20 {
					break
				}
			}
			if items != tc.want || reads != tc.want {
				t.Errorf("%s in %d entries: %d items, %d reads, want %d of both", name, number, items, reads, tc.want)
			}
		}
	}
}

// TestCostOfEntries reads pages of a log with an entry every two seconds, after bursts of
// 1,000 entries in a second. The reads must depend on neither the length of the log nor
// the length of the bursts.
func TestCostOfEntries(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	var costs [][]int
	for _, number := range []int{300, 3000} {
		kv := &storetest.Counting{KV: memory.New()}
		log, err := audit.New(audit.Config{KV: kv, Clock: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		var all []string // newest first
		at := now
		for i := range number + 2000 {
			switch {
			case i < 100, i >= 2100:
				at = at.Add(-2 * time.Second)
			default:
				at = at.Add(-time.Millisecond)
			}
			e := nf.AuditEntry{ID: fmt.Sprintf("%05d", i), Time: at, Kind: "user"}
			if err := audit.Put(t.Context(), log, e); err != nil {
				t.Fatal(err)
			}
			all = append(all, e.ID)
		}
		var got []string
		var cost []int
		for marker := ""; len(got) < len(all); {
			kv.Entries = 0
			page := 0
			for e, err := range log.Entries(t.Context(), nf.AuditFilter{Before: marker}) {
				if err != nil {
					t.Fatal(err)
				}
				got, marker = append(got, e.ID), e.Place()
				if page++; page == 50 {
					break
				}
			}
			if cost = append(cost, kv.Entries); kv.Entries > 1500 || page == 0 {
				t.Fatalf("page %d has %d entries, and reads %d", len(cost), page, kv.Entries)
			}
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("the pages (-want +got):\n%s", diff)
		}
		costs = append(costs, cost[:44])
	}
	if diff := cmp.Diff(costs[0], costs[1]); diff != "" {
		t.Errorf("the entries that each page reads (-of 2300 +of 5000):\n%s", diff)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(t, "a", "b", "c")
	if n, err := f.Forget(t.Context(), f.now.Add(-30*time.Second)); err != nil || n != 2 {
		t.Errorf("%d are forgotten, %v", n, err)
	}
	if got := listed(t, f.Log, nf.AuditFilter{}); !cmp.Equal(got, []string{"c"}) {
		t.Errorf("left are %v", got)
	}
	if report, err := audit.Verify(strings.NewReader(read(t, f.name))); err != nil || report.Entries != 3 {
		t.Errorf("the file keeps them: %+v, %v", report, err)
	}
	f.fail = nf.E(nf.Unreachable, "list", "keys", nil)
	if _, err := f.Forget(t.Context(), f.now); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("the store is down: %v", err)
	}
	for _, err := range f.Entries(t.Context(), nf.AuditFilter{}) {
		if nf.KindOf(err) != nf.Unreachable {
			t.Errorf("the store is down: %v", err)
		}
	}
}
