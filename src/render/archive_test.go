package render_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// smallLimits are limits that a test can exceed with a few bytes.
func smallLimits() render.Limits {
	return render.Limits{Archive: 1 << 20, Unpacked: 4 << 20, File: 2 << 20, Entries: 20, Ratio: 100}
}

func TestArchive(t *testing.T) {
	files := map[string]string{"metadata.yaml": "a", "x/b.yaml": "b", "x/y/empty": ""}
	want := render.Files{"metadata.yaml": []byte("a"), "x/b.yaml": []byte("b"), "x/y/empty": {}}
	under := func(folder string) map[string]string {
		moved := map[string]string{}
		for name, content := range files {
			moved[folder+"/"+name] = content
		}
		return moved
	}
	litter := map[string]string{"__MACOSX/pkg/._metadata.yaml": "?", "pkg/.DS_Store": "?", "pkg/._b.yaml": "?"}
	maps.Copy(litter, under("pkg"))
	cases := map[string]struct {
		reason    string
		archive   []byte
		want      render.Files
		mediaType string
	}{
		"zip":   {"a zip is read", rendertest.Zip(files), want, "application/zip"},
		"targz": {"a gzipped tar is read", rendertest.TarGz(files), want, "application/gzip"},
		"pax": {
			"pax headers, global ones too, and folders are no files",
			rendertest.Tar([]tar.Header{
				{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "a commit"}},
				{Typeflag: tar.TypeDir, Name: "./"},
				{Typeflag: tar.TypeDir, Name: "./x/"},
				{Typeflag: tar.TypeDir, Name: "./x/"},
				{Typeflag: tar.TypeReg, Name: "./metadata.yaml", Size: 1, Format: tar.FormatPAX, PAXRecords: map[string]string{"K8SPLUGIN.x": "y"}},
				{Typeflag: tar.TypeReg, Name: "x//b.yaml", Size: 1},
				{Typeflag: tar.TypeReg, Name: "x/y/empty"},
			}, map[string]string{"./metadata.yaml": "a", "x//b.yaml": "b"}),
			want, "application/gzip",
		},
		"folder": {"one folder around everything is taken off", rendertest.Zip(under("pkg")), want, "application/zip"},
		"litter": {"what macOS adds is not content", rendertest.Zip(litter), want, "application/zip"},
		"other folder": {
			"a folder without metadata stays",
			rendertest.TarGz(map[string]string{"chart/Chart.yaml": "c"}), render.Files{"chart/Chart.yaml": []byte("c")}, "application/gzip",
		},
		"two folders": {
			"two folders stay",
			rendertest.Zip(map[string]string{"a/metadata.yaml": "c", "b/x": ""}),
			render.Files{"a/metadata.yaml": []byte("c"), "b/x": {}}, "application/zip",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, mediaType, err := render.Archive(tc.archive, smallLimits())
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || mediaType != tc.mediaType {
				t.Errorf("%s: media type %q, files (-want +got):\n%s", tc.reason, mediaType, diff)
			}
		})
	}
}

// tarOf returns an archive of regular files with these names.
func tarOf(names ...string) []byte {
	headers := make([]tar.Header, len(names))
	for i, name := range names {
		headers[i] = tar.Header{Name: name}
	}
	return rendertest.Tar(headers, nil)
}

