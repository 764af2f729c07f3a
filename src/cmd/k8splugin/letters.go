package main

import (
	"context"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/notify"
)

// letters are the notifier's dead letters, as the identity in the context may
// see and raise them: those of an instance with the instance, and all of them,
// those of instances that are gone as well, with store:admin.
type letters struct {
	guard    *access.Guard
	notifier *notify.Notifier
	ledger   *bundle.Ledger
}

var _ native.Letters = letters{}

// DeadLetters implements native.Letters. It takes instance:read of each.
func (l letters) DeadLetters(ctx context.Context) ([]native.Letter, error) {
	// The letters come first: each is younger than its instance.
	all, err := l.notifier.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	instances, err := l.guard.Instances(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, in := range instances {
		seen[in.ID] = true
	}
	aliases, err := l.ledger.Aliases(ctx)
	if err != nil {
		return nil, err
	}
	every := l.guard.May(ctx, nf.AdministerStore, nf.Scope{}) == nil
	out := []native.Letter{}
	for _, one := range all {
		engine := one.Instance
		if moved, ok := aliases[one.Instance]; ok {
			engine = moved.Engine
		}
		if every || seen[engine] {
			out = append(out, shown(one))
		}
	}
	return out, nil
}

// Resend implements native.Letters. It takes instance:change.
func (l letters) Resend(ctx context.Context, id string) (native.Letter, error) {
	if err := l.allowed(ctx, id); err != nil {
		return native.Letter{}, err
	}
	sent, err := l.notifier.Resend(ctx, id)
	return shown(sent), err
}

// Discard implements native.Letters. It takes instance:change.
func (l letters) Discard(ctx context.Context, id string) error {
	if err := l.allowed(ctx, id); err != nil {
		return err
	}
	return l.notifier.Discard(ctx, id)
}

// allowed returns nil when there is such a dead letter and something may be done
// with it.
func (l letters) allowed(ctx context.Context, id string) error {
	absent := nf.E(nf.NotFound, "get", "dead letter "+strconv.Quote(id), nil)
	dead, err := l.find(ctx, id, absent)
	if l.guard.May(ctx, nf.AdministerStore, nf.Scope{}, id) == nil || err != nil {
		return err
	}
	alias, err := l.ledger.Alias(ctx, dead.Instance)
	if err != nil {
		return err
	}
	in, err := l.guard.Instance(ctx, alias.Engine)
	if nf.KindOf(err) == nf.NotFound {
		nf.TrailOf(ctx).Hide()
		return absent
	}
	if err != nil {
		return err
	}
	return l.guard.May(ctx, nf.ChangeInstance, nf.Scope{Project: nf.ProjectOf(in.Project), Region: in.Region}, id, in.ID)
}

func (l letters) find(ctx context.Context, id string, absent error) (notify.Letter, error) {
	all, err := l.notifier.DeadLetters(ctx)
	if err != nil {
		return notify.Letter{}, err
	}
	for _, one := range all {
		if one.ID == id {
			return one, nil
		}
	}
	return notify.Letter{}, absent
}

// shown is a letter without what it says.
func shown(l notify.Letter) native.Letter {
	return native.Letter{
		ID: l.ID, Instance: l.Instance, Subscription: l.Subscription, Created: l.Created, Attempts: l.Attempts,
		Due: l.Due, Died: l.Died, LastStatus: l.LastStatus, LastError: l.LastError,
	}
}
