package store_test

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// putInline stores content by an op.
func putInline(t *testing.T, kv store.KV, user string, content []byte) string {
	t.Helper()
	op, digest, err := store.NewBlobs(kv).PutOp(t.Context(), user, content)
	must(t, err)
	_, err = store.Write(t.Context(), kv, []store.Op{op})
	must(t, err)
	return digest
}

// TestBlobsInline stores small content in one record, which is then a blob like any
// other.
func TestBlobsInline(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		blobs := store.NewBlobs(kv)
		for _, size := range []int{0, 1, store.MaxInline} {
			want := content(size)
			digest := putInline(t, kv, "first", want)
			if diff := cmp.Diff([]string{"blobs/" + digestOf(want)}, keysOf(t, kv, "")); diff != "" || digest != digestOf(want) {
				t.Errorf("keys of %d bytes with digest %s (-want +got):\n%s", size, digest, diff)
			}
			if again := putInline(t, kv, "second", want); again != digest {
				t.Errorf("equal content has the digests %s and %s", digest, again)
			}
			op, err := blobs.HoldOp(t.Context(), "third", digest)
			must(t, err)
			_, err = store.Write(t.Context(), kv, []store.Op{op})
			must(t, err)
			if same := put(t, blobs, "fourth", size); same != digest {
				t.Errorf("equal content that is uploaded has the digest %s, want %s", same, digest)
			}
			got, err := blobs.ReadAll(t.Context(), digest)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back as %d others, error %v", size, len(got), err)
			}
			part, err := blobs.Content(t.Context(), digest)
			must(t, err)
			got, err = io.ReadAll(io.NewSectionReader(part, 0, math.MaxInt64))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back in parts as %d others, error %v", size, len(got), err)
			}
			for _, user := range []string{"first", "second", "third"} {
				must(t, blobs.Release(t.Context(), user, digest))
			}
			if n := len(keysOf(t, kv, "")); n != 1 {
				t.Errorf("a blob with one user left has %d keys", n)
			}
			must(t, blobs.Release(t.Context(), "fourth", digest))
			if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		}
	})
}

// TestBlobsInlineContent stores text and bytes that are no text.
func TestBlobsInlineContent(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		for reason, want := range map[string]string{
			"text is stored as it is": "{\"kind\":\"ConfigMap\",\"text\":\"<ü\u2028\ufffd\x00>\"}",
			"bytes are stored":        "\xff\x00{",
		} {
			digest := putInline(t, kv, "user", []byte(want))
			got, err := store.NewBlobs(kv).ReadAll(t.Context(), digest)
			if err != nil || string(got) != want {
				t.Errorf("%s: %q came back as %q, error %v", reason, want, got, err)
			}
		}
	})
}

// TestBlobsReleaseOp releases blobs by ops.
func TestBlobsReleaseOp(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(t *testing.T, kv store.KV) (digest string)
		release []string
		left    int // keys
	}{
		"LastUser": {"its record has the content", func(t *testing.T, kv store.KV) string { return putInline(t, kv, "a", content(9)) }, []string{"a"}, 0},
		"OtherUser": {"another user still holds it", func(t *testing.T, kv store.KV) string {
			putInline(t, kv, "a", content(9))
			return putInline(t, kv, "b", content(9))
		}, []string{"a"}, 1},
		"SeveralUsers": {"they are its last users", func(t *testing.T, kv store.KV) string {
			putInline(t, kv, "a", content(9))
			return putInline(t, kv, "b", content(9))
		}, []string{"a", "b"}, 0},
		"NoUser":  {"it never held the blob", func(t *testing.T, kv store.KV) string { return putInline(t, kv, "a", content(9)) }, []string{"c"}, 1},
		"Chunks":  {"the chunks are deleted at once", func(t *testing.T, kv store.KV) string { return put(t, store.NewBlobs(kv), "a", 2*chunk) }, []string{"a"}, 0},
		"Nothing": {"there is no such blob", func(*testing.T, store.KV) string { return digestOf(nil) }, []string{"a"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, kv store.KV) {
				digest := c.prepare(t, kv)
				ops, err := store.NewBlobs(kv).ReleaseOp(t.Context(), digest, c.release...)
				must(t, err)
				_, err = store.Write(t.Context(), kv, ops)
				must(t, err)
				if left := keysOf(t, kv, ""); len(left) != c.left {
					t.Errorf("%s: left are %v", c.reason, left)
				}
			})
		})
	}
}

// TestBlobsInlineAfterUpload holds content by an op that was uploaded before.
func TestBlobsInlineAfterUpload(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		blobs := store.NewBlobs(kv)
		digest := put(t, blobs, "first", 10)
		putInline(t, kv, "second", content(10))
		must(t, blobs.Release(t.Context(), "first", digest))
		got, err := blobs.ReadAll(t.Context(), digest)
		if err != nil || !bytes.Equal(got, content(10)) {
			t.Errorf("the content came back as %q, error %v", got, err)
		}
		must(t, blobs.Release(t.Context(), "second", digest))
		if diff := cmp.Diff([]string{}, keysOf(t, kv, "")); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
	})
}

func TestBlobsInlineRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		blobs := store.NewBlobs(kv)
		_, _, err := blobs.PutOp(t.Context(), "user", content(store.MaxInline+1))
		wantKind(t, "a record has its limit", err, nf.TooLarge)
		_, err = blobs.HoldOp(t.Context(), "user", digestOf(nil))
		wantKind(t, "there is no such blob", err, nf.NotFound)
		first, _, err := blobs.PutOp(t.Context(), "first", content(1))
		must(t, err)
		second, _, err := blobs.PutOp(t.Context(), "second", content(1))
		must(t, err)
		_, err = store.Write(t.Context(), kv, []store.Op{first})
		must(t, err)
		_, err = store.Write(t.Context(), kv, []store.Op{second})
		wantKind(t, "another caller has stored it", err, nf.Exists)
	})
}
