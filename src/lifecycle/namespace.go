package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// occupancy is a namespace of a region that instances use.
type occupancy struct {
	Key      string `json:"key"`                // region/namespace
	Removing string `json:"removing,omitempty"` // the instance that is removing the namespace
}

// ID implements store.Shared.
func (o occupancy) ID() string { return o.Key }

// namespacePause is how long an operation rests while the namespace that it
// needs is being removed by another.
const namespacePause = 200 * time.Millisecond

func tenancyKey(region, namespace string) string { return region + "/" + namespace }

// enterNamespaces makes the instance a user of its namespace and of the further
// ones of its plan, and makes those that are missing. It waits while another
// instance, or somebody else, is removing one. It is nf.Forbidden when the
// project may not use one any more.
func (r *run) enterNamespaces(ctx context.Context) error {
	tenancy, err := r.tenancy(ctx)
	if err != nil {
		return err
	}
	further := r.further()
	// Written down first: what was entered must be left.
	if err := r.noteEntered(ctx, func(entered []string) []string { return union(entered, further) }); err != nil {
		return err
	}
	for _, namespace := range append([]string{r.op.Namespace}, further...) {
		if err := r.occupy(ctx, tenancy, namespace); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) occupy(ctx context.Context, tenancy nf.Tenancy, namespace string) error {
	for {
		var is nf.Namespace
		_, err := r.namespaces.Enter(ctx, r.op.Instance, occupancy{Key: tenancyKey(r.op.Region, namespace)})
		if err == nil {
			is, err = r.cluster.EnsureNamespace(ctx, namespace, tenancy.Project)
		} else if nf.KindOf(err) != nf.Busy {
			return recordError(err)
		}
		if err == nil {
			return r.permit(ctx, tenancy, namespace, is)
		}
		if nf.KindOf(err) != nf.Busy {
			return err
		}
		r.progress(0, 1, "waiting until the former namespace "+namespace+" is gone")
		if pause(ctx, namespacePause) != nil {
			return err
		}
	}
}

// permit looks once more whether the project may use a namespace: it may have
// come into being since the request was accepted.
func (r *run) permit(ctx context.Context, tenancy nf.Tenancy, namespace string, is nf.Namespace) error {
	ok, err := r.mayUse(ctx, tenancy, namespace, &is)
	switch {
	case err != nil:
		return recordError(err)
	case !ok:
		return tenancy.Refuse(nf.Violations{tenancy.DeniedNamespace("namespace", namespace)})
	}
	return nil
}

// noteEntered changes the further namespaces that the instance may have objects
// in.
func (r *run) noteEntered(ctx context.Context, edit func([]string) []string) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err == nil && slices.Equal(in.Entered, edit(in.Entered)) {
		return nil
	}
	if err == nil {
		_, err = r.instances.Update(ctx, r.op.Instance, func(in *nf.Instance) error {
			in.Entered = edit(in.Entered)
			return nil
		})
	}
	return recordError(err)
}

// moved reports whether the instance may have objects in further namespaces that
// its plan has nothing in.
func (r *run) moved(in nf.Instance) bool {
	return !slices.Equal(union(in.Entered, r.further()), r.further())
}

// leaveFormer takes the instance out of the further namespaces that its plan has
// nothing in any more.
func (r *run) leaveFormer(ctx context.Context) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(err)
	}
	further := r.further()
	for _, namespace := range in.Entered {
		if slices.Contains(further, namespace) {
			continue
		}
		if err := r.leave(ctx, namespace); err != nil {
			return err
		}
	}
	return r.noteEntered(ctx, func([]string) []string { return further })
}

// leaveNamespaces takes the instance out of all its namespaces.
func (r *run) leaveNamespaces(ctx context.Context) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(nf.UnlessGone(err))
	}
	for _, namespace := range append([]string{in.Namespace}, in.Entered...) {
		if err := r.leave(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// leave takes the instance out of the namespace's users. The last one removes the
// namespace, if the service made it and nobody else's objects are in it.
func (r *run) leave(ctx context.Context, namespace string) error {
	var failed error
	err := r.namespaces.Leave(ctx, tenancyKey(r.op.Region, namespace), r.op.Instance, func(ctx context.Context) error {
		kept, err := r.cluster.RemoveNamespace(ctx, namespace)
		if err != nil {
			failed = err
			return err
		}
		if len(kept) > 0 {
			warning := fmt.Sprintf("namespace %s stays: it holds %s", namespace, some(kept))
			r.note(func(op *nf.Operation) { op.Warnings = append(op.Warnings, warning) })
		}
		return nil
	})
	if failed != nil {
		return failed // what the store said besides, the next attempt finds out
	}
	return recordError(err)
}

// union returns what is in either list, sorted.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// some names a few refs and counts the rest.
func some(refs []nf.Ref) string {
	const few = 3
	text := ""
	for i, ref := range refs {
		if i == few {
			return fmt.Sprintf("%s and %d more", text, len(refs)-few)
		}
		if i > 0 {
			text += ", "
		}
		text += ref.String()
	}
	return text
}

// pause rests, or returns the context's error when it ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
