package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// Notification is the delivery of changes to one subscriber.
type Notification struct {
	outbox.Delivery

	Instance     string
	Subscription string
}

// requestNote is stored with a request of the outbox, in addition to the changes,
// which are its body until it is prepared.
type requestNote struct {
	Instance     string            `json:"instance"`
	Subscription string            `json:"subscription"`
	Marks        map[string]string `json:"marks,omitempty"` // digests that the subscriber knows after receiving it; an empty one: the object was deleted
}

// payload is ONAP's notification body.
type payload struct {
	Instance     string          `json:"instance-id"`
	Subscription string          `json:"subscription-name"`
	Metadata     json.RawMessage `json:"metadata"`
	Changes      json.RawMessage `json:"resource-changes"`
}

// newRequest returns the request to notify a subscriber of changes.
func newRequest(rec record, number int, changes []byte, marks map[string]string) (outbox.Request, error) {
	text, err := json.Marshal(requestNote{rec.Instance, rec.Name, marks})
	if err != nil {
		return outbox.Request{}, fmt.Errorf("cannot encode a notification: %w", err)
	}
	return outbox.Request{Key: rec.UID, Number: number, Method: http.MethodPost, Body: changes, Note: text}, nil
}

// addressed completes a request with what a change of the subscription changes.
func addressed(r outbox.Request, s nf.Subscription) (outbox.Request, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(payload{s.Instance, s.Name, s.Metadata, r.Body}); err != nil {
		return outbox.Request{}, fmt.Errorf("cannot encode the notification: %w", err)
	}
	r.URL, r.Secret, r.Body = s.Callback, s.Secret, body.Bytes()
	r.Header = map[string]string{"Content-Type": "application/json", "Accept": "application/json"}
	return r, nil
}

func noteOf(d outbox.Delivery) (requestNote, error) {
	var n requestNote
	if err := json.Unmarshal(d.Note, &n); err != nil {
		return requestNote{}, fmt.Errorf("cannot read notification %s: %w", d.ID, err)
	}
	return n, nil
}

func notificationOf(d outbox.Delivery) (Notification, error) {
	n, err := noteOf(d)
	return Notification{Delivery: d, Instance: n.Instance, Subscription: n.Subscription}, err
}

// DeadLetters returns the dead letters, the oldest of each subscription first.
func (n *Notifier) DeadLetters(ctx context.Context) ([]Notification, error) {
	dead, err := n.outbox.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Notification, len(dead))
	for i, d := range dead {
		if out[i], err = notificationOf(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Resend queues a dead letter for delivery, ahead of its subscription's pending
// notifications. It returns nf.NotFound if the dead letter or its subscription
// does not exist.
func (n *Notifier) Resend(ctx context.Context, id string) (Notification, error) {
	d, err := n.outbox.DeadLetter(ctx, id)
	if err != nil {
		return Notification{}, err
	}
	msg, err := notificationOf(d)
	if err != nil {
		return Notification{}, err
	}
	rec, err := n.subscriptions.Get(ctx, subscriptionKey(msg.Instance, msg.Subscription))
	if err == nil && rec.UID != d.Key {
		err = nf.E(nf.NotFound, "resend", "dead letter "+id, nil)
	}
	if err == nil {
		msg.Delivery, err = n.outbox.Resend(ctx, d)
	}
	if err != nil {
		return Notification{}, err
	}
	return msg, nil
}

// Discard deletes a dead letter, or returns nf.NotFound.
func (n *Notifier) Discard(ctx context.Context, id string) error { return n.outbox.Discard(ctx, id) }

// deleteRecords deletes all other records of a deleted subscription. If a crash
// interrupts it, the hourly collection deletes the rest.
func (n *Notifier) deleteRecords(ctx context.Context, uid string) error {
	if err := n.outbox.Drop(ctx, uid); err != nil {
		return err
	}
	return nf.IgnoreNotFound(n.baselines.Delete(ctx, uid))
}
