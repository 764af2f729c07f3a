package etcd

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// filesOf returns the files of a folder with their sizes.
func filesOf(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	files := map[string]int64{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		stat, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name] = stat.Size()
		return err
	}))
	if len(files) < 7 || files["member/snap/db"] < 64<<10 {
		t.Fatalf("these are not all files of a data folder, or they are too small: %v", files)
	}
	return files
}

// checkStart starts a process on a damaged folder, and another if that is refused.
func checkStart(t *testing.T, dir string, env ...string) {
	t.Helper()
	code := exitRefused
	for range 2 { // a start that is refused does not make it worse
		if code != exitRefused {
			return
		}
		var says string
		code, says = look(t, dir, env...)
		if line := panics(says); line != "" {
			t.Errorf("it says what no user should read: %s", line)
		}
		refused := strings.Contains(says, "error: cannot use data folder "+strconv.Quote(dir)+": ") && strings.Count(says, "error: ") == 1
		if code != 0 && (code != exitRefused || !refused) {
			t.Errorf("exit code %d, %s", code, says)
		}
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func change(path string, at int64, to []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(to, at)
	return firstError(err, f.Close())
}

func flip(path string, at int64, bits byte) error {
	content, err := os.ReadFile(path)
	if err != nil || at >= int64(len(content)) {
		return err
	}
	return change(path, at, []byte{content[at] ^ bits})
}

// TestUnreadable has files and folders that the process may not read or write.
func TestUnreadable(t *testing.T) {
	const nobody = 65534
	template := filepath.Join(t.TempDir(), "data")
	fill(t, template, true)
	paths := []string{"", "member", "member/snap", "member/wal"}
	for file := range filesOf(t, template) {
		paths = append(paths, file)
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, template)
			must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				return firstError(err, os.Chown(path, nobody, nobody))
			}))
			if path == "" {
				must(t, os.Chown(dir, 0, 0)) // its owner could make it readable
			}
			must(t, os.Chmod(filepath.Join(dir, path), 0))
			checkStart(t, dir, childUser+"="+strconv.Itoa(nobody))
		})
	}
}

// TestVersion has files of a version that this program does not know.
func TestVersion(t *testing.T) {
	for name, kill := range map[string]bool{"Closed": false, "Killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			fill(t, dir, kill)
			db, err := bolt.Open(layout{dir}.database(), 0o600, nil)
			must(t, err)
			must(t, db.Update(func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("storageVersion"), []byte("9.9.0"))
			}))
			must(t, db.Close())
			if code, says := look(t, dir); code != exitRefused || panics(says) != "" {
				t.Errorf("exit code %d, %s", code, says)
			}
		})
	}
}
