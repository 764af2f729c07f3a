package ansible

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folderName is how the folders of runs are called; what stands for * is random.
const folderName = "k8splugin-site-*"

// makeFolder makes a folder for a run, and marks it as ours for as long as this
// process lives and keeps the file open.
func makeFolder(parent string) (dir string, mark *os.File, err error) {
	for {
		if dir, err = os.MkdirTemp(parent, folderName); err != nil { // with mode 0700
			return "", nil, err
		}
		mark, err = os.Open(dir)
		if err == nil {
			err = syscall.Flock(int(mark.Fd()), syscall.LOCK_EX)
		}
		if err == nil && exists(dir) {
			return dir, mark, nil
		}
		// Whoever sweeps may have come before the mark.
		if mark != nil {
			_ = mark.Close() // it was only a mark
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
}

// sweep removes the folders of runs whose process was killed: a kubeconfig may
// be in them. That it cannot is no reason not to run anything.
func (r *Runner) sweep() {
	all, _ := filepath.Glob(filepath.Join(r.cfg.Dir, folderName)) // the pattern is sound
	for _, dir := range all {
		if err := removeForsaken(dir); err != nil {
			r.cfg.Logger.Warn("the folder of a run that was killed is left", "folder", dir, "error", err)
		}
	}
}

// removeForsaken removes a folder of our own unless a process has it.
func removeForsaken(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return unlessAbsent(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() {
		return nil // somebody else's, in a folder that is everybody's
	}
	mark, err := os.Open(dir)
	if err != nil {
		return unlessAbsent(err)
	}
	defer func() { _ = mark.Close() }() // nothing was written
	switch err := syscall.Flock(int(mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil
	case err != nil:
		return fmt.Errorf("cannot see whether it is in use: %w", err)
	}
	return os.RemoveAll(dir)
}

func unlessAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
