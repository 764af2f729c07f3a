package store

import (
	"context"
	"crypto/sha256"
	"slices"
	"unicode/utf8"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// MaxInline is the limit of the content of PutOp. With it, a record stays far below
// MaxValue.
const MaxInline = 64 << 10

// PutOp returns the op that stores content of at most MaxInline bytes, held by the
// user, and the digest of the content. The op fails if another caller stores or
// releases equal content at the same time.
func (b Blobs) PutOp(ctx context.Context, user string, content []byte) (Op, string, error) {
	sum := sha256.Sum256(content)
	digest := digestOf(sum[:])
	if err := CheckSize(blobPrefix+digest, content, MaxInline); err != nil {
		return Op{}, "", err
	}
	m, read, err := b.manifests.GetRevision(ctx, digest)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		m = manifest{Size: int64(len(content)), Chunks: 1}
		if utf8.Valid(content) { // text is shorter than base64, and compresses better
			m.Text = string(content)
		} else {
			m.Content = content
		}
	case err != nil:
		return Op{}, "", err
	}
	m.hold(user)
	op, err := b.manifests.op(digest, m, read)
	return op, digest, err
}

// ReleaseOp returns the op that removes users from a blob, and deletes the blob with
// its last user. There is none if the blob does not exist. If chunks have to be deleted,
// too, ReleaseOp releases the blob at once. The op fails if the users change at the same
// time.
func (b Blobs) ReleaseOp(ctx context.Context, digest string, users ...string) ([]Op, error) {
	m, read, err := b.manifests.GetRevision(ctx, digest)
	if err != nil {
		return nil, nf.IgnoreNotFound(err)
	}
	m.Users = slices.DeleteFunc(m.Users, func(has string) bool { return slices.Contains(users, has) })
	var op Op
	switch {
	case len(m.Users) > 0:
		op, err = b.manifests.ReplaceOp(digest, m, read)
	case m.Upload == "":
		op, err = b.manifests.DeleteOp(digest, read)
	default:
		for _, user := range users {
			if err := b.Release(ctx, user, digest); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return []Op{op}, err
}

// HoldOp returns the op that adds a user to a blob. It returns nf.NotFound if there
// is no such blob. The op fails if the users change at the same time.
func (b Blobs) HoldOp(ctx context.Context, user, digest string) (Op, error) {
	m, read, err := b.manifests.GetRevision(ctx, digest)
	if err != nil {
		return Op{}, err
	}
	m.hold(user)
	return b.manifests.ReplaceOp(digest, m, read)
}
