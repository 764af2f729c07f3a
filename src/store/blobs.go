package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	blobPrefix  = "blobs/"
	chunkPrefix = "chunks/"
)

// Blobs keeps content of any size in a KV, addressed by its digest:
// "sha256:<hex>". The same content is kept once, for as long as a user holds
// it: users are names that the callers choose, and a name that holds twice
// holds once. Whoever must not lose a blob holds it under a name of its own.
//
// The chunks of an upload have keys of their own until a manifest, written
// last, names them. An upload that was cut by a crash leaves chunks that no
// manifest names; Sweep removes them.
type Blobs struct {
	kv        KV
	manifests Table[manifest]
}

// manifest is the record of one blob, under its digest. Who removes it, removes
// the chunks afterwards.
type manifest struct {
	Size   int64    `json:"size"`
	Chunks int      `json:"chunks"`
	Upload string   `json:"upload"` // the chunks are those of this upload
	Users  []string `json:"users"`  // sorted, never empty
}

// NewBlobs returns the blobs that are kept in the KV, under the keys "blobs/"
// and "chunks/".
func NewBlobs(kv KV) Blobs {
	return Blobs{kv: kv, manifests: NewTable[manifest](kv, blobPrefix, "blob")}
}

// Put stores what r yields, held by the user, and returns its digest and size
// in bytes. Content above the limit is nf.TooLarge, and an error of r is
// returned with its kind; nothing stays behind then, as far as the database can
// still be talked to. When the database fails, the blob may have been stored
// all the same, and putting it again is harmless.
func (b Blobs) Put(ctx context.Context, user string, r io.Reader, limit int64) (digest string, size int64, err error) {
	up := &upload{kv: b.kv, id: rand.Text()}
	digest, err = up.write(ctx, r, limit)
	if err != nil {
		up.discard(ctx)
		return "", 0, err
	}
	m, err := b.register(ctx, digest, manifest{Size: up.size, Chunks: up.chunks, Upload: up.id, Users: []string{user}})
	if err != nil {
		// Whether the manifest was written is unknown, so the chunks stay.
		return "", 0, err
	}
	if m.Upload != up.id {
		up.discard(ctx)
	}
	return digest, up.size, nil
}

// register writes the manifest, or adds its users to the one that is there, and
// returns the one that is in force.
func (b Blobs) register(ctx context.Context, digest string, m manifest) (manifest, error) {
	for {
		err := b.manifests.Insert(ctx, digest, m)
		if nf.KindOf(err) != nf.Exists {
			return m, err
		}
		there, err := b.hold(ctx, m.Users[0], digest)
		if nf.KindOf(err) != nf.NotFound {
			return there, err
		}
		// Its last user released it between the two calls.
	}
}

// Hold adds a user to a blob, or fails with nf.NotFound.
func (b Blobs) Hold(ctx context.Context, user, digest string) error {
	_, err := b.hold(ctx, user, digest)
	return err
}

func (b Blobs) hold(ctx context.Context, user, digest string) (manifest, error) {
	return b.manifests.Update(ctx, digest, func(m *manifest) error {
		m.Users = nf.Hold(m.Users, user)
		return nil
	})
}

// Release takes a user away from a blob, and removes the blob with its last
// user. That the user does not hold it, or that it does not exist, is no error:
// releasing twice is releasing once.
func (b Blobs) Release(ctx context.Context, user, digest string) error {
	m, err := b.manifests.change(ctx, "release", digest, func(m *manifest) (bool, error) {
		m.Users = nf.Release(m.Users, user)
		return len(m.Users) == 0, nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return nil
	}
	if err != nil || len(m.Users) > 0 {
		return err
	}
	up := &upload{kv: b.kv, id: m.Upload, chunks: m.Chunks}
	up.discard(ctx)
	return nil
}

// Open returns the content of a blob and its size in bytes, or nf.NotFound. The
// reader fetches a chunk at a time for as long as the context lasts, and holds
// nothing that must be closed. It fails with nf.Internal instead of handing out
// the last chunk when the content is not what the digest says, and with
// nf.NotFound when the blob is removed meanwhile.
func (b Blobs) Open(ctx context.Context, digest string) (content io.Reader, size int64, err error) {
	m, err := b.manifests.Get(ctx, digest)
	if err != nil {
		return nil, 0, err
	}
	fetch := func(n int) ([]byte, error) {
		e, err := b.kv.Get(ctx, chunkKey(m.Upload, n))
		if err != nil {
			return nil, nf.E(b.lost(ctx, digest, m, err), "read", "blob "+strconv.Quote(digest), err)
		}
		return e.Value, nil
	}
	return &reader{digest: digest, chunks: m.Chunks, fetch: fetch, sum: sha256.New()}, m.Size, nil
}

// lost returns the kind of a failure to read a chunk. A chunk that is missing
// while the manifest still names it is damage.
func (b Blobs) lost(ctx context.Context, digest string, m manifest, err error) nf.Kind {
	if nf.KindOf(err) != nf.NotFound {
		return nf.KindOf(err)
	}
	switch now, err := b.manifests.Get(ctx, digest); {
	case err != nil:
		return nf.KindOf(err)
	case now.Upload == m.Upload:
		return nf.Internal
	default:
		return nf.NotFound
	}
}

// ReadAll returns the content of a blob, or nf.NotFound.
func (b Blobs) ReadAll(ctx context.Context, digest string) ([]byte, error) {
	r, _, err := b.Open(ctx, digest)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Sweep removes the chunks that no manifest names, and returns how many they
// were. It would take those of an upload that is going on, so it runs before
// anything else uses the database, and never on one that others use too. It
// reads everything that is kept as a chunk.
func (b Blobs) Sweep(ctx context.Context) (removed int, err error) {
	named := map[string]bool{}
	for m, err := range b.manifests.All(ctx, "") {
		if err != nil {
			return 0, err
		}
		named[m.Upload] = true
	}
	var orphans []string
	for e, err := range b.kv.List(ctx, chunkPrefix) {
		if err != nil {
			return 0, fmt.Errorf("cannot list the chunks of blobs: %w", err)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(e.Key, chunkPrefix), "/")
		if !named[id] {
			orphans = append(orphans, e.Key)
		}
	}
	for i, key := range orphans {
		if err := b.kv.Delete(ctx, key, Any); err != nil {
			return i, fmt.Errorf("cannot remove a chunk of an unfinished upload: %w", err)
		}
	}
	return len(orphans), nil
}
