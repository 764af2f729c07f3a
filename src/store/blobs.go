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
	"sort"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	blobPrefix   = "blobs/"
	chunkPrefix  = "chunks/"
	uploadPrefix = "uploads/"
)

// Blobs stores content of any size in a KV, addressed by its digest:
// "sha256:<hex>". Equal content is stored once, for as long as a user holds it.
// A user is a name that the caller chooses, and one name holds a blob at most
// once. A caller that must not lose a blob holds it under its own name.
//
// The chunks of an upload have unique keys until a manifest, written last,
// names them. A record is written before the first chunk, and before such a manifest
// is deleted: it says that chunks exist that may have no manifest. After a
// crash, stale chunks are found by these records, which Unfinished lists.
type Blobs struct {
	kv        KV
	manifests Table[manifest]
	uploads   Table[unfinished]
}

// unfinished is the record of an upload while its chunks are written or
// deleted.
type unfinished struct {
	ID     string `json:"id"`
	Digest string `json:"digest,omitempty"` // of the blob that is being deleted; empty while the chunks are written
	Beats  int    `json:"beats,omitempty"`  // grows while staged content is read
}

// Use is one user's hold on one blob.
type Use struct {
	User   string
	Digest string
}

// manifest is the record of one blob, under its digest. The caller that deletes
// it deletes the chunks afterwards.
type manifest struct {
	Size    int64    `json:"size"`
	Chunks  int      `json:"chunks"`
	Upload  string   `json:"upload,omitempty"`  // the upload that wrote the chunks; empty if the content is in the manifest
	Users   []string `json:"users"`             // sorted, never empty
	Text    string   `json:"text,omitempty"`    // the only chunk, of a small blob that is UTF-8
	Content []byte   `json:"content,omitempty"` // the only chunk, of another small blob
}

// small returns the content that is in the manifest.
func (m manifest) small() []byte {
	if m.Text != "" {
		return []byte(m.Text)
	}
	return m.Content
}

// NewBlobs returns the blobs in the KV, under the keys "blobs/", "chunks/" and
// "uploads/".
func NewBlobs(kv KV) Blobs {
	return Blobs{kv: kv, manifests: NewTable[manifest](kv, blobPrefix, "blob"), uploads: NewTable[unfinished](kv, uploadPrefix, "upload")}
}

// Put stores the content of r, held by the user, and returns its digest and
// size in bytes. It holds one chunk in memory. It returns nf.TooLarge for content
// above the limit, nf.Timeout if r stalled for so long that Finish has deleted the
// chunks, and an error of r unchanged. In these cases it deletes what it has
// stored, unless the database is unreachable. If the database fails, the blob may have been
// stored anyway, and putting it again is harmless.
func (b Blobs) Put(ctx context.Context, user string, r io.Reader, limit int64) (digest string, size int64, err error) {
	up, err := b.write(ctx, r, limit)
	if err == nil && up.chunks > 1 { // a single chunk was written a moment ago
		err = b.present(ctx, up.id)
	}
	if err != nil {
		b.discard(ctx, up)
		return "", 0, err
	}
	if err := b.keep(ctx, user, up); err != nil {
		return "", 0, err
	}
	return up.digest, up.size, nil
}

// write stores the chunks of a new upload. If it fails, the caller discards the
// upload.
func (b Blobs) write(ctx context.Context, r io.Reader, limit int64) (*upload, error) {
	up := &upload{kv: b.kv, id: rand.Text()}
	if err := b.uploads.Insert(ctx, up.id, unfinished{ID: up.id}); err != nil {
		return up, nf.E(nf.KindOf(err), "store", "content", err)
	}
	return up, up.write(ctx, r, limit)
}

// discard deletes the chunks of an upload and then its record.
func (b Blobs) discard(ctx context.Context, up *upload) { b.finish(ctx, up.id, up.discard(ctx)) }

// keep makes an upload a blob that the user holds. If it fails, it is unknown
// whether the manifest was written, so the chunks stay.
func (b Blobs) keep(ctx context.Context, user string, up *upload) error {
	m, err := b.register(ctx, up.digest, manifest{Size: up.size, Chunks: up.chunks, Upload: up.id, Users: []string{user}})
	if err != nil {
		return err
	}
	if m.Upload != up.id {
		err = up.discard(ctx)
	}
	b.finish(ctx, up.id, err)
	return nil
}

// present returns nf.Timeout if an upload was finished as an abandoned one.
func (b Blobs) present(ctx context.Context, id string) error {
	_, err := b.uploads.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return abandoned()
	}
	return err
}

func abandoned() error {
	return nf.E(nf.Timeout, "store", "content", errors.New("it stalled, and the upload was given up; send it again"))
}

// finish deletes the record of an upload, unless some of its chunks could not
// be deleted. It does so even if the context has ended, because nothing else
// would soon. For the same reason it ignores a failure.
func (b Blobs) finish(ctx context.Context, id string, err error) {
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
	defer cancel()
	_ = b.uploads.Delete(ctx, id) // on failure, Unfinished lists it again
}

