package etcd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// childPart makes the test binary play a part on the folder in childDir, instead
// of testing: what etcd does with damaged files, or when it is stopped hard, may end
// a process.
const (
	childPart = "K8SPLUGIN_TEST_ETCD_PART"
	childDir  = "K8SPLUGIN_TEST_ETCD_DIR"
	childUser = "K8SPLUGIN_TEST_ETCD_USER" // the user id that it takes on
	childArea = "K8SPLUGIN_TEST_ETCD_AREA" // its limit of address space
	childNode = "K8SPLUGIN_TEST_ETCD_NODE" // which node of a cluster it is
	childSeen = "K8SPLUGIN_TEST_ETCD_SEEN" // the file with what was acknowledged, unless it is next to the folder
)

// hang is how long a process may take before it counts as one that never ends:
// many times what it takes.
const hang = 2 * time.Minute

// The exit codes of the parts.
const (
	exitLost    = 9 // a record that was acknowledged is not there
	exitRefused = 6 // as the program's: the store cannot be used, with the reason
)

func TestMain(m *testing.M) {
	part := os.Getenv(childPart)
	if part == "" {
		os.Exit(m.Run())
	}
	wal.SegmentSizeBytes = 64 << 10 // several segments with few records
	if err := play(part, os.Getenv(childDir)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		switch {
		case errors.Is(err, errLostRecord):
			os.Exit(exitLost)
		case nf.KindOf(err) == nf.Unreachable:
			os.Exit(exitRefused)
		}
		os.Exit(1)
	}
}

func play(part, dir string) error {
	if area, err := strconv.ParseUint(os.Getenv(childArea), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: area, Max: area}); err != nil {
			return err
		}
	}
	if user, err := strconv.Atoi(os.Getenv(childUser)); err == nil {
		if err := errors.Join(syscall.Setgid(user), syscall.Setuid(user)); err != nil {
			return err
		}
	}
	if part == "node" {
		var config nodeConfig
		if err := json.Unmarshal([]byte(os.Getenv(childNode)), &config); err != nil {
			return err
		}
		return playNode(config)
	}
	s, err := Open(context.Background(), Config{Dir: dir})
	if err != nil {
		return err
	}
	switch part {
	case "fill":
		err = playFill(s)
	case "append":
		err = playAppend(s)
	case "flood":
		err = playFlood(s)
	case "look":
		err = playLook(s, dir)
	}
	return errors.Join(err, s.Close())
}

