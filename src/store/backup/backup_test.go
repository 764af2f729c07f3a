package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// site is a store with its own keys, and the keys that open it.
type site struct {
	raw  store.KV
	keys *seal.Keyring
}

func newSite(t testing.TB, raw store.KV) site {
	t.Helper()
	keys, err := seal.Generate()
	must(t, err)
	return site{raw: raw, keys: keys}
}

func (s site) sealed() *seal.Store { return seal.New(s.raw, s.keys) }

func (s site) config() backup.Config {
	return backup.Config{KV: s.sealed(), Raw: s.raw, Skip: []string{"replicas/"}, Version: 2, Clock: clock}
}

// start opens the store as the service does.
func (s site) start(t testing.TB) error {
	t.Helper()
	return schema.Open(t.Context(), schema.Config{Raw: s.raw, Sealed: s.sealed(), SealedBy: s.keys.IDs()[0], Migrations: make([]schema.Migration, 1)})
}

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

const secret = "the kubeconfig of region east"

var chunky = strings.Repeat(secret, 10_000)

// filled is a site with regions, a blob of several chunks, and a replica's lease.
func filled(t testing.TB) site {
	t.Helper()
	s := newSite(t, memory.New())
	must(t, s.start(t))
	kv := s.sealed()
	for _, id := range []string{"east", "we<st&\"é\""} {
		must(t, store.NewTable[nf.Region](kv, "regions/", "cloud region").Insert(t.Context(), id, nf.Region{ID: id, Access: nf.Access{Kubeconfig: nf.Secret(secret)}}))
	}
	_, _, err := store.NewBlobs(kv).Put(t.Context(), "csar", strings.NewReader(chunky), 1<<30)
	must(t, err)
	put(t, kv, "claims/1", "{}")
	put(t, kv, "empty", "")
	put(t, kv, "replicas/1", "{}")
	return s
}

// write returns a backup, and who can open it.
func write(t testing.TB, s site) ([]byte, age.Identity) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	var out bytes.Buffer
	_, err = backup.Write(t.Context(), s.config(), &out, identity.Recipient())
	must(t, err)
	return out.Bytes(), identity
}

// TestRoundTrip brings a store to other kinds of stores and back.
func TestRoundTrip(t *testing.T) {
	from := filled(t)
	put(t, from.sealed(), "largest", strings.Repeat("\xff", store.MaxValue))
	want := records(t, from.sealed())
	delete(want, "replicas/1")
	stream, identity := write(t, from)
	if bytes.Contains(stream, []byte(secret)) || bytes.Contains(stream, []byte("regions/")) {
		t.Error("the backup is not encrypted")
	}
	disk, err := etcd.Open(t.Context(), etcd.Config{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, disk.Close()) })
	middle, last := newSite(t, disk), newSite(t, memory.New())
	must(t, last.start(t)) // a new service has been started on it, and stopped
	put(t, last.raw, "replicas/2", "its lease")
	for _, to := range []site{middle, last} {
		summary, err := backup.Restore(t.Context(), to.config(), bytes.NewReader(stream), identity)
		must(t, err)
		if summary.Records != len(want) || summary.Schema != 2 || !summary.Created.Equal(clock()) {
			t.Errorf("the summary is %+v, want %d records", summary, len(want))
		}
		must(t, to.start(t))
		if _, err := to.raw.Get(t.Context(), "replicas/2"); err == nil {
			must(t, to.raw.Delete(t.Context(), "replicas/2", store.Any))
		}
		if diff := cmp.Diff(want, records(t, to.sealed())); diff != "" {
			t.Errorf("what was restored (-want +got):\n%s", diff)
		}
		status, err := to.sealed().Status(t.Context())
		must(t, err)
		if status.Plain != 0 || status.Records[to.keys.IDs()[0]] != len(want) {
			t.Errorf("what was restored is sealed like this: %+v", status)
		}
		stream, identity = write(t, to)
	}
}

