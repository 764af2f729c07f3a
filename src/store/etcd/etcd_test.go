package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestInside(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.KV { return open(t, Config{Dir: t.TempDir()}) })
}

func TestHealthyOutside(t *testing.T) {
	s := open(t, Config{Endpoints: startAlone(t, func(*embed.Config) {})})
	if err := s.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		gone   bool // the context has ended
		config Config
		want   nf.Kind
	}{
		"Nothing":    {"somewhere it must be", false, Config{}, nf.Invalid},
		"Both":       {"in one place only", false, Config{Dir: t.TempDir(), Endpoints: []string{"http://127.0.0.1:1"}}, nf.Invalid},
		"File":       {"a file is no folder", false, Config{Dir: file}, nf.Invalid},
		"Cancelled":  {"nobody waits for the server", true, Config{Dir: t.TempDir()}, nf.Unreachable},
		"Silence":    {"the cluster does not answer", true, Config{Endpoints: []string{"http://127.0.0.1:1"}}, nf.Unreachable},
		"NoScheme":   {"encrypted or not?", false, Config{Endpoints: []string{"127.0.0.1:1"}}, nf.Invalid},
		"Scheme":     {"another protocol", false, Config{Endpoints: []string{"ftp://127.0.0.1:1"}}, nf.Invalid},
		"UserInURL":  {"a password would be shown", false, Config{Endpoints: []string{"http://u:p@127.0.0.1:1"}}, nf.Invalid},
		"Mixed":      {"what is secret would be sent in the open", false, Config{Endpoints: []string{"https://127.0.0.1:1", "http://127.0.0.1:1"}}, nf.Invalid},
		"CAInOpen":   {"it was meant to be encrypted", false, Config{Endpoints: []string{"http://127.0.0.1:1"}, CA: "ca.pem"}, nf.Invalid},
		"CertAlone":  {"a certificate without a key", false, Config{Endpoints: []string{"https://127.0.0.1:1"}, Cert: "c.pem"}, nf.Invalid},
		"UserAlone":  {"a user without a password", false, Config{Endpoints: []string{"http://127.0.0.1:1"}, User: "u"}, nf.Invalid},
		"UserInside": {"there is nobody to check it", false, Config{Dir: t.TempDir(), User: "u", Password: nf.Secret("p")}, nf.Invalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.gone {
				cancel()
			}
			s, err := Open(ctx, c.config)
			if err == nil {
				t.Fatalf("%s: it was opened (close: %v)", c.reason, s.Close())
			}
			if got := nf.KindOf(err); got != c.want {
				t.Errorf("%s: the error is %v (%s), want one of kind %s", c.reason, err, got, c.want)
			}
		})
	}
}

func TestOpenAfterCancelledOpen(t *testing.T) {
	dir := t.TempDir()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(gone, Config{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want one that says the context was cancelled", err)
	}
	if err := open(t, Config{Dir: dir}).Healthy(t.Context()); err != nil {
		t.Errorf("the folder is of no use after an opening that was cancelled: %v", err)
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	var last store.Revision
	for i := range 3 {
		s, err := Open(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for n := range i {
			if e, err := s.Get(t.Context(), fmt.Sprintf("key/%d", n)); err != nil || string(e.Value) != "value" {
				t.Errorf("start %d: what start %d wrote is %q, error %v", i, n, e.Value, err)
			}
		}
		rev, err := s.Put(t.Context(), fmt.Sprintf("key/%d", i), []byte("value"), store.Absent)
		if err != nil || rev <= last {
			t.Errorf("start %d: revision %d after %d, error %v", i, rev, last, err)
		}
		last = rev
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	open(t, Config{Dir: dir})
	loose := t.TempDir()
	if err := os.Chmod(loose, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, Config{Dir: loose})
	for _, dir := range []string{dir, loose, filepath.Join(dir, "member"), filepath.Join(loose, "member")} {
		stat, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := stat.Mode().Perm(); got != 0o700 {
			t.Errorf("%s has mode %o, want 700", dir, got)
		}
	}
}

// TestSecondProcess has another process use the folder and be killed: it holds
// the folder until then, and what it wrote is there afterwards.
func TestSecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := child(t, "fill", dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // never closed: it waits
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	written := read(t, stdout, map[string]record{})
	if len(written) == 0 {
		t.Fatal("the other process has written nothing")
	}

	_, err = Open(t.Context(), Config{Dir: dir})
	if err == nil || nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("the error is %v, want a conflict with process %d", err, cmd.Process.Pid)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, and says so

	keep(t, dir, written)
	if code, says := look(t, dir); code != 0 {
		t.Errorf("what a killed process wrote is not all there: %d, %s", code, says)
	}
}

func TestListOutlivesHistory(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	var last store.Revision
	for i := range firstPage + 1 {
		rev, err := s.Put(t.Context(), fmt.Sprintf("key/%d", i), nil, store.Absent)
		if err != nil {
			t.Fatal(err)
		}
		last = rev
	}
	var err error
	for e, e2 := range s.List(t.Context(), "key/", "") {
		if err = e2; err != nil {
			break
		}
		if e.Key == "key/0" {
			if _, err := s.Put(t.Context(), "other", nil, store.Any); err != nil {
				t.Fatal(err)
			}
			if _, err := s.client.Compact(t.Context(), int64(last)+1); err != nil { // as only a test does
				t.Fatal(err)
			}
		}
	}
	if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != "compacted" {
		t.Errorf("the list ends with %v, want the reason compacted", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

func open(t *testing.T, config Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
