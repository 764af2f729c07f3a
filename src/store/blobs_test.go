package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
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

const chunk = 256 << 10

// content returns bytes in which no chunk is like another.
func content(size int) []byte {
	out := make([]byte, 0, size+16)
	for i := 0; len(out) < size; i++ {
		out = fmt.Appendf(out, "%d of %d,", i, size)
	}
	return out[:size]
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func put(t *testing.T, b store.Blobs, user string, size int) (digest string) {
	t.Helper()
	digest, _, err := b.Put(t.Context(), user, bytes.NewReader(content(size)), math.MaxInt64)
	must(t, err)
	return digest
}

// TestBlobs puts content of sizes around the edges of chunks, reads it in
// different ways, and removes it without a trace.
func TestBlobs(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		blobs := store.NewBlobs(kv)
		rapid.Check(t, func(rt *rapid.T) {
			edge := rapid.IntRange(0, 3).Draw(rt, "chunks") * chunk
			size := max(0, edge+rapid.IntRange(-2, 2).Draw(rt, "more"))
			want := content(size)
			var r io.Reader = bytes.NewReader(want)
			if rapid.Bool().Draw(rt, "halting") {
				r = iotest.DataErrReader(iotest.HalfReader(r))
			}
			limit := int64(size) + rapid.Int64Range(0, 1).Draw(rt, "spare")
			digest, n, err := blobs.Put(t.Context(), "user", r, limit)
			if err != nil || n != int64(size) || digest != digestOf(want) {
				rt.Fatalf("put of %d bytes: %d bytes, digest %s, error %v", size, n, digest, err)
			}
			if keys := len(keysOf(t, kv, "")); keys != 1+max(1, (size+chunk-1)/chunk) {
				rt.Errorf("%d bytes are kept under %d keys", size, keys)
			}
			got, err := blobs.ReadAll(t.Context(), digest)
			if err != nil || !bytes.Equal(got, want) {
				rt.Errorf("%d bytes came back as %d others, error %v", size, len(got), err)
			}
			must(t, blobs.Release(t.Context(), "user", digest))
			if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
				rt.Fatalf("what is left (-want +got):\n%s", diff)
			}
		})
	})
}

