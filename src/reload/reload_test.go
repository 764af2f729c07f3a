package reload_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/reload"
)

// TestValue changes the file of a value, and looks at the value after a second.
func TestValue(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		content string
		want    string
		broken  int64
	}{
		"same":    {"a file that is written again does not change", "first", "first", 0},
		"changed": {"a new version becomes active", "second", "second", 0},
		"invalid": {"an invalid version does not become active", "wrong", "first", 1},
		"empty":   {"an empty file is probably being written", "", "first", 1},
		"large":   {"a file of any size could fill the memory", strings.Repeat("x", 2<<20), "first", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			file := filepath.Join(t.TempDir(), "file")
			write(t, file, "first")
			v, err := reload.New(reload.Config[string]{
				What: "the value", Clock: func() time.Time { return now },
				Load: func(read func(name string) ([]byte, error)) (string, error) {
					content, err := read(file)
					if string(content) == "wrong" {
						err = errors.New("it is wrong")
					}
					return string(content), err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, tc.content)
			if got := v.Current(t.Context()); got != "first" {
				t.Errorf("within a second, the file is not read: %q", got)
			}
			for range 3 { // an invalid version counts once
				now = now.Add(2 * time.Second)
				if got := v.Current(t.Context()); got != tc.want || v.Loaded() != tc.want || v.Broken() != tc.broken {
					t.Errorf("%s: got %.20q, broken %d", tc.reason, got, v.Broken())
				}
			}
		})
	}
}

// TestFirst fails if the first version cannot be loaded.
func TestFirst(t *testing.T) {
	t.Parallel()
	_, err := reload.New(reload.Config[string]{Load: func(read func(name string) ([]byte, error)) (string, error) {
		content, err := read(filepath.Join(t.TempDir(), "missing"))
		return string(content), err
	}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
