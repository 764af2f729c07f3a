package ansible

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folderName is the name pattern of run folders; * is random.
const folderName = "k8splugin-site-*"

// makeFolder creates a folder for a run, and locks it as in use until this
// process ends or closes the file.
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
		// A concurrent sweep may have removed the folder before it was locked.
		if mark != nil {
			_ = mark.Close() // nothing was written
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
}

// sweep removes the folders of runs whose process was killed, because they may
// contain a kubeconfig. It only logs failures: they must not prevent runs.
func (r *Runner) sweep() {
	all, _ := filepath.Glob(filepath.Join(r.cfg.Dir, folderName)) // the pattern is valid
	for _, dir := range all {
		if err := removeForsaken(dir); err != nil {
			r.cfg.Logger.Warn("failed to delete the folder of a killed run", "folder", dir, "error", err)
		}
	}
}

// removeForsaken removes a run's folder of this user unless a process has
// locked it.
func removeForsaken(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return unlessAbsent(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() {
		return nil // another user's, in a shared folder such as /tmp
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
		return fmt.Errorf("cannot check whether it is in use: %w", err)
	}
	return os.RemoveAll(dir)
}

func unlessAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
