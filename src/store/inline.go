package store

import (
	"context"
	"crypto/sha256"

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
		m = manifest{Size: int64(len(content)), Chunks: 1, Content: content}
	case err != nil:
		return Op{}, "", err
	}
	m.hold(user)
	op, err := b.manifests.op(digest, m, read)
	return op, digest, err
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