// zipOf returns an archive of one entry with exactly this header.
func zipOf(t *testing.T, h zip.FileHeader) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.CreateRaw(&h); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchiveRefuses(t *testing.T) {
	special := func(kind byte) []byte {
		return rendertest.Tar([]tar.Header{{Typeflag: kind, Name: "x", Linkname: "metadata.yaml"}}, nil)
	}
	symlink := zip.FileHeader{Name: "x"}
	symlink.SetMode(fs.ModeSymlink | 0o777)
	noise := make([]byte, 1<<16)
	source := rand.NewPCG(1, 2)
	for i := range noise {
		noise[i] = byte(source.Uint64())
	}
	whole := rendertest.TarGz(map[string]string{"x": string(noise)})
	wholeZip := rendertest.Zip(map[string]string{"x": string(noise)})
	cases := map[string]struct {
		reason  string
		archive []byte
		file    string // of the violation
		message string
	}{
		"text":              {"text is no archive", []byte("hello"), "", "is neither a zip nor a gzipped tar archive"},
		"nothing":           {"nothing is no archive", nil, "", "is neither a zip nor a gzipped tar archive"},
		"empty zip":         {"an archive holds something", rendertest.Zip(nil), "", "contains no files"},
		"empty tar":         {"an archive holds something", rendertest.TarGz(nil), "", "contains no files"},
		"absolute":          {"no absolute paths", tarOf("/etc/passwd"), "/etc/passwd", "is an absolute path"},
		"absolute zip":      {"no absolute paths", rendertest.Zip(map[string]string{"/x": ""}), "/x", "is an absolute path"},
		"parent":            {"no way out", tarOf("a/../../x"), "a/../../x", "is a path through a parent folder"},
		"parent inside":     {"no way back either", tarOf("a/../x"), "a/../x", "is a path through a parent folder"},
		"parent zip":        {"no way out", rendertest.Zip(map[string]string{"../x": ""}), "../x", "is a path through a parent folder"},
		"backslash":         {"no other system's paths", tarOf(`..\x`), `..\x`, "has a backslash in its name"},
		"nul":               {"no unprintable names", rendertest.Zip(map[string]string{"a\x00b": ""}), `"a\x00b"`, "has a name with non-printable characters"},
		"utf-8":             {"no broken names", rendertest.Zip(map[string]string{"a\xff": ""}), `"a\xff"`, "has a name with non-printable characters"},
		"no name":           {"a file has a name", rendertest.Tar([]tar.Header{{Size: 1}}, map[string]string{"": "x"}), "", "lacks a name"},
		"no name zip":       {"a file has a name", rendertest.Zip(map[string]string{"": "x"}), "", "lacks a name"},
		"dot":               {"the root folder is not a file", rendertest.Tar([]tar.Header{{Name: "./.", Size: 1}}, map[string]string{"./.": "x"}), "./.", "lacks a name"},
		"slash":             {"the root folder is not a file", rendertest.Tar([]tar.Header{{Name: "/x/..", Size: 1}}, map[string]string{"/x/..": "x"}), "/x/..", "is an absolute path"},
		"root link":         {"a link is not a folder, whatever its name", rendertest.Tar([]tar.Header{{Typeflag: tar.TypeSymlink, Name: "./", Linkname: "/etc"}}, nil), "./", "is a link or a device; only files and folders are accepted"},
		"root alone":        {"the root folder is not content", tarOf("."), "", "contains no files"},
		"long name":         {"names are bounded", tarOf(strings.Repeat("x", 1025)), strings.Repeat("x", 1024), "has a name of more than 1024 bytes"},
		"symlink":           {"no links", special(tar.TypeSymlink), "x", "is a link or a device; only files and folders are accepted"},
		"hard link":         {"no links", special(tar.TypeLink), "x", "is a link or a device; only files and folders are accepted"},
		"device":            {"no devices", special(tar.TypeChar), "x", "is a link or a device; only files and folders are accepted"},
		"fifo":              {"no pipes", special(tar.TypeFifo), "x", "is a link or a device; only files and folders are accepted"},
		"symlink zip":       {"no links", zipOf(t, symlink), "x", "is a link or a device; only files and folders are accepted"},
		"encrypted":         {"no passwords", zipOf(t, zip.FileHeader{Name: "x", Flags: 1}), "x", "is encrypted"},
		"twice":             {"one file for a path", tarOf("x", "x"), "x", "is twice in the archive"},
		"twice unclean":     {"one file for a path", tarOf("a/x", "./a//x"), "a/x", "is twice in the archive"},
		"file as folder":    {"a path is one thing", tarOf("a", "a-b", "a/b"), "a", "is both a file and a folder"},
		"folder as file":    {"a path is one thing", rendertest.Zip(map[string]string{"a/": "", "a": ""}), "a", "is both a file and a folder"},
		"truncated gzip":    {"the end is needed", whole[:len(whole)-1], "", "is truncated or broken: it ends too early"},
		"truncated tar":     {"the middle is needed", whole[:len(whole)/2], "x", "is truncated or broken: it ends too early"},
		"gzip of text":      {"gzip alone is no tar", gzipOf(t, []byte("hello")), "", "is truncated or broken: it ends too early"},
		"truncated zip":     {"a zip's end is its index", wholeZip[:len(wholeZip)-1], "", "is truncated or broken: the list of its files, or a header, is wrong or cut off"},
		"broken zip":        {"content is verified", flip(wholeZip, 1<<15), "x", "is truncated or broken: its checksum or length does not match its content"},
		"broken gzip":       {"content is verified", flip(whole, len(whole)-6), "", "is truncated or broken: its checksum or length does not match its content"},
		"length of gzip":    {"and its length", flip(whole, len(whole)-1), "", "is truncated or broken: its checksum or length does not match its content"},
		"header of gzip":    {"there is one kind of gzip", flip(whole, 2), "", "is truncated or broken: a header is wrong"},
		"data of gzip":      {"compressed data has its form", append(bytes.Clone(whole[:10]), 0xff, 0xff), "", "is truncated or broken: its compressed data is wrong before byte 1"},
		"header of tar":     {"a tar has its form", gzipOf(t, noise), "", "is truncated or broken: a header is wrong"},
		"half a zip header": {"a zip's beginning alone is none", []byte("PK\x03\x04"), "", "is truncated or broken: the list of its files, or a header, is wrong or cut off"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, _, err := render.Archive(tc.archive, smallLimits())
			want := nf.Violations{{File: tc.file, Message: tc.message}}
			if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.Invalid || files != nil {
				t.Errorf("%s: %v error, %d files (-want +got):\n%s", tc.reason, nf.KindOf(err), len(files), diff)
			}
		})
	}
}

