package etcd

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestFirstStart continues first starts that were interrupted at any point before
// the first request: the folder is as good as a new one.
func TestFirstStart(t *testing.T) {
	log := func(t *testing.T, l layout) {
		must(t, os.MkdirAll(l.member(), 0o700))
		id := uint64(7)
		metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &id, ClusterID: &id})
		must(t, err)
		w, err := wal.Create(zap.NewNop(), l.log(), metadata)
		must(t, err)
		must(t, w.Close())
	}
	database := func(t *testing.T, l layout) {
		must(t, os.MkdirAll(l.snap(), 0o700))
		db, err := bolt.Open(l.database(), 0o600, nil)
		must(t, err)
		must(t, db.Close())
	}
	write := func(path, content string) func(*testing.T, layout) {
		return func(t *testing.T, l layout) {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(l.dir, path)), 0o700))
			must(t, os.WriteFile(filepath.Join(l.dir, path), []byte(content), 0o600))
		}
	}
	cases := map[string]struct {
		reason string
		make   []func(*testing.T, layout)
	}{
		"Folder":    {"only the folder is there", nil},
		"Lock":      {"the lock is the first file", []func(*testing.T, layout){write("LOCK", "1\n")}},
		"Watermark": {"the mark is the second", []func(*testing.T, layout){write(watermarkFile, "")}},
		"Database":  {"then the database", []func(*testing.T, layout){database}},
		"Empty":     {"the database was created and not filled", []func(*testing.T, layout){write("member/snap/db", "")}},
		"Torn":      {"or filled in part", []func(*testing.T, layout){write("member/snap/db", strings.Repeat("\x00", 8192))}},
		"LogBegun":  {"the log is made in a folder of another name", []func(*testing.T, layout){database, write("member/wal.tmp/0.wal", "torn")}},
		"Log":       {"the log has no entry, not even the one that makes the member", []func(*testing.T, layout){database, log}},
		"TornEntry": {"the first entry was not written whole", []func(*testing.T, layout){database, log, func(t *testing.T, l layout) {
			must(t, change(filepath.Join(l.log(), "0000000000000000-0000000000000000.wal"), 200, []byte{100}))
		}}},
		"OneIsLate": {"a power cut kept the log and lost the database", []func(*testing.T, layout){log}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, do := range tc.make {
				do(t, layout{dir})
			}
			s := open(t, Config{Dir: dir})
			if _, err := s.Put(t.Context(), "key", nil, store.Absent); err != nil {
				t.Errorf("%s: it cannot be used: %v", tc.reason, err)
			}
		})
	}
}

// TestKilledAnywhere kills a process again and again, while it starts and while it
// writes. Each start finds all that was acknowledged before.
func TestKilledAnywhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	random := rand.New(rand.NewPCG(3, 3))
	acknowledged := map[string]record{}
	for i := range 24 {
		cmd := child(t, "append", dir)
		stdout, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewReader(stdout)
		if i%2 == 0 { // at any time, mostly while it starts
			<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		} else { // while it writes, on a slow machine, too
			for range 1 + random.IntN(200) {
				line, err := lines.ReadString('\n')
				must(t, err)
				read(t, strings.NewReader(line), acknowledged)
			}
		}
		must(t, cmd.Process.Kill())
		read(t, lines, acknowledged)
		_ = cmd.Wait() // it was killed, and says so
	}
	keep(t, dir, acknowledged)
	if code, says := look(t, dir); code != 0 || len(acknowledged) < 12 {
		t.Errorf("of %d acknowledged records not all are there: %d, %s", len(acknowledged), code, says)
	}
}

// TestDiskFull has the disk of the folder full at the start, or at any time later,
// and larger at the next start.
func TestDiskFull(t *testing.T) {
	full := func(says string) bool {
		return strings.Contains(says, "no space left on device; free space on the disk of the folder, and start again")
	}
	for _, kib := range []int{0, 4, 40, 100, 300, 20 << 10, 40 << 10} {
		t.Run(fmt.Sprint(kib, "KiB"), func(t *testing.T) {
			t.Parallel()
			disk := t.TempDir()
			dir := filepath.Join(disk, "data")
			must(t, syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dk", kib+4)))
			t.Cleanup(func() { must(t, syscall.Unmount(disk, 0)) })

			cmd := child(t, "flood", dir)
			var says strings.Builder
			cmd.Stderr = &says
			stdout, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			acknowledged := read(t, stdout, map[string]record{})
			_ = cmd.Wait() // its exit code is looked at
			if cmd.ProcessState.ExitCode() != exitRefused || !full(says.String()) || panics(says.String()) != "" {
				t.Errorf("exit code %d, %s", cmd.ProcessState.ExitCode(), says.String())
			}
			seen := filepath.Join(t.TempDir(), "seen")
			keep(t, seen, acknowledged)
			env := childSeen + "=" + seen + ".acknowledged"
			checkStart(t, dir, env) // it may need no more space than there is
			must(t, syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=200m"))
			if code, says := look(t, dir, env); code != 0 {
				t.Errorf("with space again, of %d records not all are there: %d, %s", len(acknowledged), code, says)
			}
		})
	}
}

// TestNoAddressSpace has no room to map the database.
func TestNoAddressSpace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fill(t, dir, false)
	code, says := look(t, dir, childArea+"="+strconv.Itoa(6<<30))
	if code != exitRefused || panics(says) != "" || !strings.Contains(says, "give the process more memory") {
		t.Errorf("exit code %d, %s", code, says)
	}
}

// TestWithoutMark accepts what is left of damaged records when an operator asks
// for it.
func TestWithoutMark(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	for _, key := range []string{"damaged", "whole"} {
		_, err = s.Put(t.Context(), key, []byte("the value of "+key), store.Absent)
		must(t, err)
	}
	must(t, s.Close())
	content, err := os.ReadFile(layout{dir}.database())
	must(t, err)
	value := []byte("the value of damaged")
	for at := bytes.Index(content, value); at >= 0; at = bytes.Index(content, value) { // a page that is no longer used may have it, too
		must(t, flip(layout{dir}.database(), int64(at), 1))
		content[at]++
	}
	if s, err := Open(t.Context(), Config{Dir: dir}); err == nil || nf.ReasonOf(err) != "damaged" {
		t.Fatalf("a damaged record is overlooked: %v, %v", s, err)
	}
	must(t, os.Remove(filepath.Join(dir, watermarkFile)))
	s = open(t, Config{Dir: dir})
	if e, err := s.Get(t.Context(), "whole"); err != nil || string(e.Value) != "the value of whole" {
		t.Errorf("the other record is %q, %v", e.Value, err)
	}
	if e, err := s.Get(t.Context(), "damaged"); err != nil || string(e.Value) == "the value of damaged" {
		t.Errorf("the damaged record is %q, %v", e.Value, err)
	}
}
