package notify

import (
	"context"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// Notification is the delivery of a notification to a subscription.
type Notification struct {
	outbox.Delivery

	VNF          string
	Subscription string
}

func notificationOf(d outbox.Delivery) Notification {
	subscription, vnf, _ := strings.Cut(d.Key, queueSeparator)
	return Notification{Delivery: d, VNF: vnf, Subscription: subscription}
}

// DeadLetters returns the dead letters, the oldest of each subscription and VNF first.
func (n *Notifier) DeadLetters(ctx context.Context) ([]Notification, error) {
	dead, err := n.outbox.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Notification, len(dead))
	for i, d := range dead {
		out[i] = notificationOf(d)
	}
	return out, nil
}

// Resend queues a dead letter for delivery, ahead of the pending notifications of its
// subscription and VNF. It returns nf.NotFound if the dead letter or its subscription does
// not exist.
func (n *Notifier) Resend(ctx context.Context, id string) (Notification, error) {
	d, err := n.outbox.DeadLetter(ctx, id)
	if err != nil {
		return Notification{}, err
	}
	out := notificationOf(d)
	if _, err := n.subscriptions.Get(ctx, out.Subscription); err != nil {
		return Notification{}, err
	}
	out.Delivery, err = n.outbox.Resend(ctx, d)
	return out, err
}

// Discard deletes a dead letter, or returns nf.NotFound.
func (n *Notifier) Discard(ctx context.Context, id string) error { return n.outbox.Discard(ctx, id) }
