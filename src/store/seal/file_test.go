package seal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

func TestSave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys")
	first := generate(t)
	must(t, first.Save(t.Context(), path, nil))
	wantKind(t, "a new keyring does not overwrite one", generate(t).Save(t.Context(), path, nil), nf.Exists)
	loaded, err := seal.Load(t.Context(), path, nil)
	must(t, err)
	wantIDs(t, "what was saved is loaded", first.IDs(), loaded.IDs())

	one, err := loaded.Rotate()
	must(t, err)
	other, err := loaded.Rotate()
	must(t, err)
	must(t, one.Save(t.Context(), path, nil))
	wantKind(t, "of two who rotate at once, one keeps the other's key", other.Save(t.Context(), path, nil), nf.Conflict)
	loaded, err = seal.Load(t.Context(), path, nil)
	must(t, err)
	wantIDs(t, "who came first is there", one.IDs(), loaded.IDs())
	stat, err := os.Stat(path)
	must(t, err)
	if stat.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %o, want 600", stat.Mode().Perm())
	}

	saving, err := os.Create(path + ".new")
	must(t, err)
	must(t, syscall.Flock(int(saving.Fd()), syscall.LOCK_EX))
	wantKind(t, "another process saves at the same time", loaded.Save(t.Context(), path, nil), nf.Conflict)
	_, err = saving.WriteString("left behind")
	must(t, err)
	must(t, saving.Close())
	must(t, loaded.Save(t.Context(), path, nil))
	loaded, err = seal.Load(t.Context(), path, nil)
	must(t, err)
	wantIDs(t, "what a killed process left behind is not in the way", one.IDs(), loaded.IDs())
	must(t, os.Remove(path))
	wantKind(t, "a file that is gone is not made again behind somebody's back", loaded.Save(t.Context(), path, nil), nf.Conflict)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("saves that failed left %v, error %v", left, err)
	}
	if err := first.Save(t.Context(), filepath.Join(dir, "none", "keys"), nil); err == nil {
		t.Error("a keyring was saved into a folder that is not there")
	}
}

// TestSaveRace has many rotate at once: every process that succeeded finds its key.
func TestSaveRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	must(t, generate(t).Save(t.Context(), path, nil))
	var saved [8]string
	var all errgroup.Group
	for i := range saved {
		all.Go(func() error {
			k, err := seal.Load(t.Context(), path, nil)
			if err != nil {
				return err
			}
			k, id, err := k.Add()
			if err != nil {
				return err
			}
			err = k.Save(t.Context(), path, nil)
			if err == nil {
				saved[i] = id
			} else if nf.KindOf(err) != nf.Conflict {
				return err
			}
			return nil
		})
	}
	must(t, all.Wait())
	k, err := seal.Load(t.Context(), path, nil)
	must(t, err)
	won := 0
	for _, id := range saved {
		if id == "" {
			continue
		}
		won++
		if !slices.Contains(k.IDs(), id) {
			t.Errorf("key %s was saved and is lost: there are %v", id, k.IDs())
		}
	}
	if won == 0 || len(k.IDs()) != won+1 {
		t.Errorf("%d were saved, and the file has %v", won, k.IDs())
	}
}

func TestSaveThroughLink(t *testing.T) {
	dir := t.TempDir()
	must(t, generate(t).Save(t.Context(), filepath.Join(dir, "real"), nil))
	link := filepath.Join(dir, "link")
	must(t, os.Symlink("real", link))
	k, err := seal.Load(t.Context(), link, nil)
	must(t, err)
	k, err = k.Rotate()
	must(t, err)
	must(t, k.Save(t.Context(), link, nil))
	stat, err := os.Lstat(link)
	must(t, err)
	if stat.Mode()&fs.ModeSymlink == 0 {
		t.Error("the keys were put in the place of a link to them")
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		must(t, os.Chmod(path, mode))
		return path
	}
	cases := map[string]struct {
		reason string
		path   string
		kind   nf.Kind // Internal: it is loaded
	}{
		"Owner":      {"the owner's file", file("0600", goldenKeyring, 0o600), nf.Internal},
		"ReadOnly":   {"who reads need not write", file("0400", goldenKeyring, 0o400), nf.Internal},
		"Pod":        {"a secret that is mounted into a pod", file("0440", goldenKeyring, 0o440), nf.Internal},
		"World":      {"everybody can read it", file("0644", goldenKeyring, 0o644), nf.Invalid},
		"WorldWrite": {"everybody can write it", file("0602", goldenKeyring, 0o602), nf.Invalid},
		"GroupWrite": {"others can put their keys into it", file("0660", goldenKeyring, 0o660), nf.Invalid},
		"Missing":    {"there is no file", filepath.Join(dir, "none"), nf.NotFound},
		"Folder":     {"a folder is no file", dir, nf.Invalid},
		"Empty":      {"nothing is no keyring", file("empty", "", 0o600), nf.Invalid},
		"Long":       {"there is an end to it", file("long", strings.Repeat(" ", 1<<20)+goldenKeyring, 0o600), nf.Invalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, loadErr := seal.Load(t.Context(), c.path, nil)
			_, followErr := seal.Follow(t.Context(), c.path, nil, nil)
			for _, err := range []error{loadErr, followErr} {
				if c.kind == nf.Internal {
					if err != nil {
						t.Errorf("%s: %v", c.reason, err)
					}
					continue
				}
				wantKind(t, c.reason, err, c.kind)
				if err != nil && !strings.Contains(err.Error(), c.path) {
					t.Errorf("%s: the error does not name the file: %v", c.reason, err)
				}
			}
		})
	}
}

