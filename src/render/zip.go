package render

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"slices"
)

func (u *unpacker) zip(content []byte) error {
	// zip.NewReader allocates a header for every record of the directory before
	// any can be checked. This bounds their number, with slack for archives
	// that contain other archives.
	if bytes.Count(content, []byte("PK\x01\x02")) > 16*u.limits.Entries {
		return u.tooMany()
	}
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	switch {
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return broken("", err)
	case len(r.File) > u.limits.Entries:
		return u.tooMany()
	}
	if err := checkOverlap(r.File); err != nil {
		return err
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
