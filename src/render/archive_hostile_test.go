package render_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// bombLimits are limits of which a multiple can be asserted in a test that is
// quick, and bombMemory is that multiple.
func bombLimits() render.Limits {
	return render.Limits{Archive: 6 << 20, Unpacked: 2 << 20, File: 256 << 10, Entries: 500, Ratio: 100}
}

const bombMemory = 8*(6<<20) + 16<<20

// noise returns bytes that cannot be compressed.
func noise(size int) []byte {
	b := make([]byte, 0, size+8)
	for source := rand.NewPCG(1, 2); len(b) < size; {
		b = binary.LittleEndian.AppendUint64(b, source.Uint64())
	}
	return b[:size]
}

// block returns one entry of a tar as no tool would write it.
func block(t testing.TB, kind byte, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	header := b.Bytes()
	header[156] = kind
	return sum(header)
}

// sum corrects the check sum of a tar header.
func sum(header []byte) []byte {
	copy(header[148:156], "        ")
	total := 0
	for _, c := range header[:512] {
		total += int(c)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", total))
	return header
}

// records returns the content of a pax header.
func records(pairs ...string) []byte {
	var b bytes.Buffer
	for i := 0; i < len(pairs); i += 2 {
		line := " " + pairs[i] + "=" + pairs[i+1] + "\n"
		size := len(line)
		for size != len(line)+len(fmt.Sprint(size)) {
			size = len(line) + len(fmt.Sprint(size))
		}
		b.WriteString(fmt.Sprint(size) + line)
	}
	return b.Bytes()
}

// repeat returns a zip whose directory lists the entry of another one, with a
// name of five letters, so often.
func repeat(t testing.TB, one []byte, times int) []byte {
	t.Helper()
	from, end := bytes.Index(one, []byte("PK\x01\x02")), bytes.Index(one, []byte("PK\x05\x06"))
	record := one[from:end]
	out := bytes.Clone(one[:from])
	for i := range times {
		copy(record[46:51], fmt.Sprintf("%05d", i))
		out = append(out, record...)
	}
	tail := bytes.Clone(one[end:])
	binary.LittleEndian.PutUint16(tail[8:], uint16(times))
	binary.LittleEndian.PutUint16(tail[10:], uint16(times))
	binary.LittleEndian.PutUint32(tail[12:], uint32(times*len(record)))
	return append(out, tail...)
}

// quote returns a zip with two entries, of which the first has the second one's
// header and bytes as its content.
func quote(t testing.TB) []byte {
	t.Helper()
	inner := rendertest.Zip(map[string]string{"inner": strings.Repeat("x", 1000)})
	record := bytes.Clone(inner[bytes.Index(inner, []byte("PK\x01\x02")):bytes.Index(inner, []byte("PK\x05\x06"))])
	stored := inner[:bytes.Index(inner, []byte("PK\x01\x02"))]
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "outer", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(stored); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	outer := b.Bytes()
	binary.LittleEndian.PutUint32(record[42:], uint32(bytes.Index(outer, stored)))
	end := bytes.Index(outer, []byte("PK\x05\x06"))
	tail := bytes.Clone(outer[end:])
	binary.LittleEndian.PutUint16(tail[8:], 2)
	binary.LittleEndian.PutUint16(tail[10:], 2)
	size := binary.LittleEndian.Uint32(tail[12:])
	binary.LittleEndian.PutUint32(tail[12:], size+uint32(len(record)))
	return append(append(bytes.Clone(outer[:end]), record...), tail...)
}

// TestHostileArchives checks that no archive, however it was made, is unpacked
// into more memory than its limits say.
func TestHostileArchives(t *testing.T) {
	zeros := strings.Repeat("\x00", 256<<10)
	bombs := map[string]string{}
	for i := range 8 {
		bombs[fmt.Sprint(i)] = zeros
	}
	nested := rendertest.Zip(map[string]string{"0": zeros})
	for range 10 {
		nested = rendertest.Zip(map[string]string{"0": string(nested), "1": string(nested)})
	}
	one := rendertest.Zip(map[string]string{"00000": strings.Repeat("x", 1<<19)})
	var pax []string
	for i := range 40_000 {
		pax = append(pax, fmt.Sprintf("a%d", i), "")
	}
	header := block(t, tar.TypeXHeader, "x", records(pax...))
	var headers, long bytes.Buffer
	for range 8 {
		headers.Write(header)
		long.Write(block(t, tar.TypeGNULongName, "././@LongLink", []byte(zeros)))
	}
	file := block(t, tar.TypeReg, "x", nil)
	end := make([]byte, 1024)
	device := func(kind byte) []byte {
		return rendertest.Tar([]tar.Header{{Typeflag: kind, Name: "x", Linkname: "/etc/passwd", Devmajor: 1, Devminor: 3}}, nil)
	}
	huge := block(t, tar.TypeReg, "x", nil)
	copy(huge[124:136], "77777777777\x00")
	huge = sum(huge)
	mode := func(m fs.FileMode) []byte {
		h := zip.FileHeader{Name: "x"}
		h.SetMode(m)
		return zipOf(t, h)
	}
	const special = "is a link or a device; only files and folders are accepted"
	const ratio = "unpacks to more than 100 times its size"
	cases := map[string]struct {
		reason  string
		archive []byte
		kind    nf.Kind
		file    string
		message string
	}{
		"zip ratio":     {"much of nothing", rendertest.Zip(bombs), nf.TooLarge, "4", "the archive " + ratio},
		"tar ratio":     {"much of nothing", rendertest.TarGz(bombs), nf.TooLarge, "4", "the archive " + ratio},
		"zip size":      {"more than one file may have", rendertest.Zip(map[string]string{"x": string(noise(256<<10 + 1))}), nf.TooLarge, "x", "has more than 262144 bytes"},
		"same bytes":    {"the bytes of one entry for many", repeat(t, one, 500), nf.Invalid, "00001", "shares its bytes with another entry"},
		"quoted":        {"an entry inside another", quote(t), nf.Invalid, "inner", "shares its bytes with another entry"},
		"directory":     {"more records than entries are allowed, all the same", repeat(t, one, 501), nf.TooLarge, "", "has more than 500 entries"},
		"zip entries":   {"a hundred thousand files", repeat(t, one, 100_000), nf.TooLarge, "", "has more than 500 entries"},
		"tar entries":   {"a hundred thousand folders", bytes.Repeat(gzipOf(t, bytes.Repeat(block(t, tar.TypeDir, "x/", nil), 1000)), 100), nf.TooLarge, "", "has more than 500 entries"},
		"zip name":      {"a name of 64 KiB", rendertest.Zip(map[string]string{strings.Repeat("n", 1<<16-1): ""}), nf.Invalid, strings.Repeat("n", 1024), "has a name of more than 1024 bytes"},
		"tar name":      {"a name of 64 KiB", tarOf(strings.Repeat("n", 1<<16)), nf.Invalid, strings.Repeat("n", 1024), "has a name of more than 1024 bytes"},
		"names":         {"names alone", longNames(), nf.TooLarge, "", "has names of more than 262144 bytes together"},
		"pax headers":   {"headers of headers", gzipOf(t, append(append(headers.Bytes(), file...), end...)), nf.TooLarge, "", "has headers that are too large"},
		"long names":    {"names of names", gzipOf(t, append(append(long.Bytes(), file...), end...)), nf.TooLarge, "", "has headers that are too large"},
		"tar size":      {"a size that nothing is behind", gzipOf(t, huge), nf.Invalid, "x", "is truncated or broken: it ends too early"},
		"zip size lie":  {"a size that nothing is behind", zipOf(t, zip.FileHeader{Name: "x", UncompressedSize64: 1 << 60}), nf.Invalid, "x", "is truncated or broken: it ends too early"},
		"zip span lie":  {"bytes beyond the end", zipOf(t, zip.FileHeader{Name: "x", CompressedSize64: 1 << 60, UncompressedSize64: 1 << 60}), nf.Invalid, "x", "is truncated or broken: it ends too early"},
		"algorithm":     {"a compression of another tool", zipOf(t, zip.FileHeader{Name: "x", Method: 12}), nf.Invalid, "x", "is not compressed with deflate"},
		"symbolic link": {"a way out", device(tar.TypeSymlink), nf.Invalid, "x", special},
		"hard link":     {"a way out", device(tar.TypeLink), nf.Invalid, "x", special},
		"character":     {"a device", device(tar.TypeChar), nf.Invalid, "x", special},
		"block":         {"a device", device(tar.TypeBlock), nf.Invalid, "x", special},
		"fifo":          {"a pipe", device(tar.TypeFifo), nf.Invalid, "x", special},
		"zip device":    {"a device", mode(fs.ModeDevice | fs.ModeCharDevice), nf.Invalid, "x", special},
		"zip fifo":      {"a pipe", mode(fs.ModeNamedPipe), nf.Invalid, "x", special},
		"zip socket":    {"a socket", mode(fs.ModeSocket), nf.Invalid, "x", special},
		"drive":         {"a path of another system", tarOf(`C:/x`), nf.Invalid, `C:/x`, "is a path on a drive"},
		"drive alone":   {"relative to the drive's own folder", tarOf(`c:x`), nf.Invalid, `c:x`, "is a path on a drive"},
		"network path":  {"a path of another system", tarOf(`//host/x`), nf.Invalid, `//host/x`, "is an absolute path"},
		"backslashes":   {"a path of another system", tarOf(`a\..\..\x`), nf.Invalid, `a\..\..\x`, "has a backslash in its name"},
		"direction":     {"a name that reads as another", tarOf("a\u202elmay.b"), nf.Invalid, `"a\u202elmay.b"`, "has a name with non-printable characters"},
		"invisible":     {"a name that looks like another", tarOf("metadata\u200b.yaml"), nf.Invalid, `"metadata\u200b.yaml"`, "has a name with non-printable characters"},
		"terminal":      {"a name that commands a terminal", tarOf("a\u009b2Jb"), nf.Invalid, `"a\u009b2Jb"`, "has a name with non-printable characters"},
		"twice":         {"a name that occurs twice", tarOf("a.yaml", "a.yaml"), nf.Invalid, "a.yaml", "is twice in the archive"},
		"twice zip":     {"a name that occurs twice", twice(t), nf.Invalid, "a.yaml", "is twice in the archive"},
		"case":          {"a name but for its case", tarOf("a.yaml", "A.yaml"), nf.Invalid, "a.yaml", `differs from "A.yaml" only in the case or the encoding of its letters`},
		"kelvin":        {"a letter that looks like another", tarOf("k.yaml", "\u212a.yaml"), nf.Invalid, "\u212a.yaml", `differs from "k.yaml" only in the case or the encoding of its letters`},
		"composed":      {"a letter that is written in two ways", tarOf("\u00e9.yaml", "e\u0301.yaml"), nf.Invalid, "\u00e9.yaml", "differs from \"e\u0301.yaml\" only in the case or the encoding of its letters"},
		"folder case":   {"a folder but for its case", tarOf("a", "A/b"), nf.Invalid, "a", "is both a file and a folder"},
		"folder deep":   {"a folder that only folders tell of", rendertest.Tar([]tar.Header{{Name: "a"}, {Typeflag: tar.TypeDir, Name: "a/b/c/"}}, nil), nf.Invalid, "a", "is both a file and a folder"},
		"slash":         {"a file that calls itself a folder", gzipOf(t, append(block(t, tar.TypeReg, "a/", nil), end...)), nf.Invalid, "a/", "is a file with the name of a folder"},
		"old sparse":    {"a file with holes", gzipOf(t, append(block(t, tar.TypeGNUSparse, "x", nil), end...)), nf.Invalid, "x", "is a sparse file"},
		"sparse": {
			"a file that is nothing but a hole of a tebibyte",
			gzipOf(t, append(append(block(t, tar.TypeXHeader, "x", records("GNU.sparse.major", "1", "GNU.sparse.minor", "0", "GNU.sparse.name", "hole", "GNU.sparse.realsize", "1099511627776")),
				block(t, tar.TypeReg, "x", append([]byte("1\n1099511627776\n0\n"), make([]byte, 512-18)...))...), end...)),
			nf.Invalid, "hole", "is a sparse file",
		},
		"sparse map": {
			"the same as other tools write it",
			gzipOf(t, append(append(block(t, tar.TypeXHeader, "x", records("GNU.sparse.size", "1099511627776", "GNU.sparse.numblocks", "1", "GNU.sparse.map", "1099511627776,0")),
				block(t, tar.TypeReg, "x", nil)...), end...)),
			nf.Invalid, "x", "is a sparse file",
		},
		"pax size": {
			"a size in a header of another kind",
			gzipOf(t, append(append(block(t, tar.TypeXHeader, "x", records("size", "9223372036854775807")), file...), end...)),
			nf.Invalid, "x", "is truncated or broken: it ends too early",
		},
		"pax path": {
			"a name in a header of another kind",
			gzipOf(t, append(append(block(t, tar.TypeXHeader, "x", records("path", "../../etc/passwd")), file...), end...)),
			nf.Invalid, "../../etc/passwd", "is a path through a parent folder",
		},
		"second tar": {"an archive that only other tools see", gzipOf(t, append(tarBytes(t), tarBytes(t)...)), nf.Invalid, "", "contains data after its end"},
		"members":    {"bytes behind the last of many", append(bytes.Repeat(gzipOf(t, nil), 10_000), "x"...), nf.Invalid, "", "is truncated or broken: it ends too early"},
		"plain tar":  {"a tar that is not gzipped", tarBytes(t), nf.Invalid, "", "is neither a zip nor a gzipped tar archive"},
		"bytes":      {"more bytes than are looked at", noise(6<<20 + 1), nf.TooLarge, "", "has more than 6291456 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			used := rendertest.Allocated(func() { _, _, err = render.Archive(tc.archive, bombLimits()) })
			want := nf.Violations{{File: tc.file, Message: tc.message}}
			if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != tc.kind {
				t.Errorf("%s: %v error (-want +got):\n%s", tc.reason, nf.KindOf(err), diff)
			}
			if used > bombMemory {
				t.Errorf("%s: refusing it takes %d KiB", tc.reason, used>>10)
			}
		})
	}
	t.Run("nested", func(t *testing.T) {
		var files render.Files
		var err error
		used := rendertest.Allocated(func() { files, _, err = render.Archive(nested, bombLimits()) })
		if err != nil || len(files) != 2 || used > bombMemory {
			t.Errorf("archives in archives are files like others: %d files, %v, %d KiB", len(files), err, used>>10)
		}
	})
	t.Run("largest", func(t *testing.T) {
		content := string(noise(256 << 10))
		largest := rendertest.TarGz(map[string]string{"a": content, "b": content, "c": content, "d": content, "e": content, "f": content, "g": content})
		var err error
		if used := rendertest.Allocated(func() { _, _, err = render.Archive(largest, bombLimits()) }); err != nil || used > bombMemory {
			t.Errorf("what the limits allow fits: %v, %d KiB", err, used>>10)
		}
	})
}

