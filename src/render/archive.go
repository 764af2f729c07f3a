package render

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limits bound what Open accepts, and what it reads into memory.
type Limits struct {
	Archive  int64 // bytes of the archive itself
	Unpacked int64 // bytes of all its files together
	Memory   int64 // bytes of all files that are read into memory
	File     int64 // bytes of one file that is read into memory
	Entries  int   // all entries of the archive: files, folders, headers
	Ratio    int   // unpacked bytes for each byte of the archive, beyond the first MiB
}

// DefaultLimits returns limits that are generous for manifests and charts, and
// fit into the memory of a small server.
func DefaultLimits() Limits {
	return Limits{Archive: 64 << 20, Unpacked: 64 << 20, Memory: 64 << 20, File: 16 << 20, Entries: 4096, Ratio: 100}
}

// For returns the limits for archives of at most the given size, which may also
// unpack to that size. The memory for them stays the same.
func (l Limits) For(archive int64) Limits {
	l.Archive, l.Unpacked = archive, max(l.Unpacked, archive)
	return l
}

// MostUnpacked returns the maximum total size of the files in an archive of the
// given size, in bytes.
func (l Limits) MostUnpacked(size int64) int64 {
	return min(l.Unpacked, max(ratioFloor, int64(l.Ratio)*size))
}

// MostRead returns the maximum total size of the files that Open reads into
// memory from an archive of the given size, in bytes.
func (l Limits) MostRead(size int64) int64 { return min(l.Memory, l.MostUnpacked(size)) }

// The media types of the archives that Archive opens.
const (
	mediaZip  = "application/zip"
	mediaGzip = "application/gzip"
)

// ratioFloor is the number of bytes to which any archive may unpack, however
// small it is: short repetitive files legitimately compress better than any
// useful ratio.
const ratioFloor = 1 << 20

// Open opens a zip or a gzipped tar, detected by its first bytes, and returns its
// files and its media type. If everything lies in one folder that holds a
// metadata.yaml (or .yml), paths are relative to that folder. Files that macOS
// adds to archives are omitted. An entry without content whose name is empty, "."
// or "/" is the root folder.
//
// Open passes by a file that has more than l.File bytes. If the others together
// have more than l.Memory bytes, it passes by the largest of them. It checks the
// content of these files, but does not hold it: see Files.
//
// Sizes that the archive declares are not trusted: bytes are counted as they
// are read. Open returns nf.Invalid for a malformed archive and for entries
// that are not regular files with clean, relative names, distinct on every file
// system. It returns nf.TooLarge if a limit is exceeded. The violation names
// the entry. It returns an error of the archive's reader with its kind.
func Open(archive io.ReaderAt, size int64, l Limits) (Files, string, error) {
	return newUnpacker(l, size).open(archive, size)
}

// Reopen opens an archive that Open has accepted. It does not read the content of
// the files in a zip that it passes by.
func Reopen(archive io.ReaderAt, size int64, l Limits) (Files, string, error) {
	u := newUnpacker(l, size)
	u.checked = true
	return u.open(archive, size)
}

// Archive opens an archive in memory whose files are all needed. It returns
// nf.TooLarge for a file that Open would pass by because of its own size.
func Archive(content []byte, l Limits) (Files, string, error) {
	l.Memory = l.Unpacked
	files, media, err := Open(bytes.NewReader(content), int64(len(content)), l)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files.PassedBy(name) {
			return nil, "", tooLarge(name, fmt.Sprintf("has more than %d bytes", l.File))
		}
	}
	return files, media, err
}

// unpacker collects the files of one archive and enforces the limits.
type unpacker struct {
	limits  Limits
	checked bool // see Reopen
	files   Files
	held    int64 // bytes of the files in memory
	folders map[string]bool
	entries int
	names   int    // bytes of all names
	room    int64  // bytes that may still be unpacked
	excess  string // message for the case that room is exceeded
}

func newUnpacker(l Limits, size int64) *unpacker {
	u := &unpacker{limits: l, files: Files{}, folders: map[string]bool{}, room: l.MostUnpacked(size)}
	u.excess = fmt.Sprintf("unpacks to more than %d bytes", l.Unpacked)
	if u.room < l.Unpacked {
		u.excess = fmt.Sprintf("unpacks to more than %d times its size", l.Ratio)
	}
	return u
}

