package render

import (
	"archive/zip"
	"errors"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Zip opens the files of a zip one by one, so that each can be read as a stream. It is
// safe for concurrent use if its archive is.
type Zip struct {
	files map[string]*zip.File
}

// OpenZip reads the directory of a zip that Open has accepted. It returns nf.Invalid for
// another archive, such as a tar, and nf.TooLarge if a limit is exceeded.
func OpenZip(archive io.ReaderAt, size int64, l Limits) (Zip, error) {
	r, err := readZip(archive, size, l)
	if err != nil {
		return Zip{}, err
	}
	z := Zip{make(map[string]*zip.File, len(r.File))}
	for _, f := range r.File {
		if name, fault := cleanName(f.Name); fault == "" && f.Mode().IsRegular() {
			z.files[name] = f
		}
	}
	return z, nil
}

// Open returns the content of a file and its size in bytes, or nf.NotFound. If the
// content does not match its checksum, its end is an error: nf.Invalid, with the name.
func (z Zip) Open(name string) (io.ReadCloser, int64, error) {
	f, found := z.files[name]
	if !found {
		return nil, 0, nf.E(nf.NotFound, "find", "the file in the archive", nil)
	}
	content, err := f.Open()
	if err != nil {
		return nil, 0, broken(name, err)
	}
	return zipContent{content, name}, int64(f.UncompressedSize64), nil //nolint:gosec // Open has read the file to its end
}

// zipContent assigns kinds to the errors of a file in a zip.
type zipContent struct {
	from io.ReadCloser
	name string
}

// Read implements io.Reader.
func (c zipContent) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = broken(c.name, err)
	}
	return n, err // callers compare with io.EOF
}

// Close implements io.Closer.
func (c zipContent) Close() error { return c.from.Close() }