// clock is moved by hand.
type clock struct{ now atomic.Int64 }

func (c *clock) time() time.Time { return time.Unix(0, c.now.Load()) }

func (c *clock) pass(d time.Duration) { c.now.Add(int64(d)) }

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	must(t, generate(t).Save(t.Context(), path, nil))
	var now clock
	mine, err := seal.Follow(t.Context(), path, nil, now.time)
	must(t, err)
	theirs, err := seal.Follow(t.Context(), path, nil, now.time)
	must(t, err)
	before := primary(t, mine)

	rotate(t, path)
	if got := primary(t, mine); got != before {
		t.Errorf("within a second the file is not looked at again, but the key is %s and was %s", got, before)
	}
	now.pass(time.Second)
	after := primary(t, mine)
	if after == before {
		t.Error("a second later the new key is not known")
	}
	raw := memory.New()
	put(t, seal.New(raw, mine), "a", "value")
	now.pass(-time.Second) // theirs has no reason to look, but an id that it does not know
	if got := get(t, seal.New(raw, theirs), "a"); got != "value" {
		t.Errorf("what another replica sealed by a new key is %q", got)
	}
	if got := primary(t, theirs); got != after {
		t.Errorf("who found the new key has primary %s, want %s", got, after)
	}
}

func TestFollowThroughTrouble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	must(t, generate(t).Save(t.Context(), path, nil))
	good, err := os.ReadFile(path)
	must(t, err)
	var now clock
	keys, err := seal.Follow(t.Context(), path, nil, now.time)
	must(t, err)
	raw := memory.New()
	kv := seal.New(raw, keys)
	put(t, kv, "a", "value")
	put(t, seal.New(raw, generate(t)), "strange", "value")
	must(t, keys.Healthy(t.Context()))
	cases := map[string]func(){
		"half a file":     func() { must(t, os.WriteFile(path, good[:len(good)/2], 0o600)) },
		"open to others":  func() { must(t, os.Chmod(path, 0o644)) },
		"no file":         func() { must(t, os.Remove(path)) },
		"a folder":        func() { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) },
		"something worse": func() { must(t, os.WriteFile(path, []byte("x"), 0o600)) },
	}
	for name, spoil := range cases {
		spoil()
		now.pass(time.Second)
		put(t, kv, "a", name)
		if got := get(t, kv, "a"); got != name {
			t.Errorf("%s: the keys that were read before do not work: %q", name, got)
		}
		err := keys.Healthy(t.Context())
		wantKind(t, name+": somebody is told", err, nf.Unreachable)
		_, err = kv.Get(t.Context(), "strange")
		wantKind(t, name+": a key that is not there may be in the file", err, nf.Unreachable)
		if nf.ReasonOf(err) != nf.ReasonKey || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v, reason %q, want one that names the file", name, err, nf.ReasonOf(err))
		}
		must(t, os.RemoveAll(path))
		must(t, os.WriteFile(path, good, 0o600))
		now.pass(time.Second)
		if err := keys.Healthy(t.Context()); err != nil {
			t.Errorf("%s: it is over, but %v", name, err)
		}
	}
}

func primary(t testing.TB, keys seal.Keys) string {
	t.Helper()
	kek, err := keys.Primary(t.Context())
	must(t, err)
	return kek.ID()
}

// rotate has the file rotated, as a separate program does it.
func rotate(t testing.TB, path string) {
	t.Helper()
	k, err := seal.Load(t.Context(), path, nil)
	must(t, err)
	k, err = k.Rotate()
	must(t, err)
	must(t, k.Save(t.Context(), path, nil))
}
