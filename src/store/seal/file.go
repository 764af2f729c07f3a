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
	"syscall"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Load returns the keyring in a file, which the service encrypts. A nil service
// means that the file is plaintext. Load returns nf.NotFound if there is no file. It
// returns nf.Invalid if the file contains no keyring, is not encrypted in this way,
// cannot be read, or is readable by others. It returns nf.Unreachable if the service
// does not respond. The group may read the file, because that is how secrets are
// mounted into pods.
func Load(ctx context.Context, path string, service KeyService) (*Keyring, error) {
	k, _, err := load(ctx, path, service)
	return k, err
}

// load also returns the state of the file that it read.
func load(ctx context.Context, path string, service KeyService) (*Keyring, fs.FileInfo, error) {
	content, stat, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	k, err := parseFile(ctx, content, service)
	if err != nil {
		return nil, nil, failRead(keyFile(path), err)
	}
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
	var content []byte
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return nil, nil, nf.E(nf.Invalid, "read", keyFile(path), err)
	}
	return content, stat, nil
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
// file that only the owner can read. The service encrypts it; a nil service means
// plaintext. The file is replaced atomically.
//
// Save never overwrites a KEK that may have encrypted values. It returns
// nf.Exists if the keyring was not loaded from the existing file. It returns
// nf.Conflict if the file has changed since it was loaded, or another process
// is saving, and nf.Unreachable if the service does not respond. It overwrites a
// temporary file that a killed process left behind.
func (k *Keyring) Save(ctx context.Context, path string, service KeyService) error {
	content := []byte(k.text)
	if service != nil {
		var err error
		if content, err = encryptText(ctx, content, service); err != nil {
			return nf.E(nf.KindOf(err), "save", keyFile(path), err)
		}
	}
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
		err = fill(f, content)
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
	content, _, err := read(path)
	switch {
	case nf.KindOf(err) == nf.NotFound && k.origin.content == nil:
		return nil
	case nf.KindOf(err) == nf.NotFound:
		return nf.E(nf.Conflict, "save", keyFile(path), errors.New("it was deleted after it was loaded"))
	case err != nil:
		return err
	case k.origin.content == nil:
		return nf.E(nf.Exists, "save", keyFile(path), nil)
	case !bytes.Equal(content, k.origin.content):
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

func keyFile(path string) string { return "key file " + strconv.Quote(path) }
