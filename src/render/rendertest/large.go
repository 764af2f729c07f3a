package rendertest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
)

// LargeZip returns a zip archive of files, path → content, and of one more file
// of the given size, which cannot be compressed. The reader creates the archive
// while it is read, and holds little of it. The same arguments give the same bytes.
func LargeZip(files map[string]string, large string, size int64) io.Reader {
	p := &packing{content: Noise(size)}
	w := zip.NewWriter(&p.ready)
	add := func(name string) io.Writer {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		must(err)
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, err := io.WriteString(add(name), files[name])
		must(err)
	}
	p.into, p.end = add(large), w.Close
	return p
}

// LargeTarGz does the same for a gzipped tar archive. The large file comes first.
func LargeTarGz(files map[string]string, large string, size int64) io.Reader {
	p := &packing{content: Noise(size)}
	zipped, err := gzip.NewWriterLevel(&p.ready, gzip.NoCompression)
	must(err)
	w := tar.NewWriter(zipped)
	must(w.WriteHeader(&tar.Header{Name: large, Mode: 0o644, Size: size}))
	p.into = w
	p.end = func() error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			must(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
			_, err := io.WriteString(w, files[name])
			must(err)
		}
		must(w.Close())
		return zipped.Close()
	}
	return p
}

// Noise returns a reader of bytes that cannot be compressed, the same each time.
func Noise(size int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), size) }

// packing is an archive that is created while it is read.
type packing struct {
	ready   bytes.Buffer // bytes of the archive that were not read yet
	content io.Reader    // of the large file
	into    io.Writer
	end     func() error // nil: the archive is complete
}

// Read implements io.Reader.
func (p *packing) Read(b []byte) (int, error) {
	for p.ready.Len() == 0 && p.end != nil {
		const step = 64 << 10
		n, err := io.CopyN(p.into, p.content, step)
		if n == step {
			continue
		}
		if err == io.EOF { //nolint:errorlint // the contract of io.CopyN
			err = p.end()
			p.end = nil
		}
		must(err)
	}
	return p.ready.Read(b)
}
