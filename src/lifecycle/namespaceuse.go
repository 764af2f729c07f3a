package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// namespaceUse records that a namespace of a region is used.
type namespaceUse struct {
	Key      string `json:"key"`                // region/namespace
	Removing string `json:"removing,omitempty"` // who is removing the namespace; see store.NewSharedTable
}

// ID implements store.Shared.
func (o namespaceUse) ID() string { return o.Key }

// namespaceUser acquires and releases namespaces for a run's instance.
type namespaceUser struct {
	run     *run
	catalog Catalog
	apart   bool // see Config
}

// namespacePause is how long an operation waits while another removes the
// namespace that it needs.
const namespacePause = 200 * time.Millisecond

func namespaceKey(region, namespace string) string { return region + "/" + namespace }

// acquireNamespaces records the instance as a user of its namespace and of the
// plan's further namespaces, and creates missing ones. It waits while one of them
// is being deleted. It returns nf.Forbidden if the
// project may no longer use a namespace, or have objects of a cluster-scoped
// kind.
func (n *namespaceUser) acquireNamespaces(ctx context.Context) error {
	tenancy, err := n.tenancy(ctx)
	if err != nil {
		return err
	}
	if err := n.permitKinds(tenancy, withHooks(n.run.plan)); err != nil {
		return err
	}
	further := n.further()
	// Record them first: every acquired namespace must later be released.
	if err := n.recordEntered(ctx, func(entered []string) []string { return union(entered, further) }); err != nil {
		return err
	}
	for _, namespace := range append([]string{n.run.op().Instance.Namespace}, further...) {
		if err := n.acquireNamespace(ctx, tenancy, namespace); err != nil {
			return err
		}
	}
	return nil
}

func (n *namespaceUser) acquireNamespace(ctx context.Context, tenancy nf.Tenancy, namespace string) error {
	for {
		if err := n.run.attempt.Held(ctx); err != nil {
			return err
		}
		var is nf.Namespace
		_, err := n.run.records.namespaces.Enter(ctx, n.run.op().Subject, namespaceUse{Key: namespaceKey(n.run.op().Region, namespace)})
		if err == nil {
			is, err = n.run.cluster.EnsureNamespace(ctx, namespace, tenancy.Project)
		} else if nf.KindOf(err) != nf.Busy {
			return operation.RecordError(err)
		}
		if err == nil {
			return n.permit(tenancy, namespace, is)
		}
		if nf.KindOf(err) != nf.Busy {
			return err
		}
		n.run.progress(0, 1, "waiting for the deletion of the previous namespace "+namespace)
		if pause(ctx, namespacePause) != nil {
			return err
		}
	}
}

// permit checks again whether the project may use a namespace: the namespace
// may have been created since the request was accepted. An undo is not checked,
// because it restores what was permitted before.
func (n *namespaceUser) permit(tenancy nf.Tenancy, namespace string, is nf.Namespace) error {
	if n.run.op().Undoing {
		return nil
	}
	if !tenancy.MayUse(namespace, &is) {
		return tenancy.Refuse(nf.Violations{tenancy.DeniedNamespace(n.fieldOf(namespace), namespace)})
	}
	return nil
}

// permitKinds checks again whether the project may have objects of
// cluster-scoped kinds: a grant may have been withdrawn since the request was
// accepted.
func (n *namespaceUser) permitKinds(tenancy nf.Tenancy, objects []*unstructured.Unstructured) error {
	if n.run.op().Undoing {
		return nil
	}
	bounds := nf.Bounds{Namespace: n.run.op().Instance.Namespace, Further: n.further(), Tenancy: tenancy}
	var denied nf.Violations
	for _, u := range objects {
		denied = append(denied, bounds.Denied(nf.RefOf(u))...)
	}
	if len(denied) > 0 {
		return located(tenancy.Refuse(denied), n.run.plan)
	}
	return nil
}

