package rendertest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Zip returns a zip archive of files, path → content. The same files give the
// same bytes.
func Zip(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		must(err)
		_, err = f.Write([]byte(files[name]))
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// TarGz returns a gzipped tar archive of files, path → content. The same files
// give the same bytes.
func TarGz(files map[string]string) []byte {
	headers := make([]tar.Header, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		headers = append(headers, tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0)})
	}
	return Tar(headers, files)
}

// Tar returns a gzipped tar archive of arbitrary entries. Those with a size get
// the content of their name.
func Tar(headers []tar.Header, contents map[string]string) []byte {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for i := range headers {
		must(w.WriteHeader(&headers[i]))
		if headers[i].Size > 0 {
			_, err := w.Write([]byte(contents[headers[i].Name]))
			must(err)
		}
	}
	must(w.Close())
	must(zipped.Close())
	return b.Bytes()
}

// must panics if a test's own archive cannot be created. Writing to memory
// fails only because of a mistake in the test.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("rendertest: %v", err))
	}
}
