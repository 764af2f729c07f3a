package etcd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// measuredStore is a store whose space is looked at when the test says so.
type measuredStore struct {
	*Store

	t   *testing.T
	now time.Time
}

func openWatched(t *testing.T, config Config) *measuredStore {
	t.Helper()
	s, err := openWith(t.Context(), config, make(chan time.Time))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return &measuredStore{Store: s, t: t, now: time.Now()}
}

// round looks at the store after a time.
func (w *measuredStore) round(after time.Duration) Space {
	w.t.Helper()
	w.now = w.now.Add(after)
	w.maintenance.round(w.t.Context(), w.now)
	return w.Space()
}

// fillUp writes from a number on until the store refuses to, and returns the
// number that it refuses. Etcd may have carried out a write that it refuses for
// want of space, so a key may exist already.
func fillUp(t *testing.T, s *Store, from int) (refused int, err error) {
	t.Helper()
	for n := from; ; n++ {
		if _, err = s.Put(t.Context(), fmt.Sprint("fill/", n), make([]byte, 256<<10), store.Any); err != nil {
			return n, err
		}
	}
}

// TestFull drives a store to its quota and back.
func TestFull(t *testing.T) {
	const quota = 16 << 20
	w := openWatched(t, Config{Dir: t.TempDir(), Quota: quota})
	if s := w.round(0); s.Quota != quota || s.Size == 0 || s.InUse == 0 || s.InUse > s.Size || s.Full {
		t.Errorf("of an empty store: %+v", s)
	}
	written, err := fillUp(t, w.Store, 0)
	if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != nf.ReasonNoSpace || !strings.Contains(err.Error(), "quota of 16 MiB") || !strings.Contains(err.Error(), "raise --store-quota") {
		t.Errorf("the error after %d writes is %v (%s, %s)", written, err, nf.KindOf(err), nf.ReasonOf(err))
	}
	err = w.Healthy(t.Context())
	if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != nf.ReasonNoSpace || !strings.Contains(err.Error(), "NOSPACE") || !strings.Contains(err.Error(), "raise --store-quota") {
		t.Errorf("the health of a full store is %v", err)
	}
	for !w.round(0).Full { // a little was free
		if written, err = fillUp(t, w.Store, written); nf.ReasonOf(err) != nf.ReasonNoSpace {
			t.Fatal(err)
		}
	}
	if s := w.Space(); s.Size < quota*9/10 {
		t.Errorf("of a full store: %+v", s)
	}
	if _, err := w.Put(t.Context(), "small", nil, store.Absent); nf.ReasonOf(err) != nf.ReasonNoSpace {
		t.Errorf("a full store takes a write, or refuses it with %v", err)
	}

	for i := range written - 1 {
		if err := w.Delete(t.Context(), fmt.Sprint("fill/", i), store.Any); err != nil {
			t.Fatalf("nothing can be removed from a full store: %v", err)
		}
	}
	if s := w.round(0); s.Full || s.Size > quota/2 {
		t.Errorf("the file was not made smaller: %+v", s)
	}
	if err := w.Healthy(t.Context()); err != nil {
		t.Errorf("it has space again and is not healthy: %v", err)
	}
	if _, err := w.Put(t.Context(), "small", nil, store.Absent); err != nil {
		t.Errorf("it has space again and does not take writes: %v", err)
	}
	if e, err := w.Get(t.Context(), fmt.Sprint("fill/", written-1)); err != nil || len(e.Value) != 256<<10 {
		t.Errorf("what was not removed is gone: %d bytes, %v", len(e.Value), err)
	}
}

// TestRaisedQuota opens a full store with a larger quota.
func TestRaisedQuota(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir, Quota: 8 << 20})
	must(t, err)
	if _, err := fillUp(t, s, 0); nf.ReasonOf(err) != nf.ReasonNoSpace {
		t.Fatalf("it is not full: %v", err)
	}
	must(t, s.Close())
	s = open(t, Config{Dir: dir, Quota: 64 << 20})
	if _, err := s.Put(t.Context(), "more", nil, store.Absent); err != nil {
		t.Errorf("it has a larger quota and does not take writes: %v", err)
	}
}

