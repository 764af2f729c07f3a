package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/notify"
)

// deadLetters is the notifier's dead letters for the native API, without guard.
type deadLetters struct {
	notifier *notify.Notifier
	records  *bundle.InstanceRecords
}

var _ access.DeadLetterKeeper[native.DeadLetter] = deadLetters{}

// DeadLetters implements access.DeadLetterKeeper.
func (l deadLetters) DeadLetters(ctx context.Context) ([]native.DeadLetter, error) {
	all, err := l.notifier.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]native.DeadLetter, len(all))
	for i, one := range all {
		out[i] = shown(one)
	}
	return out, nil
}

// Resend implements access.DeadLetterKeeper.
func (l deadLetters) Resend(ctx context.Context, id string) (native.DeadLetter, error) {
	sent, err := l.notifier.Resend(ctx, id)
	return shown(sent), err
}

// Discard implements access.DeadLetterKeeper.
func (l deadLetters) Discard(ctx context.Context, id string) error {
	return l.notifier.Discard(ctx, id)
}

// Names implements access.DeadLetterKeeper.
func (l deadLetters) Names(one native.DeadLetter) (id, instance string) { return one.ID, one.Instance }

// Engine implements access.DeadLetterKeeper.
func (l deadLetters) Engine(ctx context.Context, instance string) (string, error) {
	alias, err := l.records.Alias(ctx, instance)
	return alias.Engine, err
}

// shown converts a dead letter, without the notification's content.
func shown(l notify.Notification) native.DeadLetter {
	return native.DeadLetter{
		ID: l.ID, Instance: l.Instance, Subscription: l.Subscription, Created: l.Created, Attempts: l.Attempts,
		Due: l.Due, Died: l.Died, LastStatus: l.LastStatus, LastError: l.LastError,
	}
}