// longNames returns an archive of few entries with long names.
func longNames() []byte {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%03d/%s", i, strings.Repeat("n", 1000))] = ""
	}
	return rendertest.Zip(files)
}

// twice returns a zip with a name that occurs twice.
func twice(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, content := range []string{"one", "two"} {
		f, err := w.Create("a.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzArchive holds what the rest of the service relies on: clean names that no
// file system confuses, and that the same files make the same package in any
// archive, within the limits.
func FuzzArchive(f *testing.F) {
	plain := map[string]string{"p/metadata.yaml": "a", "p/b/c": "d", "__MACOSX/._x": "?"}
	f.Add(rendertest.Zip(plain))
	f.Add(rendertest.TarGz(map[string]string{"metadata.yaml": "a", "b/c": "d"}))
	f.Add(tarOf("a/../b", "/c"))
	f.Add(tarOf("a", "A", "\u00e9", "e\u0301"))
	f.Add(gzipOf(f, append(append(block(f, tar.TypeXHeader, "x", records("path", "y")), block(f, tar.TypeReg, "x", []byte("z"))...), make([]byte, 1024)...)))
	f.Add(gzipOf(f, append(block(f, tar.TypeGNUSparse, "x", nil), make([]byte, 1024)...)))
	f.Add(repeat(f, rendertest.Zip(map[string]string{"00000": "x"}), 3))
	f.Add(quote(f))
	f.Add(twice(f))
	f.Fuzz(func(t *testing.T, content []byte) {
		limits := smallLimits()
		var files render.Files
		var mediaType string
		var err error
		if used := rendertest.Allocated(func() { files, mediaType, err = render.Archive(content, limits) }); used > 8*uint64(limits.Unpacked)+16<<20 {
			t.Errorf("it took %d KiB", used>>10)
		}
		if err != nil {
			if kind := nf.KindOf(err); kind != nf.Invalid && kind != nf.TooLarge || nf.ViolationsOf(err) == nil {
				t.Fatalf("error of kind %v: %v", kind, err)
			}
			return
		}
		size := 0
		for name, file := range files {
			size += len(file)
			if len(name) > 1000 {
				return // there is no room for another folder
			}
			if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00\u202e") {
				t.Errorf("unclean name %q", name)
			}
			for other := range files {
				if name != other && (strings.EqualFold(name, other) || strings.HasPrefix(other, name+"/")) {
					t.Errorf("%q and %q", name, other)
				}
			}
		}
		if len(files) == 0 || len(files) > limits.Entries || int64(size) > limits.Unpacked || mediaType == "" {
			t.Errorf("%d files of %d bytes, media type %q", len(files), size, mediaType)
		}
		packed := map[string]string{"another folder/x": ""} // nothing is taken off then
		for name, file := range files {
			packed["p/"+name] = string(file)
		}
		roomy := render.Limits{Archive: 1 << 30, Unpacked: 1 << 30, File: 1 << 30, Entries: 1000, Ratio: 1e6}
		again, _, err := render.Archive(rendertest.TarGz(packed), roomy)
		unpacked := map[string]string{}
		for name, file := range again {
			unpacked[name] = string(file)
		}
		if diff := cmp.Diff(packed, unpacked); diff != "" || err != nil {
			t.Errorf("packed again: %v (-packed +unpacked):\n%s", err, diff)
		}
	})
}
