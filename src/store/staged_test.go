package store_test

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// counted counts the reads of each chunk.
func counted(kv store.KV, reads map[string]int) store.KV {
	return storetest.Failing{KV: kv, Fail: func(method, key string) error {
		if method == "Get" && strings.HasPrefix(key, "chunks/") {
			reads[key]++
		}
		return nil
	}}
}

func stage(t *testing.T, b store.Blobs, size int) *store.Staged {
	t.Helper()
	s, err := b.Stage(t.Context(), bytes.NewReader(content(size)), math.MaxInt64)
	must(t, err)
	return s
}

// TestContent reads blobs at any offset, in any order.
func TestContent(t *testing.T) {
	reads := map[string]int{}
	blobs := store.NewBlobs(counted(memory.New(), reads))
	for _, size := range []int{0, 1, chunk, 6*chunk + 5} {
		want := content(size)
		c, err := blobs.Content(t.Context(), put(t, blobs, "user", size))
		must(t, err)
		if c.Size() != int64(size) {
			t.Errorf("the size is %d, want %d", c.Size(), size)
		}
		if err := iotest.TestReader(io.NewSectionReader(c, 0, c.Size()), want); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		rapid.Check(t, func(rt *rapid.T) {
			at := rapid.IntRange(0, size+1).Draw(rt, "at")
			p := make([]byte, rapid.IntRange(0, 2*chunk+1).Draw(rt, "length"))
			n, err := c.ReadAt(p, int64(at))
			if expect := want[min(at, size):min(at+len(p), size)]; !bytes.Equal(p[:n], expect) || (n < len(p)) != (err == io.EOF) || err != nil && err != io.EOF { //nolint:errorlint // the contract of io.ReaderAt
				rt.Errorf("%d bytes at %d of %d: %d bytes, %v", len(p), at, size, n, err)
			}
		})
	}
	_, err := blobs.Content(t.Context(), "sha256:none")
	wantKind(t, "there is nothing to read", err, nf.NotFound)
}

// TestContentReadsOnce reads in small steps at three places in turns, as a zip is
// read: no chunk is fetched twice.
func TestContentReadsOnce(t *testing.T) {
	reads := map[string]int{}
	blobs := store.NewBlobs(counted(memory.New(), reads))
	c, err := blobs.Content(t.Context(), put(t, blobs, "user", 6*chunk))
	must(t, err)
	p := make([]byte, 1<<10)
	for at := range int64(2*chunk) >> 10 {
		for _, from := range []int64{0, 2 * chunk, 4 * chunk} {
			_, err := c.ReadAt(p, from+at<<10)
			must(t, err)
		}
	}
	for key, n := range reads {
		if n != 1 {
			t.Errorf("%s is fetched %d times", key, n)
		}
	}
	if len(reads) != 6 {
		t.Errorf("%d chunks are fetched, want 6", len(reads))
	}
}

// TestContentConcurrently has several readers use the same content.
func TestContentConcurrently(t *testing.T) {
	blobs := store.NewBlobs(memory.New())
	c, err := blobs.Content(t.Context(), put(t, blobs, "user", 6*chunk+5))
	must(t, err)
	var all errgroup.Group
	for range 4 {
		all.Go(func() error { return iotest.TestReader(io.NewSectionReader(c, 0, c.Size()), content(6*chunk+5)) })
	}
	must(t, all.Wait())
}

func TestContentDamage(t *testing.T) {
	for name, damage := range map[string]func(kv store.KV, keys []string) error{
		"Truncated": func(kv store.KV, keys []string) error { return overwrite(1, "x")(t.Context(), kv, keys) },
		"Missing":   func(kv store.KV, keys []string) error { return removeSecond(t.Context(), kv, keys) },
	} {
		t.Run(name, func(t *testing.T) {
			kv := memory.New()
			blobs := store.NewBlobs(kv)
			c, err := blobs.Content(t.Context(), put(t, blobs, "user", 2*chunk+1))
			must(t, err)
			must(t, damage(kv, keysOf(t, kv, "chunks/")))
			n, err := c.ReadAt(make([]byte, 10), chunk-5)
			wantKind(t, "a chunk is damaged", err, nf.Internal)
			if n != 5 {
				t.Errorf("%d bytes are read, want those of the sound chunk", n)
			}
			_, err = c.ReadAt(make([]byte, 1), -1)
			wantKind(t, "nothing is there", err, nf.Invalid)
		})
	}
}

