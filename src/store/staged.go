package store

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// beatChunks is the number of chunks after which reading staged content is
// recorded: 256 MiB.
const beatChunks = 1024

// Staged is content that is stored completely and that no user holds yet, so that
// it can be checked first. It can be read until it is kept or discarded, or the
// context ends that it was staged with. Keep and Discard are not safe for
// concurrent use.
//
// The content is that of an unfinished upload. If the process crashes, or does
// neither read nor keep it for as long as an abandoned upload may exist, Finish
// deletes it.
type Staged struct {
	blobs   Blobs
	up      *upload
	content *Content
	whole   *io.SectionReader
	settled bool // it is kept or discarded
}

var (
	_ io.Reader   = (*Staged)(nil)
	_ io.ReaderAt = (*Staged)(nil)
)

// Stage stores the content of r. Its errors are those of Put. The caller must
// discard the content unless it keeps it.
func (b Blobs) Stage(ctx context.Context, r io.Reader, limit int64) (*Staged, error) {
	up, err := b.write(ctx, r, limit)
	if err != nil {
		b.discard(ctx, up)
		return nil, err
	}
	s := &Staged{blobs: b, up: up, content: newContent(up.size, b.stagedChunks(ctx, up.id))}
	s.whole = io.NewSectionReader(s.content, 0, up.size)
	return s, nil
}

// Take returns staged content: r itself if it is Staged, otherwise what it stages
// from r. done discards what Take has staged, unless it is kept. Staged content
// that was passed in stays with its owner.
func (b Blobs) Take(ctx context.Context, r io.Reader, limit int64) (s *Staged, done func(), err error) {
	if given, ok := r.(*Staged); ok {
		return given, func() {}, nil
	}
	if s, err = b.Stage(ctx, r, limit); err != nil {
		return nil, nil, err
	}
	return s, func() { s.Discard(ctx) }, nil
}

// stagedChunks returns a function that reads a chunk of an unfinished upload, and
// records the progress, so that a check of large content is not taken for an
// abandoned upload.
func (b Blobs) stagedChunks(ctx context.Context, id string) func(n int) ([]byte, error) {
	var reads atomic.Int64
	return func(n int) ([]byte, error) {
		e, err := b.kv.Get(ctx, chunkKey(id, n))
		if err == nil && reads.Add(1)%beatChunks == 0 {
			_, err = b.uploads.Update(ctx, id, func(u *unfinished) error { u.Beats++; return nil })
		}
		switch {
		case err == nil:
			return e.Value, nil
		case nf.KindOf(err) == nf.NotFound:
			return nil, abandoned()
		}
		return nil, nf.E(nf.KindOf(err), "read", "content", err)
	}
}

// Size returns the number of bytes.
func (s *Staged) Size() int64 { return s.up.size }

// Digest returns the digest of the content: "sha256:<hex>".
func (s *Staged) Digest() string { return s.up.digest }

// Read reads the content from its beginning.
func (s *Staged) Read(p []byte) (int, error) { return s.whole.Read(p) }

// ReadAt implements io.ReaderAt. It returns nf.Timeout if the upload was taken
// for an abandoned one.
func (s *Staged) ReadAt(p []byte, off int64) (int, error) { return s.content.ReadAt(p, off) }

// Keep makes the content a blob that the user holds. It returns nf.Timeout if the
// upload was taken for an abandoned one.
func (s *Staged) Keep(ctx context.Context, user string) error {
	if err := s.blobs.present(ctx, s.up.id); err != nil {
		return err
	}
	s.settled = true
	return s.blobs.keep(ctx, user, s.up)
}

// Discard deletes the content, unless it was kept. It does so even if the context
// has ended. Discarding it again has no effect.
func (s *Staged) Discard(ctx context.Context) {
	if !s.settled {
		s.settled = true
		s.blobs.discard(ctx, s.up)
	}
}
