//go:build !race

package etcd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// The test of this file starts hundreds of processes. With the race detector it takes many
// times as long, and the detector sees the same code in other tests.

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
