package access

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// LiveReader reads objects in regions. It does not check permissions. Q selects
// objects, and H is a hook.
type LiveReader[Q, H any] interface {
	Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error)
	Find(ctx context.Context, region string, q Q) ([]map[string]any, error)
	Hooks(ctx context.Context, in nf.Instance) ([]H, error)
}

// Live gives access to a LiveReader with the permissions of the identity in the
// context.
type Live[Q, H any] struct {
	guard  *guard
	holds  HoldKeeper
	reader LiveReader[Q, H]
}

// NewLive returns the guarded objects of a reader.
func NewLive[Q, H any](guarded *Guarded, reader LiveReader[Q, H]) Live[Q, H] {
	return Live[Q, H]{guarded.guard, guarded.Regions.holds, reader}
}

// Objects returns objects of an instance. It requires instance:read.
func (l Live[Q, H]) Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error) {
	if err := l.guard.readable(ctx, in); err != nil {
		return nil, err
	}
	return l.reader.Objects(ctx, in, refs)
}

// Hooks returns the hooks of an instance. It requires instance:read.
func (l Live[Q, H]) Hooks(ctx context.Context, in nf.Instance) ([]H, error) {
	if err := l.guard.readable(ctx, in); err != nil {
		return nil, err
	}
	return l.reader.Hooks(ctx, in)
}

// Find returns the objects of a region that a query selects. An identity with
// region:write gets all objects, because it has access to the region anyway.
// Another identity needs region:read, and gets the objects of the region's
// instances that it may read.
func (l Live[Q, H]) Find(ctx context.Context, region string, q Q) ([]map[string]any, error) {
	all := l.guard.may(ctx, nf.WriteRegion, regionScope(region), region)
	if all != nil {
		if nf.KindOf(all) != nf.Forbidden {
			return nil, all
		}
		if err := l.guard.may(ctx, nf.ReadRegion, regionScope(region), region); err != nil {
			return nil, err
		}
	}
	return l.found(ctx, nf.Instance{Region: region}, all == nil, q)
}

// FindOf returns the objects in an instance's region that a query selects. It
// requires instance:read, and returns the objects of the instance and of others
// that the identity may read. With region:write it returns all.
func (l Live[Q, H]) FindOf(ctx context.Context, in nf.Instance, q Q) ([]map[string]any, error) {
	if err := l.guard.readable(ctx, in); err != nil {
		return nil, err
	}
	all, err := l.guard.could(ctx, nf.WriteRegion, regionScope(in.Region))
	if err != nil {
		return nil, err
	}
	return l.found(ctx, in, all, q)
}

// found returns the objects in an instance's region that a query selects: all, or
// those of the instance and of others that the identity may read. It reads nothing of
// the others.
func (l Live[Q, H]) found(ctx context.Context, in nf.Instance, all bool, q Q) ([]map[string]any, error) {
	objects, err := l.reader.Find(ctx, in.Region, q)
	if err != nil || all {
		return objects, err
	}
	visible, err := l.guard.visible(ctx, nf.ReadInstance)
	if err != nil {
		return nil, err
	}
	owners := map[string]bool{in.ID: true}
	for holder, err := range l.holds.HoldersIn(ctx, nf.Holding{Region: in.Region}, func(kind nf.SubjectKind, s nf.Scope) bool {
		return kind == nf.InstanceSubject && visible(s)
	}) {
		if err != nil {
			return nil, err
		}
		owners[holder.Subject.ID] = true
	}
	delete(owners, "") // of an object without an owner
	var out []map[string]any
	for _, object := range objects {
		if owners[ownerOf(object)] {
			out = append(out, object)
		}
	}
	return out, nil
}

// ownerOf returns the id of the instance that owns an object, or "".
func ownerOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	owner, _ := labels[nf.OwnerLabel].(string)
	return owner
}
