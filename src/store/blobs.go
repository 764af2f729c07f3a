package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	blobPrefix   = "blobs/"
	chunkPrefix  = "chunks/"
	uploadPrefix = "uploads/"
)

// Blobs keeps content of any size in a KV, addressed by its digest:
// "sha256:<hex>". The same content is kept once, for as long as a user holds
// it: users are names that the callers choose, and a name that holds twice
// holds once. Whoever must not lose a blob holds it under a name of its own.
//
// The chunks of an upload have keys of their own until a manifest, written
// last, names them. Before the first is written, and before a manifest goes, a
// record says that there are chunks which no manifest may name: what a crash
// leaves behind is found by these records. Unfinished lists them.
type Blobs struct {
	kv        KV
	manifests Table[manifest]
	uploads   Table[unfinished]
}

// unfinished is the record of an upload while its chunks come or go.
type unfinished struct {
	ID     string `json:"id"`
	Digest string `json:"digest,omitempty"` // of the blob that goes; empty while the chunks come
}

// Use is one user's hold on one blob.
type Use struct {
	User   string
	Digest string
}

// manifest is the record of one blob, under its digest. Who removes it, removes
// the chunks afterwards.
type manifest struct {
	Size   int64    `json:"size"`
	Chunks int      `json:"chunks"`
	Upload string   `json:"upload"` // the chunks are those of this upload
	Users  []string `json:"users"`  // sorted, never empty
}

// NewBlobs returns the blobs that are kept in the KV, under the keys "blobs/",
// "chunks/" and "uploads/".
func NewBlobs(kv KV) Blobs {
	return Blobs{kv: kv, manifests: NewTable[manifest](kv, blobPrefix, "blob"), uploads: NewTable[unfinished](kv, uploadPrefix, "upload")}
}

// Put stores what r yields, held by the user, and returns its digest and size
// in bytes. Content above the limit is nf.TooLarge, and an error of r is
// returned with its kind; nothing stays behind then, as far as the database can
// still be talked to. When the database fails, the blob may have been stored
// all the same, and putting it again is harmless.
func (b Blobs) Put(ctx context.Context, user string, r io.Reader, limit int64) (digest string, size int64, err error) {
	up := &upload{kv: b.kv, id: rand.Text()}
	if err := b.uploads.Insert(ctx, up.id, unfinished{ID: up.id}); err != nil {
		return "", 0, nf.E(nf.KindOf(err), "store", "a blob", err)
	}
	digest, err = up.write(ctx, r, limit)
	if err != nil {
		b.finish(ctx, up.id, up.discard(ctx))
		return "", 0, err
	}
	m, err := b.register(ctx, digest, manifest{Size: up.size, Chunks: up.chunks, Upload: up.id, Users: []string{user}})
	if err != nil {
		// Whether the manifest was written is unknown, so the chunks stay.
		return "", 0, err
	}
	if m.Upload != up.id {
		err = up.discard(ctx)
	}
	b.finish(ctx, up.id, err)
	return digest, up.size, nil
}

// finish forgets an upload, unless some of its chunks could not be removed. It
// does so even if the context has ended, because nobody else will soon; and for
// the same reason a failure is not worth failing for.
func (b Blobs) finish(ctx context.Context, id string, err error) {
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
	defer cancel()
	_ = b.uploads.Delete(ctx, id) // Unfinished will show it again
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
		if i, found := slices.BinarySearch(m.Users, user); !found {
			m.Users = slices.Insert(m.Users, i, user)
		}
		return nil
	})
}

// Release takes a user away from a blob, and removes the blob with its last
// user. That the user does not hold it, or that it does not exist, is no error:
// releasing twice is releasing once.
func (b Blobs) Release(ctx context.Context, user, digest string) error {
	announced := ""
	m, err := b.release(ctx, user, digest, &announced)
	if errors.Is(err, errLast) {
		err = b.uploads.Put(ctx, announced, unfinished{ID: announced, Digest: digest})
		if err == nil {
			m, err = b.release(ctx, user, digest, &announced)
		}
	}
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return nil
	case err != nil:
		return err
	case len(m.Users) == 0:
		up := &upload{kv: b.kv, id: m.Upload, chunks: m.Chunks}
		b.finish(ctx, up.id, up.discard(ctx))
	case announced != "":
		b.finish(ctx, announced, nil) // another took hold of it in between
	}
	return nil
}

var errLast = errors.New("the blob has no user left")

// release takes a user away from a manifest. The last one goes only when the
// upload that the manifest names is announced to be on its way out; errLast asks
// for that.
func (b Blobs) release(ctx context.Context, user, digest string, announced *string) (manifest, error) {
	return b.manifests.change(ctx, "release", digest, func(m *manifest) (bool, error) {
		m.Users = slices.DeleteFunc(m.Users, func(has string) bool { return has == user })
		last := len(m.Users) == 0
		if last && *announced != m.Upload {
			*announced = m.Upload
			return false, errLast
		}
		return last, nil
	})
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

// Uses yields who holds which blob.
func (b Blobs) Uses(ctx context.Context) iter.Seq2[Use, error] {
	return func(yield func(Use, error) bool) {
		for e, err := range b.kv.List(ctx, blobPrefix) {
			var m manifest
			if err == nil {
				m, err = b.manifests.decode(e)
			}
			if err != nil {
				yield(Use{}, fmt.Errorf("cannot list blobs: %w", err))
				return
			}
			for _, user := range m.Users {
				// A digest has no character that a key would need to escape.
				if !yield(Use{User: user, Digest: strings.TrimPrefix(e.Key, blobPrefix)}, nil) {
					return
				}
			}
		}
	}
}

// Unfinished returns the uploads whose chunks come or go at this moment, or were
// left alone doing so.
func (b Blobs) Unfinished(ctx context.Context) ([]string, error) {
	var ids []string
	for u, err := range b.uploads.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		ids = append(ids, u.ID)
	}
	return ids, nil
}

// Finish ends an upload that was left alone: its chunks stay if a manifest names
// them, and go otherwise. It must not be called while somebody is at it.
func (b Blobs) Finish(ctx context.Context, id string) error {
	for m, err := range b.manifests.All(ctx, "") {
		if err != nil {
			return err
		}
		if m.Upload == id {
			return gone(b.uploads.Delete(ctx, id))
		}
	}
	up := &upload{kv: b.kv, id: id}
	// Whoever was at it wrote the first chunk first and removed it last.
	for {
		_, err := b.kv.Get(ctx, chunkKey(id, up.chunks))
		if nf.KindOf(err) == nf.NotFound {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read a chunk of an unfinished upload: %w", err)
		}
		up.chunks++
	}
	if err := up.discard(ctx); err != nil {
		return fmt.Errorf("cannot remove a chunk of an unfinished upload: %w", err)
	}
	return gone(b.uploads.Delete(ctx, id))
}

func gone(err error) error {
	if nf.KindOf(err) == nf.NotFound {
		return nil
	}
	return err
}
