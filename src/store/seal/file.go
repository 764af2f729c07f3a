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

// Load returns the keyring in a file. It returns nf.NotFound if there is no
// file. It returns nf.Invalid if the file contains no keyring, cannot be read,
// or is readable by others. The group may read it, because that is how secrets
// are mounted into pods.
func Load(path string) (*Keyring, error) {
	k, _, err := load(path)
	return k, err
}

// load also returns the state of the file that it read.
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

// private returns an error if users other than the owner and the group can read
// the file, or users other than the owner can change it.
func private(stat fs.FileInfo) error {
	const open = 0o037
	if !stat.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if mode := stat.Mode().Perm(); mode&open != 0 {
		return fmt.Errorf("its mode is %04o, so other users can access it; set mode 0600", mode)
	}
	return nil
}

// Save writes the keyring into the file that it was loaded from, or into a new
// file that only the owner can read. The file is replaced atomically.
//
// Save never overwrites a KEK that may have encrypted values. It returns
// nf.Exists if the keyring was not loaded from the existing file. It returns
// nf.Conflict if the file has changed since it was loaded, or another process
// is saving. It overwrites a temporary file that a killed process left behind.
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

// unchanged returns an error unless the file has the content that the keyring
// was loaded from, or is missing and the keyring is new.
func (k *Keyring) unchanged(path string) error {
	text, _, err := read(path)
	switch {
	case nf.KindOf(err) == nf.NotFound && k.origin == nil:
		return nil
	case nf.KindOf(err) == nf.NotFound:
		return nf.E(nf.Conflict, "save", keyFile(path), errors.New("it was deleted after it was loaded"))
	case err != nil:
		return err
	case k.origin == nil:
		return nf.E(nf.Exists, "save", keyFile(path), nil)
	case !bytes.Equal(text, k.origin):
		return nf.E(nf.Conflict, "save", keyFile(path), errors.New("it was changed after it was loaded"))
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

// freshFor is the minimum time between two checks of the file for changes.
const freshFor = time.Second

// File is the current keyring in a file. Primary checks the file for a change,
// at most once a second, and Find if it does not know an id. If the file
// becomes unusable, File keeps the KEKs that were read last, and Healthy
// returns the error.
type File struct {
	path  string
	clock func() time.Time

	mu        sync.Mutex // not held while the file is read
	ring      *Keyring
	stat      fs.FileInfo // of the file that ring was read from
	checked   time.Time   // when the file was last checked
	readError error       // why it could not be used then
}

var _ Keys = (*File)(nil)

// Follow returns the keyring in a file, with the errors of Load. A nil clock
// means time.Now.
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
		return nil, nf.E(nf.NotFound, "find", "encryption key "+strconv.Quote(id), f.why())
	}
	return found, err
}

// Healthy returns nf.Unreachable with the reason ReasonKey if the file cannot be
// used. The process continues with the KEKs that it has read before, but a
// restarted one could not.
func (f *File) Healthy(context.Context) error {
	if _, trouble := f.fresh(); trouble != nil {
		return &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "the encryption keys", Reason: nf.ReasonKey, Err: trouble}
	}
	return nil
}

// fresh checks the file for a change, if a check is due, and returns the
// keyring.
func (f *File) fresh() (*Keyring, error) {
	if f.due() {
		stat, err := os.Stat(f.path)
		if err != nil || !f.same(stat) {
			f.reload()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring, f.readError
}

// due reports whether a check is due, to one caller at a time.
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

// same reports whether the file is unchanged since it was read.
func (f *File) same(stat fs.FileInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readError == nil && os.SameFile(stat, f.stat) && stat.Mode() == f.stat.Mode() &&
		stat.Size() == f.stat.Size() && stat.ModTime().Equal(f.stat.ModTime())
}

func (f *File) reload() {
	ring, stat, err := load(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readError = err; err == nil {
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
	return f.readError
}

func keyFile(path string) string { return "key file " + strconv.Quote(path) }
