package etcd

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
)

// TestDamage damages each file of a data folder in every way, one at a time. The
// next start either has all records that were acknowledged, or ends with one
// sentence that says what is wrong, where, and what to do.
func TestDamage(t *testing.T) {
	templates := map[string]bool{"Closed": false, "Killed": true}
	for name, kill := range templates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := filepath.Join(t.TempDir(), "data")
			fill(t, template, kill)
			if code, says := look(t, copied(t, template)); code != 0 {
				t.Fatalf("an undamaged folder: exit code %d, %s", code, says)
			}
			var cases errgroup.Group
			cases.SetLimit(8) // they wait for elections
			for file, size := range filesOf(t, template) {
				for damage, do := range damages(file, size) {
					cases.Go(func() error {
						t.Run(file+"/"+damage, func(t *testing.T) {
							dir := copied(t, template)
							must(t, do(filepath.Join(dir, file)))
							checkStart(t, dir)
						})
						return nil
					})
				}
			}
			_ = cases.Wait() // returns no error
		})
	}
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

// damages returns what may happen to a file of the size.
func damages(name string, size int64) map[string]func(path string) error {
	all := map[string]func(path string) error{
		"Removed": os.Remove,
		"Emptied": func(path string) error { return os.Truncate(path, 0) },
		"Folder": func(path string) error {
			return firstError(os.Remove(path), os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
		},
		"Zeroed":     func(path string) error { return change(path, 0, make([]byte, size)) },
		"ZeroedPart": func(path string) error { return change(path, size/4, make([]byte, min(4096, size/4))) },
		"Longer": func(path string) error {
			return change(path, size, []byte(strings.Repeat("garbage ", 1000)))
		},
	}
	for _, at := range []int64{1, size / 4, size / 2, size - size/8, size - 1} {
		all[fmt.Sprint("CutAt", at)] = func(path string) error { return os.Truncate(path, at) }
	}
	random := rand.New(rand.NewPCG(2, uint64(len(name))))
	places := []int64{0, 8, 20, size / 2, size - 1}
	for range 8 {
		places = append(places, random.Int64N(max(1, size)))
	}
	if size > 1<<20 { // a database: most of it is not used yet
		for range 40 {
			places = append(places, random.Int64N(512<<10))
		}
	}
	for _, at := range places {
		bit := byte(1) << random.IntN(8)
		all[fmt.Sprintf("Flipped%dAt%d", bit, at)] = func(path string) error { return flip(path, at, bit) }
	}
	return all
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
