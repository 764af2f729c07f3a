package render

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limits bound what Archive accepts.
type Limits struct {
	Archive  int64 // bytes of the archive itself
	Unpacked int64 // bytes of all its files together
	File     int64 // bytes of one file
	Entries  int   // everything that the archive lists: files, folders, headers
	Ratio    int   // unpacked bytes for each byte of the archive, beyond the first MiB
}

// DefaultLimits returns limits that are generous for manifests and charts, and
// small enough for the memory of a small server.
func DefaultLimits() Limits {
	return Limits{Archive: 64 << 20, Unpacked: 64 << 20, File: 16 << 20, Entries: 4096, Ratio: 100}
}

// The media types of the archives that Archive opens.
const (
	mediaZip  = "application/zip"
	mediaGzip = "application/gzip"
)

// ratioFloor is what may come out of an archive however small it is: short
// repetitive files legitimately compress better than any useful ratio.
const ratioFloor = 1 << 20

// Archive opens a zip or a gzipped tar, told apart by their first bytes, and
// returns its files and its media type. When everything lies in one folder that
// holds a metadata.yaml (or .yml), paths are relative to that folder. What
// macOS adds to archives is left out.
//
// No size that the archive declares is believed: bytes are counted as they are
// read. The error is nf.Invalid for a broken archive and for entries that are
// no plain files with clean, relative, distinct names, and nf.TooLarge beyond
// a limit; its violation names the entry.
func Archive(content []byte, l Limits) (Files, string, error) {
	if int64(len(content)) > l.Archive {
		return nil, "", tooLarge("", fmt.Sprintf("has more than %d bytes", l.Archive))
	}
	u := newUnpacker(l, int64(len(content)))
	var media string
	var err error
	switch {
	case bytes.HasPrefix(content, []byte("PK\x03\x04")), bytes.HasPrefix(content, []byte("PK\x05\x06")):
		media, err = mediaZip, u.zip(content)
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		media, err = mediaGzip, u.tarGz(content)
	default:
		err = refused("", "is neither a zip nor a gzipped tar archive")
	}
	if err == nil {
		err = u.checkTree()
	}
	if err != nil {
		return nil, "", err
	}
	return unwrap(u.files), media, nil
}

// unpacker collects the files of one archive and keeps count.
type unpacker struct {
	limits  Limits
	files   Files
	folders map[string]bool
	entries int
	room    int64  // bytes that may still be unpacked
	excess  string // what to say when room runs out
}

func newUnpacker(l Limits, size int64) *unpacker {
	u := &unpacker{limits: l, files: Files{}, folders: map[string]bool{}, room: l.Unpacked}
	u.excess = fmt.Sprintf("unpacks to more than %d bytes", l.Unpacked)
	if byRatio := max(ratioFloor, int64(l.Ratio)*size); byRatio < u.room {
		u.room = byRatio
		u.excess = fmt.Sprintf("unpacks to more than %d times its size", l.Ratio)
	}
	return u
}

func (u *unpacker) zip(content []byte) error {
	// zip.NewReader keeps a header for every record of the directory before a
	// single one can be looked at; this bounds how many there can be, with
	// slack for archives that hold other archives.
	if bytes.Count(content, []byte("PK\x01\x02")) > 16*u.limits.Entries {
		return u.tooMany()
	}
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return broken("", err)
	}
	for _, f := range r.File {
		mode := f.Mode()
		e := entry{name: f.Name, folder: mode.IsDir(), regular: mode.IsRegular(), open: f.Open}
		if f.Flags&1 != 0 {
			return refused(f.Name, "is encrypted")
		}
		if err := u.add(e); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) tarGz(content []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return broken("", err)
	}
	// The stream is metered by itself, because add sees neither tar's headers
	// and padding nor the content of what it ignores.
	stream := &meter{r: unzipped, left: 2*u.room + ratioFloor, excess: u.excess}
	r := tar.NewReader(stream)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return broken("", err)
		}
		if err := u.addTar(h, r); err != nil {
			return err
		}
	}
	// Only the end of the gzip stream tells whether it is whole.
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return broken("", err)
	}
	return nil
}

func (u *unpacker) addTar(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return u.count()
	}
	return u.add(entry{
		name: h.Name, folder: h.Typeflag == tar.TypeDir, regular: h.Typeflag == tar.TypeReg,
		open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil },
	})
}

// entry is one thing that an archive lists.
type entry struct {
	name    string // as written
	folder  bool
	regular bool
	open    func() (io.ReadCloser, error)
}