// flip returns content with another byte in one place.
func flip(content []byte, at int) []byte {
	content = bytes.Clone(content)
	content[at] ^= 0xff
	return content
}

func gzipOf(t testing.TB, content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchiveLimits(t *testing.T) {
	many := map[string]string{}
	for i := range 21 {
		many[fmt.Sprint("f", i)] = ""
	}
	zeros := strings.Repeat("\x00", 2<<20)
	folders := make([]tar.Header, 21)
	for i := range folders {
		folders[i] = tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprint("d", i)}
	}
	three := rendertest.TarGz(map[string]string{"x": "a", "y": zeros[:1<<20], "z": zeros[:1<<20]})
	cases := map[string]struct {
		reason  string
		archive []byte
		limits  func(*render.Limits)
		file    string
		message string
	}{
		"archive":   {"the archive itself", tarOf("x"), func(l *render.Limits) { l.Archive = 10 }, "", "has more than 10 bytes"},
		"entries":   {"files", rendertest.Zip(many), nil, "", "has more than 20 entries"},
		"folders":   {"folders too", rendertest.Tar(folders, nil), nil, "", "has more than 20 entries"},
		"file":      {"one file", rendertest.TarGz(map[string]string{"x": zeros + "x"}), func(l *render.Limits) { l.Ratio = 1e6 }, "x", "has more than 2097152 bytes"},
		"unpacked":  {"all files", three, func(l *render.Limits) { l.Unpacked = 1<<20 + 1; l.Ratio = 1e6 }, "z", "the archive unpacks to more than 1048577 bytes"},
		"ratio":     {"a bomb", rendertest.Zip(map[string]string{"x": zeros}), nil, "x", "the archive unpacks to more than 100 times its size"},
		"ratio tar": {"a bomb", rendertest.TarGz(map[string]string{"x": zeros}), nil, "x", "the archive unpacks to more than 100 times its size"},
		"litter": {
			"a bomb in what is ignored", rendertest.TarGz(map[string]string{"__MACOSX/x": zeros + zeros}),
			nil, "", "unpacks to more than 100 times its size",
		},
		"tail": {"a bomb behind the end", gzipOf(t, append(tarBytes(t), zeros+zeros...)), nil, "", "unpacks to more than 100 times its size"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := smallLimits()
			if tc.limits != nil {
				tc.limits(&limits)
			}
			_, _, err := render.Archive(tc.archive, limits)
			want := nf.Violations{{File: tc.file, Message: tc.message}}
			if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.TooLarge {
				t.Errorf("%s: %v error (-want +got):\n%s", tc.reason, nf.KindOf(err), diff)
			}
		})
	}
	t.Run("declared size", func(t *testing.T) {
		limits := smallLimits()
		limits.Ratio = 1e6
		honest := rendertest.Zip(map[string]string{"x": zeros})
		if _, _, err := render.Archive(honest, limits); err != nil {
			t.Fatalf("the honest archive is refused: %v", err)
		}
		declared, lie := []byte{0, 0, 0x20, 0}, []byte{1, 0, 0, 0} // 2 MiB, 1 byte
		_, _, err := render.Archive(bytes.ReplaceAll(honest, declared, lie), limits)
		if nf.KindOf(err) != nf.Invalid {
			t.Errorf("an archive that lies about a size is broken, but the error is %v", err)
		}
	})
	t.Run("floor", func(t *testing.T) {
		archive := rendertest.Zip(map[string]string{"x": zeros[:1<<20]})
		if len(archive)*100 > 1<<20 {
			t.Fatalf("the archive of %d bytes is too large to show anything", len(archive))
		}
		if _, _, err := render.Archive(archive, smallLimits()); err != nil {
			t.Errorf("the ratio counts from the first MiB: %v", err)
		}
	})
}

// tarBytes returns an uncompressed archive of one file.
func tarBytes(t *testing.T) []byte {
	var b bytes.Buffer
	r, err := gzip.NewReader(bytes.NewReader(tarOf("x")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
