package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// HookTimeout begins the annotations of a spec that say how long the hooks of an
// event may take: "hook-timeout/pre-install": "1m". A time of 0 or less means
// that they are not waited for.
const HookTimeout = "hook-timeout/"

// noWait is the timeout of hooks that are not waited for.
const noWait = -1

// hooks orders hooks, and gives each the time that its instance's spec grants.
func (p *prepared) hooks(found []render.Hook) ([]render.Planned, error) {
	times := map[render.Event]time.Duration{}
	var wrong nf.Violations
	for _, event := range hookEvents() {
		text, given := p.spec.Annotations[HookTimeout+string(event)]
		if !given {
			continue
		}
		timeout, err := time.ParseDuration(text)
		if err != nil {
			wrong = append(wrong, nf.Violation{Field: HookTimeout + string(event), Message: fmt.Sprintf("%q is not a duration", text)})
		}
		if times[event] = timeout; timeout <= 0 {
			times[event] = noWait
		}
	}
	if wrong != nil {
		return nil, nf.E(nf.Invalid, "order", "hooks", wrong)
	}
	out := render.OrderHooks(found)
	for i, h := range out {
		for _, event := range h.Events {
			if timeout, given := times[event]; given {
				out[i].Timeout = timeout
			}
		}
	}
	return out, nil
}

func hookEvents() []render.Event {
	return []render.Event{render.PreInstall, render.PostInstall, render.PreUpgrade, render.PostUpgrade,
		render.PreRollback, render.PostRollback, render.PreDelete, render.PostDelete, render.TestRun}
}

// before and after are the events around what a verb does.
func before(verb nf.Verb) render.Event {
	switch verb {
	case nf.Instantiate:
		return render.PreInstall
	case nf.Upgrade:
		return render.PreUpgrade
	case nf.Rollback:
		return render.PreRollback
	case nf.Terminate:
		return render.PreDelete
	case nf.Configure, nf.Test, nf.Adopt:
	}
	return ""
}

func after(verb nf.Verb) render.Event {
	switch verb {
	case nf.Instantiate:
		return render.PostInstall
	case nf.Upgrade:
		return render.PostUpgrade
	case nf.Rollback:
		return render.PostRollback
	case nf.Terminate:
		return render.PostDelete
	case nf.Configure, nf.Test, nf.Adopt:
	}
	return ""
}

// hooks returns the steps that run the hooks of an event, one after another.
func (r *run) hooks(prefix string, event render.Event) []step {
	hooks := r.plan.HooksOf(event)
	var out []step
	for i, h := range hooks {
		ref := refOf(h.Object)
		title := fmt.Sprintf("%s %d/%d %s %s", event, i+1, len(hooks), ref.Kind, ref.Name)
		// Each part is a step of its own: a hook that has run must not run again
		// because the service died before the next one began.
		if h.Discards(render.DiscardBefore) {
			out = append(out, step{prefix + "clear " + title, func(ctx context.Context) error { return r.discard(ctx, []nf.Ref{ref}) }})
		}
		made := prefix + "make " + title
		out = append(out,
			step{made, func(ctx context.Context) error { return r.makeHook(ctx, h) }},
			step{prefix + "run " + title, func(ctx context.Context) error { return r.awaitHook(ctx, h, made) }},
		)
	}
	var done []nf.Ref
	for _, h := range hooks {
		if h.Discards(render.DiscardSuccess) {
			done = append(done, refOf(h.Object))
		}
	}
	if len(done) > 0 {
		out = append(out, step{fmt.Sprintf("%sclear what %s hooks made", prefix, event), func(ctx context.Context) error { return r.discard(ctx, done) }})
	}
	return out
}

// makeHook writes a hook's object into the inventory, and then into the region.
func (r *run) makeHook(ctx context.Context, h render.Planned) error {
	if err := r.enlistHooks(ctx, func(inventory []nf.Item) []nf.Item {
		it := itemOf(hookStage(inventory, len(r.plan.Stages)), h.Object)
		it.Hook = true
		return merge(inventory, []nf.Item{it})
	}); err != nil {
		return err
	}
	changes, err := r.cluster.Apply(ctx, r.op.Instance, []*unstructured.Unstructured{h.Object})
	if kept := r.keepChanges(ctx, changes); err == nil {
		err = kept
	}
	return located(err, r.plan)
}

// hookStage is the stage of what hooks make: it is deleted before everything
// else, and an instance that was changed may have had more stages.
func hookStage(inventory []nf.Item, stages int) int {
	for _, it := range inventory {
		if !it.Hook {
			stages = max(stages, it.Stage+1)
		}
	}
	return stages
}

// awaitHook waits until a hook has done its work.
func (r *run) awaitHook(ctx context.Context, h render.Planned, made string) error {
	if h.Timeout == noWait {
		return nil
	}
	applied, err := r.changes.Get(ctx, r.changesKey(made))
	if err != nil {
		return recordError(err)
	}
	limited, cancel := withTimeout(ctx, h.Timeout)
	defer cancel()
	err = r.elaborate(ctx, r.await(limited, wait{
		wanted: nf.Current, targets: applied, done: true, passing: map[string]bool{applied[0].Key(): itemOf(0, h.Object).Passing},
	}))
	if kind := nf.KindOf(err); err != nil && (kind == nf.Failed || kind == nf.Timeout) && ctx.Err() == nil && h.Discards(render.DiscardFailure) {
		err = errors.Join(err, r.discard(ctx, []nf.Ref{refOf(h.Object)}))
	}
	return located(err, r.plan)
}

// discard deletes what hooks have made, and takes it out of the inventory.
func (r *run) discard(ctx context.Context, refs []nf.Ref) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(err)
	}
	ours := func(it nf.Item) bool {
		return it.Hook && slices.ContainsFunc(refs, func(ref nf.Ref) bool { return ref.Key() == it.Key() })
	}
	if !slices.ContainsFunc(in.Inventory, ours) {
		return nil
	}
	if err := r.remove(ctx, refs, nil); err != nil {
		return err
	}
	return r.enlistHooks(ctx, func(inventory []nf.Item) []nf.Item { return slices.DeleteFunc(slices.Clone(inventory), ours) })
}

// enlistHooks changes what the inventory says of hooks.
func (r *run) enlistHooks(ctx context.Context, edit func([]nf.Item) []nf.Item) error {
	_, err := r.instances.Update(ctx, r.op.Instance, func(in *nf.Instance) error {
		if in.Operation != r.op.ID || in.Claim != r.job.token {
			return errTaken
		}
		in.Inventory = edit(in.Inventory)
		return nil
	})
	return recordError(err)
}

// discardAll deletes whatever hooks have made that is still there.
func (r *run) discardAll(ctx context.Context) error {
	in, err := r.instances.Get(ctx, r.op.Instance)
	if err != nil {
		return recordError(err)
	}
	var refs []nf.Ref
	for _, it := range in.Inventory {
		if it.Hook {
			refs = append(refs, it.Ref)
		}
	}
	return r.discard(ctx, refs)
}