// TestStaged keeps and discards content that was read first.
func TestStaged(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		blobs := store.NewBlobs(kv)
		for _, size := range []int{0, 1, 2*chunk + 5} {
			want := content(size)
			read := func(s *store.Staged) {
				t.Helper()
				if s.Size() != int64(size) || s.Digest() != digestOf(want) {
					t.Errorf("%d bytes are staged as %d with digest %s", size, s.Size(), s.Digest())
				}
				if err := iotest.TestReader(s, want); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
				if err := iotest.TestReader(io.NewSectionReader(s, 0, s.Size()), want); err != nil {
					t.Errorf("%d bytes, again: %v", size, err)
				}
			}
			s := stage(t, blobs, size)
			read(s)
			_, err := blobs.ReadAll(t.Context(), s.Digest())
			wantKind(t, "content without a user is no blob", err, nf.NotFound)
			s.Discard(t.Context())
			s.Discard(t.Context())
			if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
				t.Errorf("what is left of %d discarded bytes (-want +got):\n%s", size, diff)
			}
			first, second := stage(t, blobs, size), stage(t, blobs, size)
			read(first)
			must(t, first.Keep(t.Context(), "a"))
			must(t, second.Keep(t.Context(), "b")) // the same content
			first.Discard(t.Context())
			second.Discard(t.Context())
			if keys := len(keysOf(t, kv, "")); keys != 1+max(1, (size+chunk-1)/chunk) {
				t.Errorf("%d bytes are kept under %d keys", size, keys)
			}
			if got, err := blobs.ReadAll(t.Context(), first.Digest()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes are kept as %d: %v", size, len(got), err)
			}
			must(t, blobs.Release(t.Context(), "a", first.Digest()))
			must(t, blobs.Release(t.Context(), "b", first.Digest()))
			if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
				t.Errorf("what is left of %d released bytes (-want +got):\n%s", size, diff)
			}
		}
	})
}

func TestStagedTake(t *testing.T) {
	kv := memory.New()
	blobs := store.NewBlobs(kv)
	_, _, err := blobs.Take(t.Context(), bytes.NewReader(content(chunk+1)), chunk)
	wantKind(t, "a limit is a limit", err, nf.TooLarge)
	given := stage(t, blobs, 1)
	taken, done, err := blobs.Take(t.Context(), given, 0)
	must(t, err)
	if done(); taken != given || len(keysOf(t, kv, "chunks/")) != 1 {
		t.Error("staged content is not taken as it is")
	}
	given.Discard(t.Context())
	_, done, err = blobs.Take(t.Context(), bytes.NewReader(content(1)), 1)
	must(t, err)
	done()
	if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestStagedAbandoned finishes uploads that are neither read nor kept.
func TestStagedAbandoned(t *testing.T) {
	for _, size := range []int{1, 2 * chunk} {
		kv := memory.New()
		blobs := store.NewBlobs(kv)
		s := stage(t, blobs, size)
		finish(t, blobs, 1)
		_, err := s.ReadAt(make([]byte, 1), 0)
		wantKind(t, "its chunks are gone", err, nf.Timeout)
		wantKind(t, "it is not kept without them", s.Keep(t.Context(), "user"), nf.Timeout)
		s.Discard(t.Context())
		if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
	}
}

// TestStagedBeats reads large content once. The number of the upload changes, so
// the search for abandoned uploads leaves it alone.
func TestStagedBeats(t *testing.T) {
	const beat = 1024
	blobs := store.NewBlobs(memory.New())
	s, err := blobs.Stage(t.Context(), io.LimitReader(readFunc(func(p []byte) (int, error) { return len(p), nil }), 2*beat*chunk), math.MaxInt64)
	must(t, err)
	numbers := map[int]bool{}
	p := make([]byte, 1)
	for n := range int64(2 * beat) {
		_, err := s.ReadAt(p, n*chunk)
		must(t, err)
		if n%(beat/2) == 0 {
			left, err := blobs.Unfinished(t.Context())
			must(t, err)
			for _, number := range left {
				numbers[number] = true
			}
		}
	}
	must(t, s.Keep(t.Context(), "user"))
	if len(numbers) != 2 {
		t.Errorf("the upload has the numbers %v while it is read, want two", numbers)
	}
}
