package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// chunkSize is well below MaxValue, so that an upload does not delay writes of
// small records at the same time.
const chunkSize = 256 << 10

// discardTime limits the deletion of a chunk or a record that no caller waits
// for.
const discardTime = 5 * time.Second

func chunkKey(upload string, n int) string {
	return fmt.Sprintf("%s%s/%08d", chunkPrefix, upload, n)
}

// upload is content that is being written to the database, under unique keys.
type upload struct {
	kv     KV
	id     string
	chunks int // number that may have been written
	size   int64
	digest string
}

// write stores the content of r. Empty content is stored as one empty chunk. It
// returns an error of r unchanged.
func (u *upload) write(ctx context.Context, r io.Reader, limit int64) error {
	sum, buf := sha256.New(), make([]byte, chunkSize)
	for end := false; !end; {
		n, err := fill(buf, r)
		end = errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if u.size += int64(n); u.size > limit {
			return nf.E(nf.TooLarge, "read", "content", fmt.Errorf("it is larger than %d bytes", limit))
		}
		if n == 0 && u.chunks > 0 {
			break
		}
		sum.Write(buf[:n])
		u.chunks++
		if _, err := u.kv.Put(ctx, chunkKey(u.id, u.chunks-1), buf[:n], Absent); err != nil {
			return nf.E(nf.KindOf(err), "store", "content", err)
		}
	}
	u.digest = digestOf(sum.Sum(nil))
	return nil
}

// fill reads until the buffer is full, and returns io.EOF only at the end of the
// content. io.ReadFull does not tell the end from content that breaks off.
func fill(buf []byte, r io.Reader) (n int, err error) {
	for n < len(buf) && err == nil {
		var more int
		more, err = r.Read(buf[n:])
		n += more
	}
	return n, err
}

// discard deletes the chunks, the last first. It does so even if the context
// has ended, because nothing else would soon.
func (u *upload) discard(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for n := u.chunks - 1; n >= 0; n-- {
		if err := nf.IgnoreNotFound(u.discardChunk(ctx, n)); err != nil {
			return err
		}
	}
	return nil
}

func (u *upload) discardChunk(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, discardTime)
	defer cancel()
	return u.kv.Delete(ctx, chunkKey(u.id, n), Any)
}

// reader yields a blob's chunks one after the other.
type reader struct {
	digest string
	chunks int
	fetch  func(n int) ([]byte, error)
	sum    hash.Hash

	next int    // index of the next chunk
	rest []byte // unread part of the last fetched chunk
	err  error  // returned at the end of the content
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil && len(p) > 0 {
		r.rest, r.err = r.advance()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// advance returns the next chunk. It returns the last one only if the digest of
// the whole content is correct.
func (r *reader) advance() ([]byte, error) {
	if r.next > 0 && r.next >= r.chunks {
		return nil, io.EOF
	}
	chunk, err := r.fetch(r.next)
	if err != nil {
		return nil, err
	}
	r.next++
	r.sum.Write(chunk)
	if r.next < r.chunks {
		return chunk, nil
	}
	if got := digestOf(r.sum.Sum(nil)); got != r.digest {
		return nil, nf.E(nf.Internal, "read", "blob "+strconv.Quote(r.digest), fmt.Errorf("the stored content has the digest %s", got))
	}
	return chunk, nil
}

func digestOf(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
