package cli

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// pack packs a folder into a zip archive. The same files give the same bytes.
// It omits files and folders whose name begins with a dot, and those that a
// chart's .helmignore names. It rejects links and anything else that is not a
// regular file.
func pack(folder string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder: %w", err)
	}
	defer root.Close()
	ignored, err := readIgnored(root)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("cannot read the folder: %w", err)
		case path != "." && (strings.HasPrefix(e.Name(), ".") || ignored.match(path, e.IsDir())):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return fmt.Errorf("cannot pack %s: it is not a regular file", path)
		}
		return packFile(z, root, path)
	})
	if err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack the folder: %w", err)
	}
	return out.Bytes(), nil
}

func packFile(z *zip.Writer, root *os.Root, path string) error {
	content, err := root.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the folder: %w", err)
	}
	// No time and no mode, because they differ between checkouts of the same
	// files.
	to, err := z.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Deflate})
	if err == nil {
		_, err = to.Write(content)
	}
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", path, err)
	}
	return nil
}

// mediaType returns an archive's media type, from its first bytes, and the file
// extension.
func mediaType(head []byte) (media, extension string) {
	switch {
	case bytes.HasPrefix(head, []byte("PK")):
		return "application/zip", ".zip"
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "application/gzip", ".tar.gz"
	}
	return "application/octet-stream", ".bin"
}
