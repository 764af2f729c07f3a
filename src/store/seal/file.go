package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Load returns the keyring in a file: nf.NotFound when there is no file, and
// nf.Invalid when it holds no keyring, cannot be read, or can be read by
// others. Its group may read it, because that is how secrets are mounted into
// pods.
func Load(path string) (*Keyring, error) {
	k, _, err := load(path)
	return k, err
}

// load returns the state of the file that it read, too.
func load(path string) (*Keyring, fs.FileInfo, error) {
	text, stat, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	k, err := parseKeyring(text)
	if err != nil {
		return nil, nil, nf.E(nf.Invalid, "read", keyFile(path), err)
	}
	k.origin = text
	return k, stat, nil
}

func read(path string) (nf.Secret, fs.FileInfo, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nf.E(nf.NotFound, "read", keyFile(path), nil)
	}
	if err != nil {
		return nil, nil, nf.E(nf.Invalid, "read", keyFile(path), err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	stat, err := f.Stat()
	if err == nil {
		err = private(stat)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxText+1))
	}
	if err != nil {
		return nil, nil, nf.E(nf.Invalid, "read", keyFile(path), err)
	}
	return text, stat, nil
}

// private refuses a file that others than its owner and group can read, or
// others than its owner change.
func private(stat fs.FileInfo) error {
	const open = 0o037
	if !stat.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if mode := stat.Mode().Perm(); mode&open != 0 {
		return fmt.Errorf("its mode is %04o, so others can use it: make it 0600", mode)
	}
	return nil
}

// Save writes the keyring into the file that it was loaded from, or into a new
// one, which only the owner can read. Whoever reads the file meanwhile sees it
// as it was or as it will be. Nothing is written when there is a file that the
// keyring does not come from (nf.Exists), when it has changed since it was
// loaded (nf.Conflict), or while another process saves (nf.Conflict): no KEK
// gets lost that somebody may have sealed by. A temporary file that a killed process
// left behind is overwritten.
func (k *Keyring) Save(path string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	next := path + ".new"
	f, err := lockNext(next)
	if err != nil {
		return nf.E(nf.KindOf(err), "save", keyFile(path), err)
	}
	err = k.unchanged(path)
	if err == nil {
		err = fill(f, k.text)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(failSave(path, err), os.Remove(next), f.Close())
	}
	return failSave(path, errors.Join(f.Close(), syncDir(filepath.Dir(path))))
}

// lockNext opens the temporary file that will replace the key file, and locks it until
// it is closed. It does not touch a file that another process has just renamed.
func lockNext(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nf.E(nf.Invalid, "open", path, err)
	}
	busy := nf.E(nf.Conflict, "lock", path, errors.New("another process is saving"))
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(busy, f.Close())
	}
	if err != nil {
		return nil, nf.E(nf.Invalid, "lock", path, errors.Join(err, f.Close()))
	}
	mine, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(path); err != nil || !os.SameFile(mine, there) {
			return nil, errors.Join(busy, f.Close())
		}
		err = errors.Join(f.Truncate(0), f.Chmod(0o600))
	}
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", path, errors.Join(err, f.Close()))
	}
	return f, nil
}

func failSave(path string, err error) error {
	if err == nil || nf.KindOf(err) != nf.Internal {
		return err
	}
	return fmt.Errorf("cannot save %s: %w", keyFile(path), err)
}

// unchanged refuses to overwrite what the keyring does not come from.
func (k *Keyring) unchanged(path string) error {
	text, _, err := read(path)
	switch {
	case nf.KindOf(err) == nf.NotFound && k.origin == nil:
		return nil
	case nf.KindOf(err) == nf.NotFound:
		return nf.E(nf.Conflict, "save", keyFile(path), errors.New("it is gone since it was loaded"))
	case err != nil:
		return err
	case k.origin == nil:
		return nf.E(nf.Exists, "save", keyFile(path), nil)
	case !bytes.Equal(text, k.origin):
		return nf.E(nf.Conflict, "save", keyFile(path), errors.New("it has changed since it was loaded"))
	}
	return nil
}

func fill(f *os.File, text []byte) error {
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// freshFor is how long a File goes without asking whether the file has changed.
const freshFor = time.Second

// File is the keyring in a file, whatever it is at the time: Primary looks for
// a change once a second at most, and Find when it does not know an id. When
// the file cannot be used any more, those KEKs stay that were read last, and
// Healthy says so.
type File struct {
	path  string
	clock func() time.Time

	mu      sync.Mutex // not held while the file is read
	ring    *Keyring
	stat    fs.FileInfo // of the file that ring was read from
	checked time.Time   // when the file was last looked at
	trouble error       // why it could not be used then
}

var _ Keys = (*File)(nil)

// Follow returns the keyring in a file, with the errors of Load. The clock is
// time.Now when it is nil.
func Follow(path string, clock func() time.Time) (*File, error) {
	if clock == nil {
		clock = time.Now
	}
	ring, stat, err := load(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, clock: clock, ring: ring, stat: stat, checked: clock()}, nil
}

// Primary implements Keys.
func (f *File) Primary(ctx context.Context) (KEK, error) {
	ring, _ := f.fresh()
	return ring.Primary(ctx)
}

// Find implements Keys.
func (f *File) Find(ctx context.Context, id string) (KEK, error) {
	found, err := f.present().Find(ctx, id)
	if nf.KindOf(err) != nf.NotFound {
		return found, err
	}
	f.reload()
	found, err = f.present().Find(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return nil, nf.E(nf.NotFound, "find", "sealing key "+strconv.Quote(id), f.why())
	}
	return found, err
}

// Healthy returns nf.Unreachable with the reason "key" when the file cannot be
// used: the process goes on with the KEKs that it has read before, but the next
// one would not.
func (f *File) Healthy(context.Context) error {
	if _, trouble := f.fresh(); trouble != nil {
		return &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "the sealing keys", Reason: reasonKey, Err: trouble}
	}
	return nil
}

// fresh returns the keyring after looking for a change, when it is time to.
func (f *File) fresh() (*Keyring, error) {
	if f.due() {
		stat, err := os.Stat(f.path)
		if err != nil || !f.same(stat) {
			f.reload()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring, f.trouble
}

// due reports whether to look at the file, to one caller at a time.
func (f *File) due() bool {
	now := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.checked) < freshFor {
		return false
	}
	f.checked = now
	return true
}

// same reports whether the file is still what was read.
func (f *File) same(stat fs.FileInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trouble == nil && os.SameFile(stat, f.stat) && stat.Mode() == f.stat.Mode() &&
		stat.Size() == f.stat.Size() && stat.ModTime().Equal(f.stat.ModTime())
}

func (f *File) reload() {
	ring, stat, err := load(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trouble = err; err == nil {
		f.ring, f.stat = ring, stat
	}
}

func (f *File) present() *Keyring {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring
}

func (f *File) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trouble
}

func keyFile(path string) string { return "key file " + strconv.Quote(path) }
