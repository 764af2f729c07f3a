package render

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
)

func (u *unpacker) zip(archive io.ReaderAt, size int64) error {
	r, err := readZip(archive, size, u.limits)
	if err != nil {
		return err
	}
	if err := checkOverlap(r.File); err != nil {
		return err
	}
	for _, f := range r.File {
		mode := f.Mode()
		e := entry{name: f.Name, folder: mode.IsDir(), regular: mode.IsRegular(), size: int64(min(f.UncompressedSize64, math.MaxInt64)), open: f.Open}
		if f.Flags&1 != 0 {
			return refused(f.Name, "is encrypted")
		}
		if err := u.add(e); err != nil {
			return err
		}
	}
	return nil
}

// readZip reads the directory of a zip within its limits.
func readZip(archive io.ReaderAt, size int64, l Limits) (*zip.Reader, error) {
	d := &directory{archive: archive, most: l.Entries, left: endSize + maxNames + int64(l.Entries)*recordSize}
	r, err := zip.NewReader(d, size)
	d.read = true
	switch {
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, broken("", err)
	case len(r.File) > l.Entries:
		return nil, tooMany(l.Entries)
	}
	return r, nil
}

// The bytes of a zip's directory, in addition to the names.
const (
	endSize    = 128 << 10 // its end, with a comment of at most 64 KiB, which is looked for twice
	recordSize = 256       // one record, on average; in memory it takes about as much
)

// directory is a zip whose directory is limited while it is read, because
// zip.NewReader creates a header for each record before any can be checked.
type directory struct {
	archive io.ReaderAt
	most    int   // records
	left    int64 // bytes that may still be read
	read    bool  // there is no limit any longer
}

// ReadAt implements io.ReaderAt. It returns nf.TooLarge if the directory exceeds
// a limit.
func (d *directory) ReadAt(p []byte, off int64) (int, error) {
	n, err := d.archive.ReadAt(p, off)
	if d.read {
		return n, err
	}
	d.left -= int64(n)
	if d.left < 0 || claimed(p[:n]) > uint64(d.most) {
		return 0, tooMany(d.most)
	}
	return n, err
}

// claimed returns the number of records that the end of a zip's directory claims
// in its 64-bit form, or 0 for other bytes. zip.NewReader allocates as many
// pointers if the archive is large enough for them.
func claimed(end []byte) uint64 {
	const at = 32
	if len(end) < at+8 || !bytes.HasPrefix(end, []byte("PK\x06\x06")) {
		return 0
	}
	return binary.LittleEndian.Uint64(end[at:])
}

// checkOverlap rejects an archive whose entries share bytes: a small archive
// could contain any number of large files, each with a plausible ratio.
func checkOverlap(entries []*zip.File) error {
	type span struct {
		name     string
		from, to uint64
	}
	spans := make([]span, 0, len(entries))
	for _, f := range entries {
		from, err := f.DataOffset()
		if err != nil {
			return broken(f.Name, err)
		}
		if f.CompressedSize64 > 0 {
			spans = append(spans, span{f.Name, uint64(from), uint64(from) + f.CompressedSize64})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return refused(spans[i].name, "shares its bytes with another entry")
		}
	}
	return nil
}