func (u *unpacker) open(archive io.ReaderAt, size int64) (Files, string, error) {
	if size > u.limits.Archive {
		return nil, "", tooLarge("", fmt.Sprintf("has more than %d bytes", u.limits.Archive))
	}
	var first [4]byte
	n, err := archive.ReadAt(first[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", broken("", err)
	}
	var media string
	switch begin := first[:n]; {
	case bytes.HasPrefix(begin, []byte("PK\x03\x04")), bytes.HasPrefix(begin, []byte("PK\x05\x06")):
		media, err = mediaZip, u.zip(archive, size)
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		media, err = mediaGzip, u.tarGz(io.NewSectionReader(archive, 0, size))
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

// entry is one entry of an archive.
type entry struct {
	name    string // as written
	folder  bool
	regular bool
	size    int64 // as declared
	open    func() (io.ReadCloser, error)
}

func (u *unpacker) add(e entry) error {
	if err := u.count(e.name); err != nil {
		return err
	}
	name, fault := cleanName(e.name)
	switch {
	case fault != "":
		return refused(e.name, fault)
	case e.folder:
		u.folders[name] = true
		return nil
	case !e.regular:
		return refused(e.name, "is a link or a device; only files and folders are accepted")
	case name == ".":
		return u.root(e)
	case strings.HasSuffix(e.name, "/"):
		return refused(e.name, "is a file with the name of a folder")
	case isJunk(name):
		return nil
	}
	if _, twice := u.files[name]; twice {
		return refused(name, "is twice in the archive")
	}
	content, err := u.read(name, e)
	if err != nil {
		return err
	}
	u.files[name] = content
	u.held += int64(len(content))
	return nil
}

// root accepts an entry for the root folder that claims to be a file, as some
// programs pack it. An entry with content is a file without a name.
func (u *unpacker) root(e entry) error {
	_, err := u.read(".", e)
	if err == nil && e.size > 0 {
		err = refused(e.name, "lacks a name")
	}
	return err
}

func (u *unpacker) count(name string) error {
	if u.entries++; u.entries > u.limits.Entries {
		return tooMany(u.limits.Entries)
	}
	if u.names += len(name); u.names > maxNames {
		return tooLarge("", fmt.Sprintf("has names of more than %d bytes together", maxNames))
	}
	return nil
}

func tooMany(most int) error {
	return tooLarge("", fmt.Sprintf("has more than %d entries", most))
}

// read returns the content of a file, or nil if it passes the file by.
func (u *unpacker) read(name string, e entry) (content []byte, err error) {
	held := u.admit(name, e.size)
	size := e.size
	if held || !u.checked {
		content, size, err = u.unpack(e, held)
	}
	switch {
	case err != nil:
		return nil, err
	case size > u.room:
		return nil, tooLarge(e.name, "the archive "+u.excess)
	}
	u.room -= size
	return content, nil
}

// unpack reads an entry to its end, and returns its size. It returns its content
// if it is to be held.
func (u *unpacker) unpack(e entry, held bool) (content []byte, size int64, err error) {
	r, err := e.open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, 0, refused(e.name, "is not compressed with deflate")
	}
	if err != nil {
		return nil, 0, broken(e.name, err)
	}
	defer r.Close()
	if held && e.size <= u.room {
		// An archive with a wrong size is rejected here, so it costs one allocation.
		content = make([]byte, e.size)
		if _, err := io.ReadFull(r, content); err != nil {
			return nil, 0, broken(e.name, err)
		}
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(r, u.room+1)) // also verifies the checksum
	if err != nil {
		return nil, 0, broken(e.name, err)
	}
	return content, int64(len(content)) + rest, nil
}

// admit reports whether a file is read into memory, and makes room for it. The
// smallest files stay in memory, in whatever order the archive has them.
func (u *unpacker) admit(name string, size int64) bool {
	if size > u.limits.File {
		return false
	}
	for u.held+size > u.limits.Memory {
		largest, most := u.largest()
		if cmp.Or(cmp.Compare(size, most), cmp.Compare(name, largest)) > 0 {
			return false
		}
		u.files[largest] = nil
		u.held -= most
	}
	return true
}

// largest returns the largest file in memory. Of several, it is the last by name.
func (u *unpacker) largest() (name string, size int64) {
	for other, content := range u.files {
		if content != nil && cmp.Or(cmp.Compare(int64(len(content)), size), cmp.Compare(other, name)) > 0 {
			name, size = other, int64(len(content))
		}
	}
	return name, size
}

func refused(name, message string) error {
	return nf.E(nf.Invalid, "open", "archive", violation(name, message))
}

func tooLarge(name, message string) error {
	return nf.E(nf.TooLarge, "open", "archive", violation(name, message))
}

// broken returns the error for an archive that cannot be read further. An error
// of our own limits, or of the archive's reader, is returned unchanged.
func broken(name string, err error) error {
	if _, ours := errors.AsType[*nf.Error](err); ours {
		return err
	}
	return refused(name, "is truncated or broken: "+fault(err))
}

// fault describes why an archive cannot be read further.
func fault(err error) string {
	if wrong, ok := errors.AsType[flate.CorruptInputError](err); ok {
		return fmt.Sprintf("its compressed data is wrong before byte %d", int64(wrong))
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zip.ErrChecksum):
		return "its checksum or length does not match its content"
	}
	if errors.Is(err, zip.ErrFormat) {
		return "the list of its files, or a header, is wrong or cut off"
	}
	return "a header is wrong"
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