// permitTests checks again whether the project may use what the tests use.
func (n *namespaceUser) permitTests(ctx context.Context) error {
	tenancy, err := n.tenancy(ctx)
	if err != nil {
		return err
	}
	tests := render.Plan{Hooks: n.run.plan.HooksOf(nf.TestRun)}
	fields := map[string]string{n.run.op().Instance.Namespace: "namespace"}
	for _, namespace := range namespacesOf(tests) {
		fields[namespace] = n.fieldOf(namespace)
	}
	if err := mayUse(ctx, n.run.cluster, tenancy, fields); err != nil {
		return err
	}
	return n.permitKinds(tenancy, withHooks(tests))
}

// fieldOf returns the request field that names a namespace.
func (n *namespaceUser) fieldOf(namespace string) string {
	if namespace == n.run.op().Instance.Namespace {
		return "namespace"
	}
	return "namespaces"
}

// recordEntered updates the record of the further namespaces in which the
// instance may have objects.
func (n *namespaceUser) recordEntered(ctx context.Context, edit func([]string) []string) error {
	in, err := n.run.instance(ctx)
	if err == nil && slices.Equal(in.Entered, edit(in.Entered)) {
		return nil
	}
	if err != nil {
		return operation.RecordError(err)
	}
	return n.run.edit(ctx, func(in *nf.Instance) { in.Entered = edit(in.Entered) })
}

// hasUnused reports whether the instance may have objects in further namespaces
// that its plan does not use.
func (n *namespaceUser) hasUnused(in nf.Instance) bool {
	return !slices.Equal(union(in.Entered, n.further()), n.further())
}

// releaseUnused removes the instance from the further namespaces that its plan no
// longer uses.
func (n *namespaceUser) releaseUnused(ctx context.Context) error {
	in, err := n.run.instance(ctx)
	if err != nil {
		return operation.RecordError(err)
	}
	further := n.further()
	for _, namespace := range in.Entered {
		if slices.Contains(further, namespace) {
			continue
		}
		if err := n.releaseNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return n.recordEntered(ctx, func([]string) []string { return further })
}

// releaseNamespaces removes the instance from all its namespaces.
func (n *namespaceUser) releaseNamespaces(ctx context.Context) error {
	in, err := n.run.instance(ctx)
	if err != nil {
		return operation.RecordError(nf.IgnoreNotFound(err))
	}
	for _, namespace := range append([]string{in.Namespace}, in.Entered...) {
		if err := n.releaseNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// releaseNamespace removes the instance from the namespace's users. The last user
// deletes the namespace if the service created it and it contains no objects of
// others.
func (n *namespaceUser) releaseNamespace(ctx context.Context, namespace string) error {
	if err := n.run.attempt.Held(ctx); err != nil {
		return err
	}
	var failed error
	by := store.Leaver{User: n.run.op().Subject, Token: n.run.op().Claim, Held: n.run.attempt.Held}
	err := n.run.records.namespaces.Leave(ctx, namespaceKey(n.run.op().Region, namespace), by, func(ctx context.Context) error {
		kept, err := n.run.cluster.RemoveNamespace(ctx, namespace)
		if err != nil {
			failed = err
			return err
		}
		if len(kept) > 0 {
			warning := fmt.Sprintf("namespace %s remains: it contains %s", namespace, some(kept))
			n.run.attempt.Note(func(op *nf.Operation) { op.Warnings = append(op.Warnings, warning) })
		}
		return nil
	})
	if failed != nil {
		return failed // the next attempt will see any error of the store
	}
	return operation.RecordError(err)
}

// further returns the namespaces of the run's plan except the instance's own.
func (n *namespaceUser) further() []string {
	return slices.DeleteFunc(namespacesOf(n.run.plan), func(name string) bool { return name == n.run.op().Instance.Namespace })
}

// tenancy returns what the operation's project may currently use of its region.
func (n *namespaceUser) tenancy(ctx context.Context) (nf.Tenancy, error) {
	region, err := n.catalog.Region(ctx, n.run.op().Region)
	if err != nil {
		return nf.Tenancy{}, operation.RecordError(fmt.Errorf("cannot read the resources that the project may use: %w", err))
	}
	return region.Tenancy(nf.ProjectOf(n.run.op().Project), n.apart), nil
}

// union returns the elements of both lists, sorted and without duplicates.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// some lists up to three refs and counts the others.
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

// pause waits for d. It returns the context's error if the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	delay.For(ctx, d, nil)
	return ctx.Err()
}
