package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// tenancy says which instances live in a namespace of a region. The set is the
// use count: the last one to leave removes the namespace, if the service made
// it.
type tenancy struct {
	Key      string   `json:"key,omitempty"` // region/namespace; empty in records of former releases
	Users    []string `json:"users"`
	Removing string   `json:"removing,omitempty"` // the instance that is removing the namespace
}

// namespacePause is how long an operation rests while the namespace that it
// needs is being removed by another.
const namespacePause = 200 * time.Millisecond

func (r *run) tenancyKey() string { return r.op.Region + "/" + r.op.Namespace }

// enterNamespace joins the namespace's users and makes it if it is missing. It
// waits while another instance, or somebody else, is removing the namespace.
func (r *run) enterNamespace(ctx context.Context) error {
	for {
		err := r.join(ctx)
		if err == nil {
			_, err = r.cluster.EnsureNamespace(ctx, r.op.Namespace)
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

// join makes the instance a user of its namespace; nf.Busy while another
// instance is removing it.
func (r *run) join(ctx context.Context) error {
	key, instance := r.tenancyKey(), r.op.Instance
	err := r.namespaces.Insert(ctx, key, tenancy{Key: key, Users: []string{instance}})
	if nf.KindOf(err) != nf.Exists {
		return recordError(err)
	}
	_, err = r.namespaces.Update(ctx, key, func(t *tenancy) error {
		if t.Removing != "" && t.Removing != instance {
			return nf.E(nf.Busy, "use", "namespace "+r.op.Namespace, fmt.Errorf("VNF instance %s is removing it", t.Removing))
		}
		t.Key, t.Users = key, nf.Hold(t.Users, instance)
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return nf.E(nf.Busy, "use", "namespace "+r.op.Namespace, err) // removed since: come again
	}
	if nf.KindOf(err) == nf.Busy {
		return err
	}
	return recordError(err)
}

// leaveNamespace takes the instance out of the namespace's users. The last one
// removes the namespace, if the service made it and nobody else's objects are
// in it.
func (r *run) leaveNamespace(ctx context.Context) error {
	key, instance := r.tenancyKey(), r.op.Instance
	last := false
	_, err := r.namespaces.Update(ctx, key, func(t *tenancy) error {
		last = len(nf.Release(t.Users, instance)) == 0
		if last {
			t.Removing = instance
		} else {
			t.Users = nf.Release(t.Users, instance)
		}
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return nil // it was never entered, or this step is being repeated
	}
	if err != nil || !last {
		return recordError(err)
	}
	kept, err := r.cluster.RemoveNamespace(ctx, r.op.Namespace)
	if err != nil {
		r.stay(ctx, key)
		return err
	}
	if len(kept) > 0 {
		warning := fmt.Sprintf("namespace %s stays: it holds %s", r.op.Namespace, some(kept))
		r.note(func(op *nf.Operation) { op.Warnings = append(op.Warnings, warning) })
	}
	return recordError(nf.UnlessGone(r.namespaces.Delete(ctx, key)))
}

// stay lets others use the namespace again after its removal failed.
func (r *run) stay(ctx context.Context, key string) {
	_, err := r.namespaces.Update(context.WithoutCancel(ctx), key, func(t *tenancy) error {
		t.Removing = ""
		return nil
	})
	if err != nil {
		r.log.ErrorContext(ctx, "namespace stays marked as being removed", "namespace", key, "error", err)
	}
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
