package render_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestArchivePackers reads the same files as different programs pack them.
func TestArchivePackers(t *testing.T) {
	t.Parallel()
	const manifest, values = "version: v1\n", "a: 1\n"
	want := render.Files{"manifest.yaml": []byte(manifest), "conf/values.yaml": []byte(values)}
	files := map[string]string{"manifest.yaml": manifest, "conf/values.yaml": values, "./manifest.yaml": manifest, "./conf/values.yaml": values}
	file := func(name string, kind byte) []byte { return block(t, kind, name, padded(files[name])) }
	end := make([]byte, 1024)
	tarred := func(blocks ...[]byte) []byte { return gzipOf(t, bytes.Join(append(blocks, end), nil)) }
	plain := [][]byte{file("manifest.yaml", tar.TypeReg), file("conf/values.yaml", tar.TypeReg)}
	root := func(name string, kind byte) []byte {
		return tarred(block(t, kind, name, nil), plain[0], plain[1])
	}
	gzipped := tarred(plain...)
	half := len(uncompressed(t, gzipped)) / 2
	cases := map[string]struct {
		reason  string
		archive []byte
	}{
		"cds":        {"Apache Commons Compress reduces CDS's root folder / to a file without a name", root("", tar.TypeReg)},
		"cds zip":    {"in a zip the same folder is called /", zipped(t, "/", "", "manifest.yaml", manifest, "conf/", "", "conf/values.yaml", values)},
		"dot file":   {"a root folder may be written as a file", root(".", tar.TypeReg)},
		"dot slash":  {"GNU tar writes the root folder as ./", root("./", tar.TypeDir)},
		"no name":    {"a root folder may have no name", root("", tar.TypeDir)},
		"slash":      {"a root folder may be written as /", root("/", tar.TypeDir)},
		"old type":   {"programs from before POSIX mark files with a zero byte", tarred(file("manifest.yaml", 0), file("conf/values.yaml", 0))},
		"zip root":   {"a root folder in a zip may be written as ./", zipped(t, "./", "", "manifest.yaml", manifest, "conf/values.yaml", values)},
		"zip noname": {"a root folder in a zip may have no name", zipped(t, "", "", "manifest.yaml", manifest, "conf/values.yaml", values)},
		"prefix": {
			"tar -C folder . writes ./ before every name",
			tarred(block(t, tar.TypeDir, "./", nil), file("./manifest.yaml", tar.TypeReg), block(t, tar.TypeDir, "./conf/", nil), file("./conf/values.yaml", tar.TypeReg)),
		},
		"late folder": {"a folder may follow its files", tarred(plain[0], plain[1], block(t, tar.TypeDir, "conf/", nil), block(t, tar.TypeDir, "./", nil))},
		"git": {
			"git archive begins with a global header",
			rendertest.Tar([]tar.Header{
				{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}},
				{Name: "manifest.yaml", Size: int64(len(manifest))}, {Typeflag: tar.TypeDir, Name: "conf/"}, {Name: "conf/values.yaml", Size: int64(len(values))},
			}, files),
		},
		"pax": {
			"bsdtar and Python write times and attributes into pax headers",
			tarred(block(t, tar.TypeXHeader, "PaxHeader/x", records("mtime", "1700000000.123456", "LIBARCHIVE.xattr.com.apple.provenance", "AQA=", "SCHILY.fflags", "nodump")), plain[0], plain[1]),
		},
		"macos": {
			"macOS adds files of its own",
			tarred(block(t, tar.TypeReg, "./._.", padded("?")), block(t, tar.TypeReg, "._manifest.yaml", padded("?")), plain[0],
				block(t, tar.TypeReg, "conf/.DS_Store", padded("?")), plain[1]),
		},
		"macos zip": {"macOS adds a folder of its own", zipped(t, "manifest.yaml", manifest, "__MACOSX/", "", "__MACOSX/._manifest.yaml", "?", "conf/values.yaml", values)},
		"members": {
			"a gzip file may have several members, also empty ones",
			bytes.Join([][]byte{gzipOf(t, uncompressed(t, gzipped)[:half]), gzipOf(t, nil), gzipOf(t, uncompressed(t, gzipped)[half:])}, nil),
		},
		"blocks":    {"tar fills its last record of 10240 bytes with zeros", gzipOf(t, append(uncompressed(t, gzipped), make([]byte, 10240)...))},
		"no end":    {"some programs omit the two empty blocks at the end", gzipOf(t, bytes.Join(plain, nil))},
		"streamed":  {"a zip that was written to a pipe has the sizes behind the content", zipped(t, "manifest.yaml", manifest, "conf/values.yaml", values)},
		"commented": {"a zip may have a comment", commented(t, "packed by a build", "manifest.yaml", manifest, "conf/values.yaml", values)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := render.Archive(tc.archive, bombLimits())
			if diff := cmp.Diff(want, got, cmp.Transformer("text", func(b []byte) string { return string(bytes.TrimRight(b, "\x00")) })); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// padded fills a content with zeros to a whole block.
func padded(content string) []byte { return append([]byte(content), make([]byte, 512-len(content))...) }

func uncompressed(t *testing.T, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// zipped returns a zip of entries in this order, each a name and a content.
func zipped(t *testing.T, entries ...string) []byte { return commented(t, "", entries...) }

func commented(t *testing.T, comment string, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: entries[i], Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if entries[i+1] == "" {
			continue
		}
		if _, err := io.WriteString(f, entries[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SetComment(comment); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