// register writes the manifest, or adds its user to the existing one, and
// returns the one that is stored.
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

// Hold adds a user to a blob. It returns nf.NotFound if there is no such blob.
func (b Blobs) Hold(ctx context.Context, user, digest string) error {
	_, err := b.hold(ctx, user, digest)
	return err
}

func (b Blobs) hold(ctx context.Context, user, digest string) (manifest, error) {
	return b.manifests.Update(ctx, digest, func(m *manifest) error { m.hold(user); return nil })
}

// hold adds a user.
func (m *manifest) hold(user string) {
	if i, found := slices.BinarySearch(m.Users, user); !found {
		m.Users = slices.Insert(m.Users, i, user)
	}
}

// Release removes a user from a blob, and deletes the blob with its last user.
// It returns nil if the user does not hold the blob, or the blob does not
// exist, so it is idempotent.
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
	case len(m.Users) == 0 && m.Upload != "":
		up := &upload{kv: b.kv, id: m.Upload, chunks: m.Chunks}
		b.finish(ctx, up.id, up.discard(ctx))
	case announced != "":
		b.finish(ctx, announced, nil) // another user has held it in between
	}
	return nil
}

var errLast = errors.New("the blob is no longer used")

// release removes a user from a manifest. It removes the last one only if a
// record already announces the deletion of the upload that the manifest names;
// otherwise it returns errLast.
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
// reader fetches one chunk at a time until the context ends, and need not be
// closed. If the content does not match the digest, it returns nf.Internal
// instead of the last chunk. If the blob is deleted during the read, it returns
// nf.NotFound.
func (b Blobs) Open(ctx context.Context, digest string) (content io.Reader, size int64, err error) {
	m, err := b.manifests.Get(ctx, digest)
	if err != nil {
		return nil, 0, err
	}
	return &reader{digest: digest, chunks: m.Chunks, fetch: b.fetcher(ctx, digest, m), sum: sha256.New()}, m.Size, nil
}

// Content returns the content of a blob for reading at any offset, or
// nf.NotFound. Content that does not match the digest is not detected.
func (b Blobs) Content(ctx context.Context, digest string) (*Content, error) {
	m, err := b.manifests.Get(ctx, digest)
	if err != nil {
		return nil, err
	}
	return newContent(m.Size, b.fetcher(ctx, digest, m)), nil
}

// fetcher returns a function that reads a chunk of a blob.
func (b Blobs) fetcher(ctx context.Context, digest string, m manifest) func(n int) ([]byte, error) {
	return func(n int) ([]byte, error) {
		if m.Upload == "" {
			return m.small(), nil
		}
		e, err := b.kv.Get(ctx, chunkKey(m.Upload, n))
		if err != nil {
			return nil, nf.E(b.lost(ctx, digest, m, err), "read", "blob "+strconv.Quote(digest), err)
		}
		return e.Value, nil
	}
}

// lost returns the kind of a failure to read a chunk. A missing chunk that the
// manifest still names is damage: nf.Internal.
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

// Uses yields all users with the blobs that they hold.
func (b Blobs) Uses(ctx context.Context) iter.Seq2[Use, error] {
	return func(yield func(Use, error) bool) {
		for e, err := range b.kv.List(ctx, blobPrefix, "") {
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

// Unfinished returns the uploads whose chunks are being written, read before a
// user holds them, or deleted, or were when a process crashed. The number of each
// is that of its chunks and beats. While an upload is in progress, it changes.
func (b Blobs) Unfinished(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	for u, err := range b.uploads.All(ctx, "") {
		chunks := 0
		if err == nil {
			chunks, err = b.written(ctx, u.ID)
		}
		if err != nil {
			return nil, err
		}
		out[u.ID] = chunks + u.Beats
	}
	return out, nil
}

// written returns how many chunks of an upload there are. The first chunk is
// written first and deleted last, so the chunks have no gaps, and a search needs
// few reads.
func (b Blobs) written(ctx context.Context, id string) (int, error) {
	var failed error
	missing := func(n int) bool {
		_, err := b.kv.Get(ctx, chunkKey(id, n))
		if err != nil && nf.KindOf(err) != nf.NotFound {
			failed = fmt.Errorf("cannot read a chunk of an unfinished upload: %w", err)
		}
		return err != nil
	}
	most := 1
	for !missing(most - 1) {
		most *= 2
	}
	n := sort.Search(most-1, missing)
	return n, failed
}

// Finish completes an upload after a crash: it keeps the chunks if a manifest
// names them, and deletes them otherwise. It must not be called while the
// upload is in progress.
func (b Blobs) Finish(ctx context.Context, id string) error {
	for m, err := range b.manifests.All(ctx, "") {
		if err != nil {
			return err
		}
		if m.Upload == id {
			return gone(b.uploads.Delete(ctx, id))
		}
	}
	chunks, err := b.written(ctx, id)
	if err != nil {
		return err
	}
	up := &upload{kv: b.kv, id: id, chunks: chunks}
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
