package cluster

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Health returns the present status of each ref, in their order: nf.Absent when
// the owner has no such object, or its kind is not served.
func (c *Cluster) Health(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Health, error) {
	targets := make([]nf.Change, len(refs))
	for i, ref := range refs {
		targets[i].Ref = ref
	}
	v := newView(owner)
	streams, err := c.streams(ctx, owner, targets, v)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, s := range streams {
			s.release()
		}
	}()
	out := make([]nf.Health, len(refs))
	for _, aside := range [...]bool{false, true} {
		if err := c.readOnce(ctx, streams, aside); err != nil {
			return nil, err
		}
		for i, t := range targets {
			out[i], _ = v.of(t)
		}
		if !slices.ContainsFunc(out, unsettled) {
			break // there is nothing to explain
		}
	}
	return out, nil
}

func unsettled(h nf.Health) bool { return h.Status == nf.InProgress || h.Status == nf.StatusFailed }

// readOnce lists the streams that explain, or those that do not.
func (c *Cluster) readOnce(ctx context.Context, streams []*stream, aside bool) error {
	streams = slices.DeleteFunc(slices.Clone(streams), func(s *stream) bool { return s.aside != aside })
	return each(c.parallel, len(streams), func(i int) error {
		if _, err := streams[i].list(ctx); err != nil && !aside {
			return c.fail(ctx, "list", streams[i].place.kind.Kind+" objects", err)
		}
		return nil
	})
}

// What explains why a workload does not get ready. Whoever may not read these
// gets less of an explanation.
var (
	podKind        = kind{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true, nil}
	replicaSetKind = kind{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, "replicasets", true, nil}
	eventKind      = kind{schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "events", true, nil}
)

// telling leaves out the events that say, again and again, what the status of a
// pod says as well.
const telling = "type=Warning,reason!=Unhealthy,reason!=BackOff"

// streams returns what must be read to know the health of the targets: their
// own places, and what explains their workloads. A target of a kind that is not
// served is absent, which the view is told at once.
func (c *Cluster) streams(ctx context.Context, owner string, changes []nf.Change, v *view) ([]*stream, error) {
	refs := make([]nf.Ref, len(changes))
	for i := range changes {
		refs[i] = changes[i].Ref
	}
	targets, err := c.targetsOf(ctx, refs)
	if err != nil {
		return nil, err
	}
	b := bundle{c: c, view: v}
	mine := query{labels: ownedBy(owner)}
	for i, t := range targets {
		if !t.served {
			v.look([]string{t.ref.Key()})
			continue
		}
		s := b.stream(t.kind.in(t.ref.Namespace), mine)
		s.aside, s.keys = false, append(s.keys, t.ref.Key())
		if changes[i].Action == nf.Deleted || t.ref.Kind != "Pod" && !workload(t.ref.Kind) {
			continue
		}
		b.stream(podKind.in(t.ref.Namespace), mine)
		b.stream(eventKind.in(t.ref.Namespace), query{fields: telling})
		if t.ref.Kind == "Deployment" {
			b.stream(replicaSetKind.in(t.ref.Namespace), mine)
		}
	}
	return b.streams, nil
}

// bundle is streams that feed one view, one for each place.
type bundle struct {
	c       *Cluster
	view    *view
	streams []*stream
}

// stream returns the stream of a place; a new one only explains.
func (b *bundle) stream(p place, q query) *stream {
	for _, s := range b.streams {
		if s.place.key() == p.key() {
			return s
		}
	}
	s := &stream{c: b.c, view: b.view, place: p, query: q, aside: true, known: map[string]int64{}}
	b.streams = append(b.streams, s)
	return s
}
