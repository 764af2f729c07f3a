package seal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/kms"
	"github.com/multicloud-k8s/k8splugin/src/store/kms/kmstest"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// followed is an encrypted file that is followed, and its next version.
type followed struct {
	kmstest.Service

	now        clock
	path, next string
	keys       *seal.File
	before     string // the primary key
}

func follow(t *testing.T) *followed {
	t.Helper()
	dir := t.TempDir()
	f := &followed{Service: kmstest.Start(t), path: filepath.Join(dir, "keys"), next: filepath.Join(dir, "next")}
	service := protector(t, f.Service)
	ring := generate(t)
	must(t, ring.Save(t.Context(), f.path, service))
	rotated, err := ring.Rotate()
	must(t, err)
	must(t, rotated.Save(t.Context(), f.next, service))
	f.keys, err = seal.Follow(t.Context(), f.path, service, f.now.time)
	must(t, err)
	f.before = primary(t, f.keys)
	f.Plugin.Journal()
	return f
}

// wantCalls fails unless the service got a number of requests since the last call.
func (f *followed) wantCalls(t *testing.T, reason string, want int) {
	t.Helper()
	if got := f.Plugin.Journal(); len(got) != want {
		t.Errorf("%s: the service got %v, want %d requests", reason, got, want)
	}
}

// TestFollowWithoutService has the service go away while its keys are in use.
func TestFollowWithoutService(t *testing.T) {
	f := follow(t)
	raw := memory.New()
	kv := seal.New(raw, f.keys)
	f.Plugin.Fail(simulator.Fault{Code: codes.Unavailable}, -1)

	must(t, os.Chtimes(f.path, time.Unix(1, 0), time.Unix(1, 0)))
	f.now.pass(time.Second)
	put(t, kv, "a", "value")
	put(t, seal.New(raw, generate(t)), "strange", "value")
	_, err := kv.Get(t.Context(), "strange")
	wantKind(t, "a key that is not in the file", err, nf.Unreachable)
	must(t, f.keys.Healthy(t.Context()))
	f.wantCalls(t, "the service is not needed while the content of the file is the same", 0)

	must(t, os.Rename(f.next, f.path))
	f.now.pass(time.Second)
	put(t, kv, "a", "other")
	if got := get(t, kv, "a"); got != "other" || primary(t, f.keys) != f.before {
		t.Errorf("the keys that were read before do not work: %q", got)
	}
	f.wantCalls(t, "the new content needs the service", 1)
	err = f.keys.Healthy(t.Context())
	wantKind(t, "the operator is told", err, nf.Unreachable)
	if nf.ReasonOf(err) != nf.ReasonKMS {
		t.Errorf("the reason is %q: %v", nf.ReasonOf(err), err)
	}
	for range 28 {
		f.now.pass(time.Second)
		put(t, kv, "a", "value")
	}
	f.wantCalls(t, "the service is not asked each second", 0)
	f.Plugin.Recover()
	f.now.pass(2 * time.Second)
	must(t, f.keys.Healthy(t.Context()))
	if primary(t, f.keys) == f.before {
		t.Error("after 30 seconds, the new key is not used")
	}
}

// TestFollowAnotherContent does not wait with content that has not failed.
func TestFollowAnotherContent(t *testing.T) {
	f := follow(t)
	good, err := os.ReadFile(f.next)
	must(t, err)
	must(t, os.WriteFile(f.path, []byte("damaged"), 0o600))
	f.now.pass(time.Second)
	err = f.keys.Healthy(t.Context())
	if nf.ReasonOf(err) != nf.ReasonKey {
		t.Errorf("the file is damaged, and the error is %v, reason %q", err, nf.ReasonOf(err))
	}
	must(t, os.WriteFile(f.path, good, 0o600))
	f.now.pass(time.Second)
	must(t, f.keys.Healthy(t.Context()))
	if primary(t, f.keys) == f.before {
		t.Error("the new key is not used")
	}
}

// TestFollowSlowService has one caller wait for the service, and not the others.
func TestFollowSlowService(t *testing.T) {
	f := follow(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	f.Plugin.Fail(simulator.Fault{Method: "Decrypt", Before: func() { close(asked); <-answer }}, 0)
	must(t, os.Rename(f.next, f.path))
	f.now.pass(time.Second)
	done := make(chan string)
	go func() {
		kek, err := f.keys.Primary(t.Context())
		if err != nil {
			close(done)
			return
		}
		done <- kek.ID()
	}()
	<-asked
	f.now.pass(time.Minute)
	if got := primary(t, f.keys); got != f.before {
		t.Errorf("while the service decrypts the file, the primary key is %s, want %s", got, f.before)
	}
	must(t, f.keys.Healthy(t.Context()))
	close(answer)
	if after := <-done; after == f.before || after != primary(t, f.keys) {
		t.Errorf("the caller that has waited got key %q", after)
	}
	f.wantCalls(t, "one caller asks", 2)
}