func TestSummary(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	var out bytes.Buffer
	written, err := backup.Write(t.Context(), filled(t).config(), &out, identity.Recipient())
	must(t, err)
	read, err := backup.Check(t.Context(), &out, identity)
	must(t, err)
	if diff := cmp.Diff(written, read); diff != "" || written.Bytes < int64(len(chunky)) || len(written.SHA256) != 64 {
		t.Errorf("what was written is %+v, and what is read differs (-want +got):\n%s", written, diff)
	}
}

func TestRestoreIntoUse(t *testing.T) {
	stream, identity := write(t, filled(t))
	to := newSite(t, memory.New())
	must(t, to.start(t))
	put(t, to.sealed(), "regions/theirs", "{}")
	put(t, to.sealed(), "zones/theirs", "{}")
	put(t, to.sealed(), "replicas/theirs", "{}")
	before := dump(t, to.raw)
	_, err := backup.Restore(t.Context(), to.config(), bytes.NewReader(stream), identity)
	wantKind(t, "a store that is used is not overwritten", err, nf.Conflict)
	if err != nil && !strings.Contains(err.Error(), "2 records") {
		t.Errorf("the error does not say how much is there: %v", err)
	}
	if diff := cmp.Diff(before, dump(t, to.raw)); diff != "" {
		t.Errorf("a restore that was refused changed the store (-want +got):\n%s", diff)
	}
	config := to.config()
	config.Replace = true
	_, err = backup.Restore(t.Context(), config, bytes.NewReader(stream), identity)
	must(t, err)
	must(t, to.start(t))
	found := keys(t, to.sealed())
	if slices.Contains(found, "regions/theirs") || slices.Contains(found, "zones/theirs") || !slices.Contains(found, "replicas/theirs") {
		t.Errorf("after it was told to replace what is there: %v", found)
	}
}

