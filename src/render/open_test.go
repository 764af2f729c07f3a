package render_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// partLimits are limits of which a small package exceeds those for memory.
func partLimits() render.Limits {
	return render.Limits{Archive: 1 << 20, Unpacked: 1 << 20, Memory: 100, File: 50, Entries: 20, Ratio: 100}
}

func TestOpenPassesBy(t *testing.T) {
	of := func(size int) string { return strings.Repeat("x", size) }
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string // that are passed by
	}{
		"Fits":     {"everything fits", map[string]string{"a": of(50), "b": of(50), "c": ""}, nil},
		"Large":    {"a file is too large", map[string]string{"a": of(51), "b": of(50), "c": of(50)}, []string{"a"}},
		"Together": {"the largest make room", map[string]string{"a": of(40), "b": of(30), "c": of(50), "d": of(20), "e": of(10)}, []string{"c"}},
		"Equal":    {"of equal files, the first ones by name stay", map[string]string{"d": of(40), "b": of(40), "a": of(40), "c": of(40)}, []string{"c", "d"}},
		"All":      {"a package may have large files only", map[string]string{"a": of(51)}, []string{"a"}},
		"Folder":   {"metadata that is passed by is still metadata", map[string]string{"p/metadata.yaml": of(51), "p/x": ""}, []string{"metadata.yaml"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, archive := range [][]byte{rendertest.Zip(tc.files), rendertest.TarGz(tc.files), backwards(t, tc.files)} {
				for way, open := range ways() {
					files, _, err := open(bytes.NewReader(archive), int64(len(archive)), partLimits())
					if err != nil {
						t.Fatalf("%s: %s: %v", tc.reason, way, err)
					}
					var passed []string
					size := int64(0)
					for name, content := range tc.files {
						name = strings.TrimPrefix(name, "p/")
						switch {
						case files.PassedBy(name):
							passed = append(passed, name)
						case string(files[name]) != content:
							t.Errorf("%s: %s: %s has %d bytes instead of %d", tc.reason, way, name, len(files[name]), len(content))
						default:
							size += int64(len(content))
						}
					}
					if diff := cmp.Diff(tc.want, passed, cmp.Transformer("set", set)); diff != "" || len(files) != len(tc.files) || files.Size() != size {
						t.Errorf("%s: %s: %d files of %d bytes, passed by (-want +got):\n%s", tc.reason, way, len(files), files.Size(), diff)
					}
				}
			}
		})
	}
}

