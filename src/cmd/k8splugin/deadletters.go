package main

import (
	"context"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	vnfnotify "github.com/multicloud-k8s/k8splugin/src/sol003/notify"
)

// deadLetters is the dead letters of notifications, also of SOL003, and of hand-overs for
// the native API, without guard. The ids of notifications are random, so they are not
// confused.
type deadLetters struct {
	notifier  *notify.Notifier
	records   *bundle.InstanceRecords
	handOvers *clusterapi.Registrar
	vnfs      *vnfnotify.Notifier
}

var _ access.DeadLetterKeeper[native.DeadLetter] = deadLetters{}

// DeadLetters implements access.DeadLetterKeeper.
func (l deadLetters) DeadLetters(ctx context.Context) ([]native.DeadLetter, error) {
	notifications, err := l.notifier.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	handOvers, err := l.handOvers.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	ofVNFs, err := l.vnfs.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]native.DeadLetter, 0, len(notifications)+len(handOvers)+len(ofVNFs))
	for _, one := range notifications {
		out = append(out, notification(one))
	}
	for _, one := range handOvers {
		out = append(out, handOver(one))
	}
	for _, one := range ofVNFs {
		out = append(out, vnfNotification(one))
	}
	slices.SortFunc(out, func(a, b native.DeadLetter) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Resend implements access.DeadLetterKeeper.
func (l deadLetters) Resend(ctx context.Context, id string) (native.DeadLetter, error) {
	found, err := l.handsOver(ctx, id)
	if err != nil {
		return native.DeadLetter{}, err
	}
	if found {
		sent, err := l.handOvers.Resend(ctx, id)
		return handOver(sent), err
	}
	if found, err = l.ofVNF(ctx, id); err != nil {
		return native.DeadLetter{}, err
	}
	if found {
		sent, err := l.vnfs.Resend(ctx, id)
		return vnfNotification(sent), err
	}
	sent, err := l.notifier.Resend(ctx, id)
	return notification(sent), err
}

// Discard implements access.DeadLetterKeeper.
func (l deadLetters) Discard(ctx context.Context, id string) error {
	found, err := l.handsOver(ctx, id)
	if err != nil {
		return err
	}
	if found {
		return l.handOvers.Discard(ctx, id)
	}
	if found, err = l.ofVNF(ctx, id); err != nil {
		return err
	}
	if found {
		return l.vnfs.Discard(ctx, id)
	}
	return l.notifier.Discard(ctx, id)
}

// handsOver reports whether a dead letter hands a kubeconfig over.
func (l deadLetters) handsOver(ctx context.Context, id string) (bool, error) {
	all, err := l.handOvers.DeadLetters(ctx)
	return slices.ContainsFunc(all, func(one clusterapi.HandOver) bool { return one.ID == id }), err
}

// ofVNF reports whether a dead letter is a notification of SOL003.
func (l deadLetters) ofVNF(ctx context.Context, id string) (bool, error) {
	all, err := l.vnfs.DeadLetters(ctx)
	return slices.ContainsFunc(all, func(one vnfnotify.Notification) bool { return one.ID == id }), err
}

// Names implements access.DeadLetterKeeper. No id has a slash.
func (l deadLetters) Names(one native.DeadLetter) (id, owner string) {
	if one.Region != "" {
		return one.ID, "region/" + one.Region + "/" + one.Instance
	}
	return one.ID, one.Instance
}

// Engine implements access.DeadLetterKeeper.
func (l deadLetters) Engine(ctx context.Context, one native.DeadLetter) (string, error) {
	if one.Region != "" {
		return one.Instance, nil
	}
	alias, err := l.records.Alias(ctx, one.Instance)
	return alias.Engine, err
}

// notification converts the dead letter of a notification, without its content.
func notification(l notify.Notification) native.DeadLetter {
	out := shown(l.Delivery)
	out.Instance, out.Subscription = l.Instance, l.Subscription
	return out
}

// vnfNotification converts the dead letter of a notification of SOL003, without its
// content. While a VNF is instantiated, an instance has its id.
func vnfNotification(l vnfnotify.Notification) native.DeadLetter {
	out := shown(l.Delivery)
	out.Instance, out.Subscription = l.VNF, l.Subscription
	return out
}

// handOver converts the dead letter of a hand-over, without its kubeconfig.
func handOver(l clusterapi.HandOver) native.DeadLetter {
	out := shown(l.Delivery)
	out.Instance, out.Region = l.Instance, l.Region
	return out
}

func shown(d outbox.Delivery) native.DeadLetter {
	return native.DeadLetter{
		ID: d.ID, Created: d.Created, Attempts: d.Attempts, Due: d.Due, Died: d.Died, LastStatus: d.LastStatus, LastError: d.LastError,
	}
}
