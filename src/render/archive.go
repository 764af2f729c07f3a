package render

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limits bound what Archive accepts.
type Limits struct {
	Archive  int64 // bytes of the archive itself
	Unpacked int64 // bytes of all its files together
	File     int64 // bytes of one file
	Entries  int   // all entries of the archive: files, folders, headers
	Ratio    int   // unpacked bytes for each byte of the archive, beyond the first MiB
}

// DefaultLimits returns limits that are generous for manifests and charts, and
// fit into the memory of a small server.
func DefaultLimits() Limits {
	return Limits{Archive: 64 << 20, Unpacked: 64 << 20, File: 16 << 20, Entries: 4096, Ratio: 100}
}

// MostUnpacked returns the maximum total size of the files in an archive of the
// given size, in bytes.
func (l Limits) MostUnpacked(size int64) int64 {
	return min(l.Unpacked, max(ratioFloor, int64(l.Ratio)*size))
}

// The media types of the archives that Archive opens.
const (
	mediaZip  = "application/zip"
	mediaGzip = "application/gzip"
)

// ratioFloor is the number of bytes to which any archive may unpack, however
// small it is: short repetitive files legitimately compress better than any
// useful ratio.
const ratioFloor = 1 << 20

// Archive opens a zip or a gzipped tar, detected by its first bytes, and
// returns its files and its media type. If everything lies in one folder that
// holds a metadata.yaml (or .yml), paths are relative to that folder. Files
// that macOS adds to archives are omitted. An entry without content whose name
// is empty, "." or "/" is the root folder.
//
// Sizes that the archive declares are not trusted: bytes are counted as they
// are read. Archive returns nf.Invalid for a malformed archive and for entries
// that are not regular files with clean, relative names, distinct on every file
// system. It returns nf.TooLarge if a limit is exceeded. The violation names
// the entry.
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

// unpacker collects the files of one archive and enforces the limits.
type unpacker struct {
	limits  Limits
	files   Files
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

// entry is one entry of an archive.
type entry struct {
	name    string // as written
	folder  bool
	regular bool
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
	content, err := u.read(e)
	if err != nil {
		return err
	}
	u.files[name] = content
	return nil
}

// root accepts an entry for the root folder that claims to be a file, as some
// programs pack it. An entry with content is a file without a name.
func (u *unpacker) root(e entry) error {
	content, err := u.read(e)
	if err == nil && len(content) > 0 {
		err = refused(e.name, "lacks a name")
	}
	return err
}

func (u *unpacker) count(name string) error {
	if u.entries++; u.entries > u.limits.Entries {
		return u.tooMany()
	}
	if u.names += len(name); u.names > maxNames {
		return tooLarge("", fmt.Sprintf("has names of more than %d bytes together", maxNames))
	}
	return nil
}

func (u *unpacker) tooMany() error {
	return tooLarge("", fmt.Sprintf("has more than %d entries", u.limits.Entries))
}

func (u *unpacker) read(e entry) ([]byte, error) {
	r, err := e.open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, refused(e.name, "is not compressed with deflate")
	}
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

func refused(name, message string) error {
	return nf.E(nf.Invalid, "open", "archive", violation(name, message))
}

func tooLarge(name, message string) error {
	return nf.E(nf.TooLarge, "open", "archive", violation(name, message))
}

// broken returns the error for an archive that cannot be read further. An error
// of our own limits is returned unchanged.
func broken(name string, err error) error {
	if nf.KindOf(err) != nf.Internal {
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
