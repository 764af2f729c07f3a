package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/audit"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// fixture is a log with a file, whose clock advances by a minute with each entry.
type fixture struct {
	*audit.Log

	name   string
	kv     store.KV
	now    time.Time
	fail   error // of the store
	failed int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{name: filepath.Join(t.TempDir(), "audit.log"), now: time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)}
	f.kv = storetest.Failing{KV: memory.New(), Fail: func(string, string) error { return f.fail }}
	f.restart(t)
	return f
}

// restart opens the log again.
func (f *fixture) restart(t *testing.T) {
	t.Helper()
	if f.Log != nil {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	log, err := audit.New(audit.Config{
		KV: f.kv, File: f.name, Replica: "one", Clock: func() time.Time { f.now = f.now.Add(time.Minute); return f.now }, Failed: func() { f.failed++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Log = log
}

func (f *fixture) record(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := f.Record(t.Context(), nf.AuditEntry{ID: id, Phase: nf.AuditIntent, Identity: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func listed(t *testing.T, log *audit.Log, f nf.AuditFilter) []string {
	t.Helper()
	var out []string
	for e, err := range log.Entries(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.ID)
	}
	return out
}

func TestRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	entry := nf.AuditEntry{
		ID: "a", Phase: nf.AuditOutcome, Request: "r", Kind: "user", Identity: "ann", Remote: "192.0.2.1", Method: "DELETE", Route: "/v1/vnf_instances/{vnf_id}",
		Permission: nf.RemoveInstance, Project: "p", Region: "east", Subjects: []string{"vnf"}, Status: 202, Outcome: nf.AuditAccepted, Operation: "op", Digest: "sha256:0",
	}
	if err := f.Record(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	f.record(t, "b")
	want := entry
	want.Time, want.Replica = time.Date(2026, 11, 4, 12, 1, 0, 0, time.UTC), "one"
	for e, err := range f.Entries(t.Context(), nf.AuditFilter{To: want.Time.Add(time.Second)}) {
		if diff := cmp.Diff(want, e); diff != "" || err != nil {
			t.Errorf("the store has another entry (%v, -want +got)\n%s", err, diff)
		}
	}
	if info, err := os.Stat(f.name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	first, _, _ := strings.Cut(read(t, f.name), "\n")
	if want := `{"id":"a","phase":"outcome","time":"2026-11-04T12:01:00Z","replica":"one","request_id":"r","identity_kind":"user","identity":"ann","remote_address":"192.0.2.1",` +
		`"method":"DELETE","route":"/v1/vnf_instances/{vnf_id}","permission":"instance:terminate","project":"p","region":"east","subjects":["vnf"],"status":202,"outcome":"accepted","operation":"op","digest":"sha256:0"}`; first != want {
		t.Errorf("the line is\n%s, want\n%s", first, want)
	}
	report, err := audit.Verify(strings.NewReader(read(t, f.name)))
	if err != nil || report.Entries != 2 || report.First != "" || report.Last == "" {
		t.Errorf("the report is %+v, %v", report, err)
	}
}

// TestChain plays what happens to files.
func TestChain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(t, "a", "b")
	f.restart(t)
	f.record(t, "c")
	if report, err := audit.Verify(strings.NewReader(read(t, f.name))); err != nil || report.Entries != 3 {
		t.Errorf("after a restart: %+v, %v", report, err)
	}
	// logrotate renames it, and knows nothing of us.
	rotated := f.name + ".1"
	if err := os.Rename(f.name, rotated); err != nil {
		t.Fatal(err)
	}
	f.record(t, "d", "e")
	old, fresh := read(t, rotated), read(t, f.name)
	before, err1 := audit.Verify(strings.NewReader(old))
	after, err2 := audit.Verify(strings.NewReader(fresh))
	both, err3 := audit.Verify(io.MultiReader(strings.NewReader(old), strings.NewReader(fresh)))
	if err := errors.Join(err1, err2, err3); err != nil || before.Last != after.First || both.Entries != 5 {
		t.Errorf("after a rotation: %+v, %+v, %+v, %v", before, after, both, err)
	}
	// A process dies over a line.
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.name, []byte(fresh+`{"id":"torn","pha`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Log = nil
	f.restart(t)
	f.record(t, "f")
	if report, err := audit.Verify(strings.NewReader(read(t, f.name))); err != nil || report.Entries != 3 || report.Torn != 1 {
		t.Errorf("after a crash: %+v, %v", report, err)
	}
	if got := listed(t, f.Log, nf.AuditFilter{}); !cmp.Equal(got, []string{"f", "e", "d", "c", "b", "a"}) {
		t.Errorf("the store has %v", got)
	}
}

func TestVerifyFindsEveryEdit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(t, "a", "b", "c", "d")
	content := read(t, f.name)
	lines := strings.SplitAfter(content, "\n")
	var known []string
	for e, err := range f.Entries(t.Context(), nf.AuditFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, e.Prev)
	}
	cases := map[string]struct {
		reason string
		edited string
		ok     bool
		ending bool // it can be told from what is known only
	}{
		"Whole":     {"what was not edited is trusted", content, true, false},
		"Changed":   {"a line that was changed", strings.Replace(content, `"id":"b"`, `"id":"x"`, 1), false, false},
		"TakenOut":  {"a line that was taken out", lines[0] + lines[2] + lines[3], false, false},
		"Beginning": {"a beginning that was cut off", lines[1] + lines[2] + lines[3], true, false},
		"PutIn":     {"a line that was put in", lines[0] + lines[1] + lines[1] + lines[2] + lines[3], false, false},
		"Swapped":   {"lines that were swapped", lines[0] + lines[2] + lines[1] + lines[3], false, false},
		"Garbage":   {"a line that is no entry", lines[0] + "hello\n" + lines[1] + lines[2] + lines[3], false, false},
		"Spaces":    {"a line that means the same", strings.Replace(content, `"id":"b"`, `"id": "b"`, 1), false, false},
		"LineEnds":  {"other ends of lines", strings.ReplaceAll(content, "\n", "\r\n"), false, false},
		"End":       {"an end that was cut off", lines[0] + lines[1], true, true},
		"Empty":     {"an end that was all of it", "", true, true},
		"HalfLine":  {"half a line at the end is a crash", content + lines[0][:10], true, false},
	}
	for name, c := range cases {
		_, err := audit.Verify(strings.NewReader(c.edited))
		if (err == nil) != c.ok || err != nil && nf.KindOf(err) != nf.Invalid {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
		if _, err := audit.Verify(strings.NewReader(c.edited), known...); c.ok && (err == nil) == c.ending {
			t.Errorf("%s: %s: against what is known: %v", name, c.reason, err)
		}
	}
	if _, err := audit.Verify(io.MultiReader(strings.NewReader("{}\n"), broken{})); err == nil || nf.KindOf(err) == nf.Invalid {
		t.Errorf("a file that cannot be read is not one that was edited: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

// TestTogether has many write at once: every one of them is in the chain.
func TestTogether(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.New(audit.Config{KV: memory.New(), File: name})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 16, 20
	var together sync.WaitGroup
	for w := range writers {
		together.Go(func() {
			for i := range each {
				if err := log.Record(t.Context(), nf.AuditEntry{ID: fmt.Sprintf("%d-%d", w, i)}); err != nil {
					t.Error(err)
				}
				if w == 0 && i == each/2 { // in the middle of it all
					if err := os.Rename(name, name+".1"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	together.Wait()
	report, err := audit.Verify(strings.NewReader(read(t, name+".1") + read(t, name)))
	if err != nil || report.Entries != writers*each {
		t.Errorf("%d entries of %d: %v", report.Entries, writers*each, err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// TestFailure checks that nothing is done that could not be written down first.
func TestFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(t, "a")
	f.fail = nf.E(nf.Unreachable, "write", "key", errors.New("down"))
	if err := f.Record(t.Context(), nf.AuditEntry{ID: "b"}); nf.KindOf(err) != nf.Unreachable || f.failed != 1 {
		t.Errorf("the store is down: %v, told of %d", err, f.failed)
	}
	f.fail = nil
	folder := filepath.Dir(f.name)
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := f.Record(t.Context(), nf.AuditEntry{ID: "c"}); nf.KindOf(err) != nf.Unreachable || f.failed != 2 {
		t.Errorf("the folder is away: %v, told of %d", err, f.failed)
	}
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	f.record(t, "d")
	if report, err := audit.Verify(strings.NewReader(read(t, f.name))); err != nil || report.Entries != 3 {
		t.Errorf("it goes on where it was: %+v, %v", report, err)
	}
	if got := listed(t, f.Log, nf.AuditFilter{}); !cmp.Equal(got, []string{"d", "a"}) {
		t.Errorf("the store has %v", got)
	}
	if _, err := audit.New(audit.Config{KV: memory.New(), File: filepath.Join(folder, "no", "folder")}); err == nil {
		t.Error("a log was made that cannot be written")
	}
	if _, err := audit.New(audit.Config{}); err == nil {
		t.Error("a log without a store was made")
	}
	without, err := audit.New(audit.Config{KV: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(without.Record(t.Context(), nf.AuditEntry{ID: "x"}), without.Close()); err != nil || !cmp.Equal(listed(t, without, nf.AuditFilter{}), []string{"x"}) {
		t.Errorf("a log without a file: %v", err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		log, err := audit.New(audit.Config{KV: memory.New(), File: name, Retention: 90 * time.Minute, Logger: slog.New(slog.NewTextHandler(out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Record(t.Context(), nf.AuditEntry{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 119*time.Minute)
		defer cancel()
		if err := log.Run(ctx); err != nil || len(listed(t, log, nf.AuditFilter{})) != 1 {
			t.Errorf("an entry within the retention is gone, %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := log.Run(ctx); err != nil || len(listed(t, log, nf.AuditFilter{})) != 0 {
			t.Errorf("an entry outlives the retention, %v", err)
		}
		report, err := audit.Verify(strings.NewReader(read(t, name)))
		if err != nil || !strings.Contains(out.String(), "sha256="+report.Last) {
			t.Errorf("the head %s is not in the log: %s", report.Last, out)
		}
	})
}

// FuzzVerify feeds Verify with anything, and checks that a file which it trusts
// is trusted after it was read in two parts, too.
func FuzzVerify(f *testing.F) {
	f.Add("{\"id\":\"a\"}\n")
	f.Add("\n\n{}\nnull\n[1]\n")
	f.Add("{\"prev\":\"x\"}\n{\"prev\":\"y\"}")
	f.Add(strings.Repeat("x", 5000) + "\n{}")
	f.Fuzz(func(t *testing.T, content string) {
		one, err1 := audit.Verify(strings.NewReader(content))
		half := len(content) / 2
		two, err2 := audit.Verify(io.MultiReader(strings.NewReader(content[:half]), strings.NewReader(content[half:])))
		if one != two || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q: %+v, %v and %+v, %v", content, one, err1, two, err2)
		}
		if _, err := audit.Verify(strings.NewReader("{}\n{}\n" + content)); err == nil {
			t.Errorf("two lines that do not fit are trusted before %q", content)
		}
	})
}
