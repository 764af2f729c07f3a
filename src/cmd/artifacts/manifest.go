package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const manifestName = "manifest.sha256"

// writeManifest writes the digests of all files of the folder in the format of
// sha256sum, and returns their number. It omits the manifest, .partial files,
// and folders whose name begins with a dot. A file that is older than the last
// manifest keeps its digest, because the installation verifies it anyway.
func (f folder) writeManifest() (int, error) {
	old, err := f.readManifest()
	if err != nil {
		return 0, err
	}
	var (
		lines strings.Builder
		n     int
	)
	err = filepath.WalkDir(f.dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != f.dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || d.Name() == manifestName || strings.HasSuffix(name, ".partial"):
			return nil
		}
		relative, err := filepath.Rel(f.dir, name)
		if err != nil {
			return err
		}
		sum, err := old.digest(name, filepath.ToSlash(relative))
		if err != nil {
			return err
		}
		n++
		fmt.Fprintf(&lines, "%s  %s\n", sum, filepath.ToSlash(relative))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot read the artefacts: %w", err)
	}
	name := filepath.Join(f.dir, manifestName)
	if err := os.WriteFile(name+".partial", []byte(lines.String()), 0o644); err != nil {
		return 0, fmt.Errorf("cannot write the manifest: %w", err)
	}
	if err := os.Rename(name+".partial", name); err != nil {
		return 0, fmt.Errorf("cannot put the manifest in place: %w", err)
	}
	return n, nil
}

// manifest is an earlier manifest.
type manifest struct {
	at   time.Time
	sums map[string]string
}

func (f folder) readManifest() (manifest, error) {
	m := manifest{sums: map[string]string{}}
	name := filepath.Join(f.dir, manifestName)
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("cannot read the manifest: %w", err)
	}
	stat, err := os.Stat(name)
	if err != nil {
		return m, fmt.Errorf("cannot read the manifest: %w", err)
	}
	m.at = stat.ModTime()
	for line := range strings.Lines(string(content)) {
		if sum, path, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  "); ok && len(sum) == hex.EncodedLen(sha256.Size) {
			m.sums[path] = sum
		}
	}
	return m, nil
}

func (m manifest) digest(name, relative string) (string, error) {
	stat, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if sum, ok := m.sums[relative]; ok && stat.ModTime().Before(m.at) {
		return sum, nil
	}
	return sha256sum(name)
}

func sha256sum(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