func (u *unpacker) add(e entry) error {
	if err := u.count(); err != nil {
		return err
	}
	name, fault := cleanName(e.name)
	if fault == "" && name == "." && !e.folder {
		fault = "has no name"
	}
	switch {
	case fault != "":
		return refused(e.name, fault)
	case e.folder:
		u.folders[name] = true
		return nil
	case !e.regular:
		return refused(e.name, "is a link or a device; only files and folders are accepted")
	case isLitter(name):
		return nil
	}
	if _, twice := u.files[name]; twice {
		return refused(name, "is in the archive twice")
	}
	content, err := u.read(e)
	if err != nil {
		return err
	}
	u.files[name] = content
	return nil
}

func (u *unpacker) count() error {
	if u.entries++; u.entries > u.limits.Entries {
		return u.tooMany()
	}
	return nil
}

func (u *unpacker) tooMany() error {
	return tooLarge("", fmt.Sprintf("has more than %d entries", u.limits.Entries))
}

func (u *unpacker) read(e entry) ([]byte, error) {
	r, err := e.open()
	if err != nil {
		return nil, broken(e.name, err)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, min(u.limits.File, u.room)+1))
	size := int64(len(content))
	switch {
	case err != nil:
		return nil, broken(e.name, err)
	case size > u.limits.File:
		return nil, tooLarge(e.name, fmt.Sprintf("has more than %d bytes", u.limits.File))
	case size > u.room:
		return nil, tooLarge(e.name, "the archive "+u.excess)
	}
	u.room -= size
	return content, nil
}

// checkTree refuses an archive that is empty, or in which one path is both a
// file and a folder.
func (u *unpacker) checkTree() error {
	if len(u.files) == 0 {
		return refused("", "holds no files")
	}
	names := slices.Sorted(maps.Keys(u.files))
	for _, name := range names {
		inside := name + "/"
		i, _ := slices.BinarySearch(names, inside)
		if u.folders[name] || i < len(names) && strings.HasPrefix(names[i], inside) {
			return refused(name, "is both a file and a folder")
		}
	}
	return nil
}

// meter reads at most left bytes and then fails with nf.TooLarge.
type meter struct {
	r      io.Reader
	left   int64
	excess string
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return 0, tooLarge("", m.excess)
	}
	return n, err
}

// cleanName returns the clean form of an entry's name, or what is wrong with it.
func cleanName(name string) (clean, fault string) {
	switch {
	case name == "":
		return "", "has no name"
	case len(name) > maxName:
		return "", fmt.Sprintf("has a name of more than %d bytes", maxName)
	case strings.ContainsFunc(name, unprintable):
		return "", "has a name with unprintable characters"
	case strings.Contains(name, `\`):
		return "", "has a backslash in its name"
	case strings.HasPrefix(name, "/"):
		return "", "is an absolute path"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", "is a path through a parent folder"
	}
	return path.Clean(name), ""
}

const maxName = 1024

// unprintable also catches invalid UTF-8, which reads as the replacement
// character.
func unprintable(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// isLitter reports whether a file is one of those that macOS adds to archives.
func isLitter(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "._") || base == ".DS_Store" || slices.Contains(strings.Split(name, "/"), "__MACOSX")
}

// unwrap makes paths relative to the one folder that everything is in, if it
// holds the metadata.
func unwrap(files Files) Files {
	folder := ""
	for name := range files {
		top, _, nested := strings.Cut(name, "/")
		if !nested || folder != "" && top != folder {
			return files
		}
		folder = top
	}
	_, yaml := files[folder+"/metadata.yaml"]
	_, yml := files[folder+"/metadata.yml"]
	if !yaml && !yml {
		return files
	}
	inner := make(Files, len(files))
	for name, content := range files {
		inner[strings.TrimPrefix(name, folder+"/")] = content
	}
	return inner
}

func refused(name, message string) error {
	return nf.E(nf.Invalid, "open", "archive", violation(name, message))
}

func tooLarge(name, message string) error {
	return nf.E(nf.TooLarge, "open", "archive", violation(name, message))
}

// broken reports an archive that cannot be read on, unless it is our own meter
// that stopped the reading.
func broken(name string, err error) error {
	if nf.KindOf(err) == nf.TooLarge {
		return err
	}
	return refused(name, "is truncated or broken: "+err.Error())
}

// violation names an entry in a form that is safe to show.
func violation(name, message string) nf.Violations {
	if len(name) > maxName {
		name = name[:maxName]
	}
	if strings.ContainsFunc(name, unprintable) {
		name = fmt.Sprintf("%q", name)
	}
	return nf.Violations{{File: name, Message: message}}
}
