package store

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// recentChunks is the number of chunks that Content holds in memory. A zip is read
// in turns at its directory, at an entry's header and in the entry.
const recentChunks = 4

// Content is stored content that can be read at any offset, until the context
// ends that it was opened with. It holds at most 1 MiB in memory. It is safe for
// concurrent use.
type Content struct {
	size  int64
	fetch func(n int) ([]byte, error)

	mu     sync.Mutex
	recent []numbered // the most recently read first
}

// numbered is a chunk with its number.
type numbered struct {
	n     int
	chunk []byte
}

var _ io.ReaderAt = (*Content)(nil)

func newContent(size int64, fetch func(n int) ([]byte, error)) *Content {
	return &Content{size: size, fetch: fetch}
}

// Size returns the number of bytes.
func (c *Content) Size() int64 { return c.size }

// ReadAt implements io.ReaderAt. It returns the errors of the database,
// nf.Internal if a chunk is missing or has another size, and nf.NotFound if the
// content was deleted since.
func (c *Content) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, nf.E(nf.Invalid, "read", "content", errors.New("the offset is negative"))
	}
	for n < len(p) && off < c.size {
		chunk, err := c.chunk(int(off / chunkSize))
		if err != nil {
			return n, err
		}
		copied := copy(p[n:], chunk[off%chunkSize:])
		n, off = n+copied, off+int64(copied)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// chunk returns a chunk, which has exactly the bytes that it must have.
func (c *Content) chunk(n int) ([]byte, error) {
	if chunk := c.remembered(n); chunk != nil {
		return chunk, nil
	}
	chunk, err := c.fetch(n)
	if err != nil {
		return nil, err
	}
	if want := min(chunkSize, c.size-int64(n)*chunkSize); int64(len(chunk)) != want {
		return nil, nf.E(nf.Internal, "read", "content", fmt.Errorf("chunk %d has %d bytes instead of %d", n, len(chunk), want))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = slices.Insert(c.recent[:min(len(c.recent), recentChunks-1)], 0, numbered{n, chunk})
	return chunk, nil
}

// remembered returns a chunk that is in memory, or nil.
func (c *Content) remembered(n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.recent, func(has numbered) bool { return has.n == n })
	if i < 0 {
		return nil
	}
	found := c.recent[i]
	copy(c.recent[1:i+1], c.recent[:i])
	c.recent[0] = found
	return found.chunk
}