// TestThresholds checks that each threshold is reported once, and again when it is no longer
// exceeded.
func TestThresholds(t *testing.T) {
	const mib = 1 << 20
	var out bytes.Buffer
	k := &maintenance{store: &Store{}, log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "error", "in_use_bytes", "quota_bytes", "size_bytes":
			return slog.Attr{}
		}
		return a
	}}))}
	cases := []struct {
		reason string
		space  Space
		want   string
	}{
		{"a quarter is free", Space{Size: 75 * mib, Quota: 100 * mib}, ""},
		{"the first is exceeded", Space{Size: 76 * mib, Quota: 100 * mib}, "level=WARN msg=\"store usage rose above a threshold\" percent=75\n"},
		{"it is told once", Space{Size: 80 * mib, Quota: 100 * mib}, ""},
		{"a little less is not less", Space{Size: 71 * mib, Quota: 100 * mib}, ""},
		{"the second is exceeded", Space{Size: 91 * mib, Quota: 100 * mib}, "level=WARN msg=\"store usage rose above a threshold\" percent=90\n"},
		{"writes are refused", Space{Size: 99 * mib, Quota: 100 * mib, Full: true}, "level=ERROR msg=\"store is full and refuses writes\" percent=100\n"},
		{"that is told once", Space{Size: 99 * mib, Quota: 100 * mib, Full: true}, ""},
		{"writes are taken again", Space{Size: 86 * mib, Quota: 100 * mib}, "level=INFO msg=\"store usage fell below a threshold\" percent=100\n"},
		{"and there is much space", Space{Size: 10 * mib, Quota: 100 * mib}, "level=INFO msg=\"store usage fell below a threshold\" percent=90\n"},
		{"all at once", Space{Size: 99 * mib, Quota: 100 * mib}, "level=WARN msg=\"store usage rose above a threshold\" percent=90\n"},
		{"nobody knows the quota", Space{Size: 99 * mib}, "level=INFO msg=\"store usage fell below a threshold\" percent=90\n"},
		{"the alarm tells without it", Space{Size: 99 * mib, Full: true}, "level=ERROR msg=\"store is full and refuses writes\" percent=100\n"},
	}
	for _, tc := range cases {
		out.Reset()
		k.logUsage(t.Context(), tc.space)
		if got := out.String(); got != tc.want {
			t.Errorf("%s: it tells %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestHistory removes history after a minute, unless it is being read.
func TestHistory(t *testing.T) {
	w := openWatched(t, Config{Dir: t.TempDir()})
	var revisions []store.Revision
	for range firstPage + 2 {
		rev, err := w.Put(t.Context(), fmt.Sprint("key/", len(revisions)), nil, store.Any)
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, rev)
	}
	w.round(0) // it notes the present revision
	there := func(rev store.Revision) bool {
		_, err := w.client.Get(t.Context(), "key/0", clientv3.WithRev(int64(rev)))
		return err == nil
	}
	if w.round(keepHistory - 1); !there(revisions[0]) {
		t.Error("history is removed before its time")
	}
	if s := w.round(1); there(revisions[0]) || !there(revisions[firstPage+1]) || !s.Compacted.Equal(w.now) {
		t.Errorf("history is kept for too long, or the present is removed: %+v", s)
	}

	// another writes, and has the keeper remove what was before that
	another := func(after time.Duration) {
		t.Helper()
		for range 2 {
			if _, err := w.Put(t.Context(), "other", nil, store.Any); err != nil {
				t.Fatal(err)
			}
			w.round(after)
		}
	}
	var err error
	read := 0
	for _, err = range w.List(t.Context(), "key/", "") {
		if read++; err != nil {
			break
		}
		if read == 1 {
			another(keepHistory)
			if s := w.Space(); !s.Compacted.Before(w.now) {
				t.Errorf("it says that history was removed which is being read: %+v", s)
			}
		}
	}
	if err != nil || read != firstPage+2 {
		t.Errorf("a list that takes long ends after %d entries with %v", read, err)
	}

	now, err := w.present(t.Context())
	must(t, err)
	waiting := w.maintenance.lists.add(now)
	if another(keepHistory); there(revisions[firstPage+1]) || !there(store.Revision(now)) {
		t.Error("a list that waits for its first page keeps other history than it may read")
	}
	w.maintenance.lists.remove(waiting)

	read = 0
	for _, err = range w.List(t.Context(), "key/", "") {
		if read++; err != nil {
			break
		}
		if read == 1 {
			another(maxRead)
		}
	}
	if nf.ReasonOf(err) != "compacted" {
		t.Errorf("a list that does not end keeps the history for ever: %v", err)
	}
}

// TestSpaceOutside looks at a cluster, and changes nothing in it.
func TestSpaceOutside(t *testing.T) {
	const quota = 8 << 20
	w := openWatched(t, Config{Endpoints: startAlone(t, func(c *embed.Config) { c.QuotaBackendBytes = quota })})
	if s := w.round(0); s.Quota != quota || s.Size == 0 || s.InUse == 0 || s.Full || !s.Compacted.IsZero() {
		t.Errorf("of an empty cluster: %+v", s)
	}
	rev, err := w.Put(t.Context(), "key", nil, store.Any)
	if err != nil {
		t.Fatal(err)
	}
	rev, err = w.Put(t.Context(), "key", nil, store.Revision(rev))
	if err != nil {
		t.Fatal(err)
	}
	if s := w.round(time.Hour); !s.Compacted.IsZero() {
		t.Errorf("nobody has removed history: %+v", s)
	}
	if _, err := w.client.Compact(t.Context(), int64(rev)); err != nil {
		t.Fatal(err)
	}
	if s := w.round(time.Minute); !s.Compacted.Equal(w.now) {
		t.Errorf("somebody has removed history: %+v", s)
	}
	_, err = fillUp(t, w.Store, 0)
	if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != nf.ReasonNoSpace || !strings.Contains(err.Error(), "etcdctl alarm disarm") {
		t.Errorf("the error of a full cluster is %v (%s)", err, nf.KindOf(err))
	}
	if err := w.Healthy(t.Context()); nf.ReasonOf(err) != nf.ReasonNoSpace || !strings.Contains(err.Error(), "etcdctl alarm disarm") {
		t.Errorf("the health of a full cluster is %v", err)
	}
	if s := w.round(time.Minute); !s.Full {
		t.Errorf("of a full cluster: %+v", s)
	}
}