// TestRestoreDies has it die at every write: no service starts on the half, no
// backup is made of it, and a second restore makes it whole.
func TestRestoreDies(t *testing.T) {
	from := newSite(t, memory.New())
	must(t, from.start(t))
	for _, key := range []string{"a", "b", "c"} {
		put(t, from.sealed(), key, "value of "+key)
	}
	stream, identity := write(t, from)
	want := records(t, from.sealed())
	const writes = 1 + 2 + 1 + 3 + 1 // the mark, what was there, the version, the records, the mark
	for n := 1; n <= writes; n++ {
		for _, done := range []bool{false, true} {
			to := newSite(t, memory.New())
			must(t, to.start(t))
			put(t, to.sealed(), "theirs/1", "x")
			put(t, to.sealed(), "theirs/2", "x")
			crashing := storetest.NewCrashingStore(to.raw)
			crashing.CrashAt(n, done)
			config := backup.Config{KV: seal.New(crashing, to.keys), Raw: crashing, Replace: true}
			_, err := backup.Restore(t.Context(), config, bytes.NewReader(stream), identity)
			wantKind(t, fmt.Sprintf("it died at write %d", n), err, nf.Unreachable)
			begun, ended := n > 1 || done, n == writes && done
			switch err := to.start(t); {
			case begun && !ended:
				wantKind(t, "a service on half a store", err, nf.Conflict)
				_, err = backup.Write(t.Context(), to.config(), io.Discard, identity.(*age.X25519Identity).Recipient())
				wantKind(t, "a backup of half a store", err, nf.Conflict)
			default:
				must(t, err)
			}
			again := to.config()
			again.Replace = !begun || ended // otherwise it is known whose the half is
			_, err = backup.Restore(t.Context(), again, bytes.NewReader(stream), identity)
			must(t, err)
			must(t, to.start(t))
			if diff := cmp.Diff(want, records(t, to.sealed())); diff != "" {
				t.Errorf("cut at write %d and repeated (-want +got):\n%s", n, diff)
			}
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	to := identity.Recipient()
	used := filled(t)
	_, err = backup.Write(t.Context(), newSite(t, memory.New()).config(), io.Discard, to)
	wantKind(t, "a store without a version", err, nf.Conflict)
	_, err = backup.Write(t.Context(), used.config(), io.Discard)
	wantKind(t, "a backup for nobody", err, nf.Invalid)
	_, err = backup.Write(t.Context(), backup.Config{Raw: used.raw}, io.Discard, to)
	wantKind(t, "no store", err, nf.Internal)
	_, err = backup.Restore(t.Context(), backup.Config{KV: used.raw}, bytes.NewReader(nil), identity)
	wantKind(t, "no store", err, nf.Internal)
	full := errors.New("no space left")
	_, err = backup.Write(t.Context(), used.config(), failingWriter{full}, to)
	if !errors.Is(err, full) {
		t.Errorf("the disk is full, and the error is %v", err)
	}
	stranger := newSite(t, used.raw)
	var cut bytes.Buffer
	_, err = backup.Write(t.Context(), stranger.config(), &cut, to)
	wantKind(t, "records that do not open are not left out", err, nf.Unreachable)
	wantRefused(t, "what was written of them", cut.Bytes(), nf.Invalid, identity)
}

func TestReadFails(t *testing.T) {
	stream, identity := write(t, filled(t))
	broken := errors.New("the disk is broken")
	for _, n := range []int{0, 100, 300, len(stream) / 2, len(stream)} {
		r := io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(broken))
		_, err := backup.Check(t.Context(), r, identity)
		if !errors.Is(err, broken) || nf.KindOf(err) != nf.Internal {
			t.Errorf("after %d bytes the error is %v (%s), want that of the disk", n, err, nf.KindOf(err))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := backup.Check(ctx, bytes.NewReader(stream), identity)
	wantKind(t, "nobody waits any more", err, nf.Unreachable)
}

// changing is a backup that is another when it is read for the second time.
type changing struct {
	*bytes.Reader

	next []byte
}

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		c.Reader = bytes.NewReader(c.next)
	}
	return c.Reader.Seek(offset, whence)
}

func TestRestoreOfChanging(t *testing.T) {
	first, identity := write(t, filled(t))
	second := encrypt(t, whole(`{"format":"k8splugin-backup","version":1,"schema":2,"created":"2026-01-02T03:04:05Z"}`+"\n"), identity.(*age.X25519Identity).Recipient())
	to := newSite(t, memory.New())
	_, err := backup.Restore(t.Context(), to.config(), &changing{bytes.NewReader(first), second}, identity)
	wantKind(t, "what was checked is not what is restored", err, nf.Conflict)
	wantKind(t, "a service on that", to.start(t), nf.Conflict)
}

// TestRestoreFromTheMiddle puts other data before the backup.
func TestRestoreFromTheMiddle(t *testing.T) {
	stream, identity := write(t, filled(t))
	r := bytes.NewReader(append([]byte("something else"), stream...))
	_, err := r.Seek(int64(len("something else")), io.SeekStart)
	must(t, err)
	_, err = backup.Restore(t.Context(), newSite(t, memory.New()).config(), r, identity)
	must(t, err)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func records(t testing.TB, kv store.KV) map[string]string {
	t.Helper()
	out := dump(t, kv)
	if len(out) == 0 {
		t.Fatal("the store is empty")
	}
	return out
}

func dump(t testing.TB, kv store.KV) map[string]string {
	t.Helper()
	out := map[string]string{}
	for e, err := range kv.List(t.Context(), "", "") {
		must(t, err)
		out[e.Key] = string(e.Value)
	}
	return out
}

func keys(t testing.TB, kv store.KV) []string {
	t.Helper()
	var out []string
	for key := range dump(t, kv) {
		out = append(out, key)
	}
	return out
}

func put(t testing.TB, kv store.KV, key, value string) {
	t.Helper()
	_, err := kv.Put(t.Context(), key, []byte(value), store.Any)
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}
