package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Health returns the present status of each ref, in the given order: nf.Absent
// if the owner has no such object. An object that cannot be read, while others
// can, is nf.Unknown with the reason as its message: listing its kind is
// denied, the kind is not served, or the server of its API is down. A status that
// counts only after a time counts at once. Health returns nf.Unreachable if the
// region responds to none of the requests.
func (c *Cluster) Health(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Health, error) {
	look, err := newSnapshot(ctx, c.client, owner, refs)
	if err != nil {
		return nil, err
	}
	defer look.set.release()
	for _, t := range look.targets {
		if !t.served && look.unread[t.ref.Key()] == "" {
			look.unread.add(unserved(t.ref), t.ref.Key())
		}
	}
	if err := look.set.readOnce(ctx, look.unread); err != nil {
		return nil, err
	}
	out := look.set.view.healthOf(refs, look.unread)
	if slices.ContainsFunc(out, unsettled) {
		look.set.explain(ctx)
		out = look.set.view.healthOf(refs, look.unread)
	}
	return out, nil
}

// snapshot is a stream set that is read once.
type snapshot struct {
	set     *streamSet
	targets []target
	unread  reasons // for objects whose kinds cannot be discovered
}

// newSnapshot returns an unread snapshot for the health of an owner's objects.
func newSnapshot(ctx context.Context, c *client, owner nf.Subject, refs []nf.Ref) (*snapshot, error) {
	targets, hidden, err := c.apis.resolve(ctx, refs)
	if err != nil {
		return nil, err
	}
	set := newStreamSet(c, owner)
	set.addHealth(targets, make([]nf.Change, len(refs)))
	return &snapshot{set, targets, reasonsOf(hidden)}, nil
}

// reasons are why objects cannot be read, by Ref.Key, in bounded length.
type reasons map[string]string

// reasonsOf returns the reasons for errors that are all equal.
func reasonsOf(errs map[string]error) reasons {
	out := reasons{}
	for _, err := range errs {
		out.add(err, slices.Collect(maps.Keys(errs))...)
		break
	}
	return out
}

// add adds an error as the reason for all the keys.
func (r reasons) add(err error, keys ...string) {
	why := clipped(err.Error())
	for _, key := range keys {
		r[key] = why
	}
}

func unserved(ref nf.Ref) error {
	return nf.E(nf.Unsupported, "list", ref.Kind+" objects", fmt.Errorf("the cloud region does not serve %s, kind %s", ref.APIVersion(), ref.Kind))
}

// healthOf returns the health of objects; nf.Unknown for those in unread.
func (v *view) healthOf(refs []nf.Ref, unread reasons) []nf.Health {
	out := make([]nf.Health, len(refs))
	for i, ref := range refs {
		if why := unread[ref.Key()]; why != "" {
			out[i] = nf.Health{Ref: ref, Status: nf.Unknown, Message: why}
		} else {
			out[i], _ = v.of(nf.Change{Ref: ref})
		}
	}
	return out
}

func unsettled(h nf.Health) bool { return h.Status == nf.InProgress || h.Status == nf.StatusFailed }

// readOnce lists the streams of the targets, and adds to unread the reasons for
// those that fail. It returns an error if the context ends, or if the region
// responds to none of the lists.
func (s *streamSet) readOnce(ctx context.Context, unread reasons) error {
	streams := slices.DeleteFunc(slices.Clone(s.streams), func(one *stream) bool { return one.aside })
	errs := tryEach(ctx, s.client.parallel, len(streams), func(i int) error {
		p := streams[i].scope
		err := streams[i].list(ctx)
		if err == nil && streams[i].unserved {
			err = unserved(p.ref(&metav1.ObjectMeta{}))
		}
		return s.client.region.fail(ctx, "list", p.kind.Kind+" objects", err)
	})
	if ctx.Err() != nil {
		return s.client.region.fail(ctx, "list", "objects", ctx.Err())
	}
	for i, one := range streams {
		if errs[i] != nil {
			unread.add(errs[i], one.keys...)
		}
	}
	return silent(errs)
}

// explain lists the streams that only explain, except those of some kinds, and ignores
// errors.
func (s *streamSet) explain(ctx context.Context, except ...kind) {
	streams := slices.DeleteFunc(slices.Clone(s.streams), func(one *stream) bool {
		return !one.aside || slices.ContainsFunc(except, func(k kind) bool { return k.GroupKind() == one.scope.kind.GroupKind() })
	})
	tryEach(ctx, s.client.parallel, len(streams), func(i int) error {
		return streams[i].list(ctx)
	})
}

// release frees the memory budget of the objects.
func (s *streamSet) release() {
	for _, one := range s.streams {
		one.release()
	}
}

// silent returns the first error if every request failed with nf.Unreachable,
// otherwise nil.
func silent(errs []error) error {
	for _, err := range errs {
		if err == nil || nf.KindOf(err) != nf.Unreachable {
			return nil
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// The kinds that explain why a workload is not ready. Without permission to
// read them, there is less explanation.
var (
	podKind        = kind{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true, nil, nil}
	replicaSetKind = kind{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, "replicasets", true, nil, nil}
	eventKind      = kind{schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "events", true, nil, nil}
)