func TestBlobsReader(t *testing.T) {
	blobs := store.NewBlobs(memory.New())
	for _, size := range []int{0, 1, 2*chunk + 5} {
		r, n, err := blobs.Open(t.Context(), put(t, blobs, "user", size))
		must(t, err)
		if n != int64(size) {
			t.Errorf("the size is %d, want %d", n, size)
		}
		if err := iotest.TestReader(r, content(size)); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestBlobsCost(t *testing.T) {
	for _, size := range []int{0, 1, chunk} {
		writes := 0
		blobs := store.NewBlobs(storetest.Failing{KV: memory.New(), Fail: func(method, key string) error {
			if writes++; method != "Put" && (method != "Delete" || !strings.HasPrefix(key, "uploads/")) {
				t.Errorf("%d bytes: %s of %s", size, method, key)
			}
			return nil
		}})
		put(t, blobs, "user", size)
		if writes != 4 {
			t.Errorf("%d bytes cost %d writes, want 4", size, writes)
		}
	}
}

func TestBlobsRefuse(t *testing.T) {
	down := nf.E(nf.Unreachable, "write", "a key", nil)
	slow := nf.E(nf.Timeout, "read", "the request", nil)
	third := func(method, key string) error {
		if method == "Put" && strings.HasSuffix(key, "/00000002") {
			return down
		}
		return nil
	}
	big := func() io.Reader { return bytes.NewReader(content(3 * chunk)) }
	cases := map[string]struct {
		reason  string
		content io.Reader
		limit   int64
		fail    func(method, key string) error
		kind    nf.Kind
	}{
		"OneByteMore": {"a limit is a limit", big(), 3*chunk - 1, nil, nf.TooLarge},
		"MuchMore":    {"the rest need not be read", iotest.TimeoutReader(big()), 10, nil, nf.TooLarge},
		"NoLimit":     {"nothing fits into nothing", strings.NewReader("x"), 0, nil, nf.TooLarge},
		"Reader":      {"the reader's error is kept", io.MultiReader(big(), iotest.ErrReader(slow)), math.MaxInt64, nil, nf.Timeout},
		"Torn":        {"content that breaks off is not complete", io.MultiReader(big(), iotest.ErrReader(io.ErrUnexpectedEOF)), math.MaxInt64, nil, nf.Internal},
		"Database":    {"the database fails in the middle", big(), math.MaxInt64, third, nf.Unreachable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kv := memory.New()
			_, _, err := store.NewBlobs(storetest.Failing{KV: kv, Fail: c.fail}).Put(t.Context(), "user", c.content, c.limit)
			wantKind(t, c.reason, err, c.kind)
			if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
				t.Errorf("%s: what is left (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestBlobsClientGoesAway(t *testing.T) {
	kv := memory.New()
	ctx, cancel := context.WithCancel(t.Context())
	r := io.MultiReader(bytes.NewReader(content(2*chunk)), readFunc(func([]byte) (int, error) {
		cancel()
		return 0, ctx.Err()
	}))
	_, _, err := store.NewBlobs(kv).Put(ctx, "user", r, math.MaxInt64)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that of the reader", err)
	}
	if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
		t.Errorf("what is left of an upload that was cut (-want +got):\n%s", diff)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestBlobsUsers(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		ctx, blobs := t.Context(), store.NewBlobs(kv)
		digest := put(t, blobs, "a", chunk+1)
		before := keysOf(t, kv, "")
		if again := put(t, blobs, "b", chunk+1); again != digest {
			t.Errorf("the same content has the digests %s and %s", digest, again)
		}
		must(t, blobs.Hold(ctx, "a", digest))
		must(t, blobs.Hold(ctx, "c", digest))
		for _, user := range []string{"a", "a", "stranger", "c"} {
			must(t, blobs.Release(ctx, user, digest))
			if diff := cmp.Diff(before, keysOf(t, kv, "")); diff != "" {
				t.Errorf("after %s let go, b still holds (-want +got):\n%s", user, diff)
			}
		}
		must(t, blobs.Release(ctx, "b", digest))
		must(t, blobs.Release(ctx, "b", digest))
		if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
			t.Errorf("after the last user let go (-want +got):\n%s", diff)
		}
		wantKind(t, "there is nothing to hold", blobs.Hold(ctx, "a", digest), nf.NotFound)
		_, _, err := blobs.Open(ctx, digest)
		wantKind(t, "there is nothing to open", err, nf.NotFound)
		_, err = blobs.ReadAll(ctx, digest)
		wantKind(t, "there is nothing to read", err, nf.NotFound)
	})
}

// TestBlobsRace has many put, read and release the same content: every holder of
// it can read it, and in the end nothing is left.
func TestBlobsRace(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		const users, rounds = 6, 12
		blobs, want := store.NewBlobs(kv), content(chunk+1)
		var all errgroup.Group
		for user := range users {
			all.Go(func() error {
				name := strconv.Itoa(user)
				for range rounds {
					digest, _, err := blobs.Put(t.Context(), name, bytes.NewReader(want), math.MaxInt64)
					if err != nil {
						return err
					}
					got, err := blobs.ReadAll(t.Context(), digest)
					if err != nil || !bytes.Equal(got, want) {
						return fmt.Errorf("user %s holds it and reads %d bytes: %w", name, len(got), err)
					}
					if err := blobs.Release(t.Context(), name, digest); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(t, all.Wait())
		if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
	})
}

// TestBlobsReleasedMeanwhile has the last user let go between a failed creation
// of the manifest and the hold that follows.
func TestBlobsReleasedMeanwhile(t *testing.T) {
	kv := memory.New()
	digest := put(t, store.NewBlobs(kv), "first", 10)
	released := false
	blobs := store.NewBlobs(storetest.Failing{KV: kv, Fail: func(method, _ string) error {
		if method == "Get" && !released {
			released = true
			return store.NewBlobs(kv).Release(t.Context(), "first", digest)
		}
		return nil
	}})
	put(t, blobs, "second", 10)
	if _, err := store.NewBlobs(kv).ReadAll(t.Context(), digest); err != nil || !released {
		t.Errorf("what the second user put is lost: %v", err)
	}
}

// TestBlobsLostAnswer has the database carry out a call and fail to say so. The
// blob must be whole or gone afterwards, and the caller's second attempt works.
func TestBlobsLostAnswer(t *testing.T) {
	kv, lost := memory.New(), false
	lossy := store.NewBlobs(storetest.Failing{KV: kv, Lose: func(method, key string) error {
		if !strings.HasPrefix(key, "blobs/") || method == "Get" || lost {
			return nil
		}
		lost = true
		return nf.E(nf.Unreachable, "write", key, nil)
	}})
	want := content(2 * chunk)
	_, _, err := lossy.Put(t.Context(), "user", bytes.NewReader(want), math.MaxInt64)
	wantKind(t, "the answer to the manifest was lost", err, nf.Unreachable)
	for range 2 {
		got, err := lossy.ReadAll(t.Context(), digestOf(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes are there after a lost answer, error %v", len(got), err)
		}
		put(t, lossy, "user", 2*chunk)
	}

	lost = false
	wantKind(t, "the answer to the removal was lost", lossy.Release(t.Context(), "user", digestOf(want)), nf.Unreachable)
	must(t, lossy.Release(t.Context(), "user", digestOf(want)))
	finish(t, lossy, 1) // that whose answers were lost, twice
	if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestBlobsDamage(t *testing.T) {
	cases := map[string]struct {
		reason string
		damage func(ctx context.Context, kv store.KV, chunks []string) error
	}{
		"Changed":   {"a byte is wrong in the first chunk", overwrite(0, "x")},
		"Last":      {"a byte is wrong in the last chunk", overwrite(2, "x")},
		"Truncated": {"a chunk is empty", overwrite(1, "")},
		"Missing":   {"a chunk is gone", removeSecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kv := memory.New()
			blobs := store.NewBlobs(kv)
			digest := put(t, blobs, "user", 2*chunk+1)
			must(t, c.damage(t.Context(), kv, keysOf(t, kv, "chunks/")))
			r, _, err := blobs.Open(t.Context(), digest)
			must(t, err)
			n, err := io.Copy(io.Discard, r)
			wantKind(t, c.reason, err, nf.Internal)
			if n > 2*chunk {
				t.Errorf("%s: %d bytes were handed out before it was noticed", c.reason, n)
			}
			_, err = blobs.ReadAll(t.Context(), digest)
			wantKind(t, c.reason, err, nf.Internal)
		})
	}
}

func removeSecond(ctx context.Context, kv store.KV, chunks []string) error {
	return kv.Delete(ctx, chunks[1], store.Any)
}

func overwrite(n int, value string) func(context.Context, store.KV, []string) error {
	return func(ctx context.Context, kv store.KV, chunks []string) error {
		_, err := kv.Put(ctx, chunks[n], []byte(value), store.Any)
		return err
	}
}

func TestBlobsRemovedWhileRead(t *testing.T) {
	for name, again := range map[string]bool{"Gone": false, "PutAgain": true} {
		t.Run(name, func(t *testing.T) {
			blobs := store.NewBlobs(memory.New())
			digest := put(t, blobs, "user", 2*chunk)
			r, _, err := blobs.Open(t.Context(), digest)
			must(t, err)
			_, err = io.ReadFull(r, make([]byte, 10))
			must(t, err)
			must(t, blobs.Release(t.Context(), "user", digest))
			if again {
				put(t, blobs, "user", 2*chunk)
			}
			_, err = io.Copy(io.Discard, r)
			wantKind(t, "that is no damage", err, nf.NotFound)
		})
	}
}

func TestBlobsReadFails(t *testing.T) {
	kv := memory.New()
	digest := put(t, store.NewBlobs(kv), "user", 10)
	down := store.NewBlobs(storetest.Failing{KV: kv, Fail: func(_, key string) error {
		if strings.HasPrefix(key, "chunks/") {
			return nf.E(nf.Unreachable, "read", key, nil)
		}
		return nil
	}})
	_, err := down.ReadAll(t.Context(), digest)
	wantKind(t, "the database is down", err, nf.Unreachable)
}

// finish ends the uploads that were left alone.
func finish(t *testing.T, blobs store.Blobs, want int) {
	t.Helper()
	left, err := blobs.Unfinished(t.Context())
	must(t, err)
	if len(left) != want {
		t.Errorf("%d uploads are unfinished, want %d", len(left), want)
	}
	for id := range left {
		must(t, blobs.Finish(t.Context(), id))
	}
}