// TestArchiveNeedsAll opens archives in memory, of which no file is passed by.
func TestArchiveNeedsAll(t *testing.T) {
	half := strings.Repeat("x", 50)
	if files, _, err := render.Archive(rendertest.Zip(map[string]string{"a": half, "b": half, "c": half}), partLimits()); err != nil || files.Size() != 150 {
		t.Errorf("files that have more bytes than Open reads together: %d bytes, %v", files.Size(), err)
	}
	_, _, err := render.Archive(rendertest.TarGz(map[string]string{"a": half, "b": half + "x"}), partLimits())
	want := nf.Violations{{File: "b", Message: "has more than 50 bytes"}}
	if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.TooLarge {
		t.Errorf("a file that Open passes by: %v error (-want +got):\n%s", nf.KindOf(err), diff)
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

type opener = func(io.ReaderAt, int64, render.Limits) (render.Files, string, error)

func ways() map[string]opener {
	return map[string]opener{"open": render.Open, "reopen": render.Reopen}
}

// backwards returns a zip of files in the reverse order of their names.
func backwards(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name := byte('z'); name >= 'a'; name-- {
		for _, path := range []string{string(name), "p/metadata.yaml"} {
			content, exists := files[path]
			if !exists || path[0] != name {
				continue
			}
			f, err := w.Create(path)
			if err == nil {
				_, err = io.WriteString(f, content)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, exists := files["p/x"]; exists {
		if _, err := w.Create("p/x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// failing is an archive with a place that cannot be read. It counts the bytes that
// are read.
type failing struct {
	io.ReaderAt

	at   int64
	err  error
	read int64
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	f.read += int64(len(p))
	if f.err != nil && off <= f.at && f.at < off+int64(len(p)) {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestOpenReader has the store fail while an archive is read. The error is not
// taken for a fault of the archive.
func TestOpenReader(t *testing.T) {
	files := map[string]string{"a": string(noise(20 << 10)), "b": string(noise(40 << 10)), "c": ""}
	limits := partLimits()
	limits.File, limits.Memory = 30<<10, 30<<10
	for what, archive := range map[string][]byte{"zip": rendertest.Zip(files), "tar": rendertest.TarGz(files)} {
		for _, lost := range []error{nf.E(nf.Unreachable, "get", "a chunk", nil), nf.E(nf.Internal, "get", "a chunk", errors.New("it is missing"))} {
			for at := int64(0); at < int64(len(archive)); at += int64(len(archive) / 10) {
				r := &failing{ReaderAt: bytes.NewReader(archive), at: at, err: lost}
				if _, _, err := render.Open(r, int64(len(archive)), limits); !errors.Is(err, lost) {
					t.Errorf("%s: byte %d of %d cannot be read: %v, want %v", what, at, len(archive), err, lost)
				}
			}
		}
	}
}

// TestReopen opens a zip with a damaged file that is passed by.
func TestReopen(t *testing.T) {
	const part = 512 << 10
	content, err := io.ReadAll(rendertest.LargeZip(map[string]string{"a": "a"}, "disk.img", part))
	if err != nil {
		t.Fatal(err)
	}
	limits := partLimits()
	damaged := flip(content, part/2)
	if _, _, err := render.Open(bytes.NewReader(damaged), int64(len(damaged)), limits); nf.KindOf(err) != nf.Invalid || nf.ViolationsOf(err)[0].File != "disk.img" {
		t.Errorf("a file that is passed by is not checked: %v", err)
	}
	r := &failing{ReaderAt: bytes.NewReader(content)}
	files, _, err := render.Reopen(r, int64(len(content)), limits)
	if err != nil || string(files["a"]) != "a" || !files.PassedBy("disk.img") {
		t.Errorf("a checked archive cannot be opened again: %v", err)
	}
	if r.read > 100<<10 {
		t.Errorf("%d KiB of an archive of %d KiB are read again", r.read>>10, len(content)>>10)
	}
	limits.Unpacked = part
	if _, _, err := render.Reopen(r, int64(len(content)), limits); nf.KindOf(err) != nf.TooLarge {
		t.Errorf("files that are passed by do not count: %v", err)
	}
}

// TestOpenUnpacked has the files that are passed by exceed the limits of an
// archive.
func TestOpenUnpacked(t *testing.T) {
	zeros := map[string]string{"a": "", "x": strings.Repeat("\x00", 2<<20)}
	for what, archive := range map[string][]byte{"zip": rendertest.Zip(zeros), "tar": rendertest.TarGz(zeros)} {
		for message, unpacked := range map[string]int64{
			"the archive unpacks to more than 100 times its size": 8 << 20, "the archive unpacks to more than 524288 bytes": 512 << 10,
		} {
			limits := partLimits()
			limits.Unpacked = unpacked
			_, _, err := render.Open(bytes.NewReader(archive), int64(len(archive)), limits)
			want := nf.Violations{{File: "x", Message: message}}
			if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.TooLarge {
				t.Errorf("%s: %v error (-want +got):\n%s", what, nf.KindOf(err), diff)
			}
		}
	}
}

// TestOpenMemory opens archives with a large part: what that allocates does not
// depend on the part.
func TestOpenMemory(t *testing.T) {
	files := map[string]string{"metadata.yaml": "name: x\n"}
	for what, archive := range map[string]io.Reader{"zip": rendertest.LargeZip(files, "disk.img", 32<<20), "tar": rendertest.LargeTarGz(files, "disk.img", 32<<20)} {
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		used := rendertest.Allocated(func() {
			_, _, err = render.Open(bytes.NewReader(content), int64(len(content)), render.DefaultLimits().For(1<<30))
		})
		if err != nil || used > 1<<20 {
			t.Errorf("%s: %d KiB are allocated: %v", what, used>>10, err)
		}
	}
}

// vast is an archive of a tebibyte, of which only the end is there.
type vast struct{ end []byte }

const vastSize = 1 << 40

func (v vast) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	begin := int64(vastSize) - int64(len(v.end))
	if off < 4 {
		copy(p, "PK\x03\x04"[off:])
	}
	for i := range p {
		if at := off + int64(i) - begin; at >= 0 && at < int64(len(v.end)) {
			p[i] = v.end[at]
		}
	}
	return len(p), nil
}

// TestOpenClaims opens a zip whose directory claims to have more records than
// memory could hold pointers to.
func TestOpenClaims(t *testing.T) {
	var end []byte
	end = append(end, "PK\x06\x06"...)
	end = binary.LittleEndian.AppendUint64(end, 44)
	end = append(end, make([]byte, 12)...) // versions and disks
	end = binary.LittleEndian.AppendUint64(end, 30<<30)
	end = binary.LittleEndian.AppendUint64(end, 30<<30)
	end = binary.LittleEndian.AppendUint64(end, 0) // bytes of the directory
	end = binary.LittleEndian.AppendUint64(end, vastSize-98)
	end = append(end, "PK\x06\x07\x00\x00\x00\x00"...)
	end = binary.LittleEndian.AppendUint64(end, vastSize-98)
	end = binary.LittleEndian.AppendUint32(end, 1)
	end = append(end, "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
	var err error
	used := rendertest.Allocated(func() { _, _, err = render.Open(vast{end}, vastSize, render.DefaultLimits().For(vastSize)) })
	if want := (nf.Violations{{Message: "has more than 4096 entries"}}); cmp.Diff(want, nf.ViolationsOf(err)) != "" || nf.KindOf(err) != nf.TooLarge || used > 1<<20 {
		t.Errorf("%v, with %d KiB", err, used>>10)
	}
}

func TestLimitsFor(t *testing.T) {
	for archive, want := range map[int64]int64{1 << 20: 64 << 20, 64 << 20: 64 << 20, 1 << 40: 1 << 40} {
		t.Run(fmt.Sprint(archive), func(t *testing.T) {
			l := render.DefaultLimits().For(archive)
			if l.Archive != archive || l.Unpacked != want || l.MostRead(archive) > 64<<20 {
				t.Errorf("an archive of %d bytes unpacks to %d, of which %d are read", l.Archive, l.Unpacked, l.MostRead(archive))
			}
		})
	}
}

// FuzzOpen opens archives with limits that only a part of their files fits into:
// what is read is the same as if all of it were.
func FuzzOpen(f *testing.F) {
	files := map[string]string{"a": strings.Repeat("a", 30), "b/c": strings.Repeat("b", 60), "d": strings.Repeat("d", 40), "e": strings.Repeat("e", 45)}
	f.Add(rendertest.Zip(files))
	f.Add(rendertest.TarGz(files))
	f.Fuzz(func(t *testing.T, content []byte) {
		all, _, err := render.Archive(content, smallLimits())
		if err != nil {
			return
		}
		limits := smallLimits()
		limits.File, limits.Memory = 50, 100
		for way, open := range ways() {
			files, _, err := open(bytes.NewReader(content), int64(len(content)), limits)
			if err != nil || len(files) != len(all) || files.Size() > limits.Memory {
				t.Errorf("%s: %d of %d files of %d bytes: %v", way, len(files), len(all), files.Size(), err)
			}
			for name, content := range files {
				whole, exists := all[name]
				if !exists || !files.PassedBy(name) && !bytes.Equal(whole, content) {
					t.Errorf("%s: %s has %d bytes instead of %d", way, name, len(content), len(whole))
				}
			}
		}
	})
}
