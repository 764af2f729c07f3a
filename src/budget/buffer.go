package budget

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// firstBuffer is the initial capacity of a buffer in bytes.
const firstBuffer = 64 << 10

// Buffer is an archive in memory that is reserved from a budget, together with
// other memory that the request reserves. It implements io.Reader, so that it
// can be passed wherever an archive is read; Take then uses it without a copy.
// It is not safe for concurrent use.
type Buffer struct {
	budget   *Budget
	most     int64 // maximum that it may reserve
	reserved int64 // guarded by the budget
	content  []byte
	read     int // bytes of the content that Read has returned
}

var _ io.Reader = (*Buffer)(nil)

// Take returns a buffer with the content: the content itself if it is a Buffer,
// otherwise a new buffer filled from it. done releases a new buffer. A buffer
// that was passed in stays with its owner.
func (b *Budget) Take(ctx context.Context, content io.Reader) (buffer *Buffer, done func(), err error) {
	if given, ok := content.(*Buffer); ok {
		return given, func() {}, nil
	}
	buffer = b.Upload(0)
	if err := buffer.Fill(ctx, content); err != nil {
		buffer.Close()
		return nil, nil, err
	}
	return buffer, buffer.Close, nil
}

// Fill replaces the buffer's content with everything that r yields. It returns
// nf.TooLarge if that exceeds the size limit of archives, nf.TooManyRequests if no
// memory is available for 10 seconds, and nf.Cancelled if the context ends. It
// also returns the errors of r. After an error the buffer is empty.
func (b *Buffer) Fill(ctx context.Context, r io.Reader) error {
	b.content, b.read = b.content[:0], 0
	err := b.fill(ctx, r)
	if err != nil {
		b.Drop()
	}
	return err
}

func (b *Buffer) fill(ctx context.Context, r io.Reader) error {
	for {
		if len(b.content) == cap(b.content) {
			if err := b.Grow(ctx, max(firstBuffer, 2*int64(cap(b.content)))-1); err != nil {
				return err
			}
		}
		n, err := r.Read(b.content[len(b.content):cap(b.content)])
		b.content = b.content[:len(b.content)+n]
		switch {
		case int64(len(b.content)) > b.budget.archive:
			return nf.E(nf.TooLarge, "read", "archive", fmt.Errorf("it is larger than %d bytes", b.budget.archive))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Grow makes room for an archive of size bytes in one step, where Fill would
// take several. Its errors are those of Reserve.
func (b *Buffer) Grow(ctx context.Context, size int64) error {
	size = min(size, b.budget.archive) + 1 // one more byte: only a further read reports the end
	if err := b.Reserve(ctx, size); err != nil {
		return err
	}
	old := int64(cap(b.content))
	b.content = append(make([]byte, 0, size), b.content...)
	b.Release(old)
	return nil
}

// Bytes returns the content. The buffer still owns it.
func (b *Buffer) Bytes() []byte { return b.content }

// Read reads the content.
func (b *Buffer) Read(p []byte) (int, error) {
	if b.read == len(b.content) && len(p) > 0 {
		return 0, io.EOF
	}
	n := copy(p, b.content[b.read:])
	b.read += n
	return n, nil
}

// Drop releases the content.
func (b *Buffer) Drop() {
	n := int64(cap(b.content))
	b.content, b.read = nil, 0
	b.Release(n)
}

// Reserve reserves n bytes for other data, such as the archive's files. It
// returns nf.TooManyRequests if they do not become free within 10 seconds, and
// nf.Cancelled if the context ends.
func (b *Buffer) Reserve(ctx context.Context, n int64) error { return b.budget.reserve(ctx, b, n) }

// Release releases n of the reserved bytes.
func (b *Buffer) Release(n int64) { b.budget.release(b, n) }

// Close releases everything and empties the buffer. Closing it again has no
// effect.
func (b *Buffer) Close() {
	b.Drop()
	b.Release(b.reserved)
}
