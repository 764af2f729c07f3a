package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
)

func (u *unpacker) tarGz(archive io.Reader) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return broken("", err)
	}
	// The stream has its own meter, because add does not see tar's headers and
	// padding or the content of ignored entries.
	stream := &meter{r: unzipped, left: 2*u.room + ratioFloor, excess: u.excess}
	r := tar.NewReader(stream)
	headers := int64(u.limits.Entries) * headerSize
	for {
		h, used, err := nextHeader(r, stream, headers)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return broken("", err)
		}
		headers -= used
		if err := u.addTar(h, r); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, r); err != nil { // content that add has ignored
			return broken(h.Name, err)
		}
	}
	// A truncated gzip stream is detected only at its end.
	if _, err := io.Copy(padding{}, stream); err != nil {
		return broken("", err)
	}
	return nil
}

// headerSize is the number of bytes that a tar entry may use in addition to its
// content, on average. In memory a header takes many times as much.
const headerSize = 2 << 10

// nextHeader reads a header with a separate limit, since any number of
// extension headers may precede it, and returns its size.
func nextHeader(r *tar.Reader, stream *meter, room int64) (h *tar.Header, used int64, err error) {
	whole := *stream
	if room < stream.left {
		stream.left, stream.excess = room, "has headers that are too large"
	}
	before := stream.left
	h, err = r.Next()
	used = before - stream.left
	stream.left, stream.excess = whole.left-used, whole.excess
	return h, used, err
}

func (u *unpacker) addTar(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return u.count(h.Name)
	}
	if isSparse(h) {
		return refused(h.Name, "is a sparse file")
	}
	return u.add(entry{
		name: h.Name, folder: h.Typeflag == tar.TypeDir, regular: h.Typeflag == tar.TypeReg, size: h.Size,
		open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil },
	})
}

// isSparse reports whether a file has holes that are not stored in the archive.
func isSparse(h *tar.Header) bool {
	for record := range h.PAXRecords {
		if strings.HasPrefix(record, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
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

// padding accepts only the zeros after the last entry of a tar. Other tar
// readers continue there and would see a different archive.
type padding struct{}

// Write fails with nf.Invalid at the first byte that is not zero.
func (padding) Write(p []byte) (int, error) {
	if rest := bytes.TrimLeft(p, "\x00"); len(rest) > 0 {
		return 0, refused("", "contains data after its end")
	}
	return len(p), nil
}
