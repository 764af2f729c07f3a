package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// tenancy is a namespace of a region that instances use.
type tenancy struct {
	Key      string `json:"key"`                // region/namespace
	Removing string `json:"removing,omitempty"` // the instance that is removing the namespace
}

// ID implements store.Shared.
func (t tenancy) ID() string { return t.Key }

// namespacePause is how long an operation rests while the namespace that it
// needs is being removed by another.
const namespacePause = 200 * time.Millisecond

func tenancyKey(op nf.Operation) string { return op.Region + "/" + op.Namespace }

// enterNamespace makes the instance a user of its namespace, and the namespace if
// it is missing. It waits while another instance, or somebody else, is removing
// the namespace.
func (r *run) enterNamespace(ctx context.Context) error {
	for {
		_, err := r.namespaces.Enter(ctx, r.op.Instance, tenancy{Key: tenancyKey(r.op)})
		if err == nil {
			_, err = r.cluster.EnsureNamespace(ctx, r.op.Namespace)
		} else if nf.KindOf(err) != nf.Busy {
			return recordError(err)
		}
		if nf.KindOf(err) != nf.Busy {
			return err
		}
		r.progress(0, 1, "waiting until the former namespace "+r.op.Namespace+" is gone")
		if pause(ctx, namespacePause) != nil {
			return err
		}
	}
}

// leaveNamespace takes the instance out of the namespace's users. The last one
// removes the namespace, if the service made it and nobody else's objects are
// in it.
func (r *run) leaveNamespace(ctx context.Context) error {
	var failed error
	err := r.namespaces.Leave(ctx, tenancyKey(r.op), r.op.Instance, func(ctx context.Context) error {
		kept, err := r.cluster.RemoveNamespace(ctx, r.op.Namespace)
		if err != nil {
			failed = err
			return err
		}
		if len(kept) > 0 {
			warning := fmt.Sprintf("namespace %s stays: it holds %s", r.op.Namespace, some(kept))
			r.note(func(op *nf.Operation) { op.Warnings = append(op.Warnings, warning) })
		}
		return nil
	})
	if failed != nil {
		return failed // what the store said besides, the next attempt finds out
	}
	return recordError(err)
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