// playFill writes and deletes records, compacts what it has written until then, and
// says of each record when it is acknowledged. It ends with its input.
func playFill(s *Store) error {
	out := json.NewEncoder(os.Stdout)
	lines := make(chan record)
	var told errgroup.Group
	told.Go(func() error {
		for r := range lines {
			if err := out.Encode(r); err != nil {
				return err
			}
		}
		return nil
	})
	var writers errgroup.Group
	for w := range 16 {
		writers.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 40 {
				name := sha256.Sum256(fmt.Append(nil, w, i%25)) // the damage of a bit makes it no other key
				r := record{Key: fmt.Sprintf("fill/%x", name[:8]), Value: make([]byte, 200+random.IntN(200))}
				for n := range r.Value {
					r.Value[n] = byte(random.Uint32())
				}
				rev, err := s.Put(context.Background(), r.Key, r.Value, store.Any)
				if err != nil {
					return err
				}
				r.Revision = rev
				lines <- r
				if i%10 == 9 {
					if err := s.Delete(context.Background(), r.Key, store.Any); err != nil {
						return err
					}
					lines <- record{Key: r.Key}
				}
				if w == 0 && i == 20 {
					if _, err := s.client.Compact(context.Background(), int64(rev)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	err := writers.Wait()
	close(lines)
	if err := errors.Join(err, told.Wait()); err != nil {
		return err
	}
	if err := out.Encode(record{}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// playAppend writes new records, and says of each when it is acknowledged, until it
// is killed.
func playAppend(s *Store) error {
	var writers errgroup.Group
	for w := range 8 {
		writers.Go(func() error {
			for i := 0; ; i++ {
				r := record{Key: fmt.Sprintf("append/%d/%d/%d", os.Getpid(), w, i), Value: []byte(strings.Repeat(fmt.Sprint(i), 50))}
				rev, err := s.Put(context.Background(), r.Key, r.Value, store.Absent)
				if err != nil {
					return err
				}
				r.Revision = rev
				if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
					return err
				}
			}
		})
	}
	return writers.Wait()
}

// playFlood writes until that fails, and says what was acknowledged.
func playFlood(s *Store) error {
	out := json.NewEncoder(os.Stdout)
	for i := 0; ; i++ {
		r := record{Key: fmt.Sprint("flood/", i), Value: bytes.Repeat([]byte{byte(i)}, 32<<10)}
		rev, err := s.Put(context.Background(), r.Key, r.Value, store.Absent)
		if err != nil {
			return errors.Join(err, s.Wait(context.Background()))
		}
		r.Revision = rev
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// record is one that was acknowledged; without a revision it was deleted.
type record struct {
	Key      string
	Value    []byte
	Revision store.Revision
}

var errLostRecord = errors.New("a record is lost")

// playLook compares the store with what was acknowledged, and uses it.
func playLook(s *Store, dir string) error {
	text, err := os.ReadFile(cmp.Or(os.Getenv(childSeen), dir+".acknowledged"))
	if err != nil {
		return err
	}
	var want map[string]record
	if err := json.Unmarshal(text, &want); err != nil {
		return err
	}
	for key, r := range want {
		got, err := s.Get(context.Background(), key)
		switch {
		case nf.KindOf(err) == nf.NotFound && r.Revision == 0:
		case err != nil && nf.KindOf(err) != nf.NotFound:
			return err
		case err != nil || got.Revision != r.Revision || !bytes.Equal(got.Value, r.Value):
			return errors.Join(fmt.Errorf("%w: %s has revision %d, want %d", errLostRecord, key, got.Revision, r.Revision), err)
		}
	}
	if _, err := s.Put(context.Background(), "look", nil, store.Any); err != nil {
		return err
	}
	return s.Delete(context.Background(), "look", store.Any)
}

// child returns the test binary in a part.
func child(t *testing.T, part, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), append(env, childPart+"="+part, childDir+"="+dir)...)
	return cmd
}

// look has a process use the folder, and returns its exit code and what it says.
// It must know the file with what was acknowledged.
func look(t *testing.T, dir string, env ...string) (code int, says string) {
	t.Helper()
	cmd := child(t, "look", dir, env...)
	hangs := time.AfterFunc(hang, func() { _ = cmd.Process.Kill() })
	defer hangs.Stop()
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// fill has a process write into the folder and end: of itself, or by SIGKILL. It
// writes down what was acknowledged.
func fill(t *testing.T, dir string, kill bool) {
	t.Helper()
	cmd := child(t, "fill", dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	acknowledged := read(t, stdout, map[string]record{})
	if kill {
		must(t, cmd.Process.Kill())
	} else {
		must(t, stdin.Close())
	}
	if err := cmd.Wait(); err != nil && !kill {
		t.Fatal(err)
	}
	keep(t, dir, acknowledged)
}

// read adds the records that a process reports, until it ends or reports that it
// is done.
func read(t *testing.T, r io.Reader, to map[string]record) map[string]record {
	t.Helper()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Key == "" {
			break // it was killed, or is done
		}
		to[r.Key] = r
	}
	return to
}

func keep(t *testing.T, dir string, acknowledged map[string]record) {
	t.Helper()
	text, err := json.Marshal(acknowledged)
	must(t, err)
	must(t, os.WriteFile(dir+".acknowledged", text, 0o644))
}

// copied returns a copy of a folder and of what was acknowledged in it.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	must(t, filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	}))
	text, err := os.ReadFile(dir + ".acknowledged")
	must(t, err)
	must(t, os.WriteFile(to+".acknowledged", text, 0o644))
	return to
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// panics returns the first line that no user should see.
func panics(says string) string {
	for line := range strings.Lines(says) {
		for _, word := range []string{"panic", "goroutine ", "fatal error", "runtime error", "SIGBUS", "SIGSEGV"} {
			if strings.Contains(line, word) {
				return line
			}
		}
	}
	return ""
}
