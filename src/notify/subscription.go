package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limits of a subscription's fields.
const (
	MaxName     = 100       // bytes of a subscription's name
	MaxCallback = 2048      // bytes of a URL
	MaxMetadata = 256 << 10 // bytes of JSON
	MaxInterval = 366 * 24 * time.Hour
)

// record is the stored form of a Subscription.
type record struct {
	nf.Subscription

	UID    string    `json:"uid"`            // differs from that of an earlier subscription of the same name
	Region string    `json:"region"`         // the instance's, as last seen
	Ended  time.Time `json:"ended,omitzero"` // when the instance was found gone; only delivers the remaining notifications since then
}

func subscriptionKey(instance, name string) string { return instance + "/" + name }

// Subscribe stores a new subscription and returns it; it sets the times and the
// status itself. It returns nf.Invalid with a violation for each wrong field,
// nf.Exists if the instance has a subscription of that name, and nf.NotFound if
// the instance does not exist, and errors of Config.Admit. The present state of the instance's objects is
// not sent.
func (n *Notifier) Subscribe(ctx context.Context, s nf.Subscription) (nf.Subscription, error) {
	s.Metadata = orEmpty(s.Metadata)
	if err := n.check("subscribe to", s); err != nil {
		return nf.Subscription{}, err
	}
	target, err := n.cfg.Source.Target(ctx, s.Instance)
	if err != nil {
		return nf.Subscription{}, fmt.Errorf("cannot subscribe to VNF instance %s: %w", s.Instance, err)
	}
	if err := n.cfg.Admit(ctx, s); err != nil {
		return nf.Subscription{}, fmt.Errorf("cannot subscribe to VNF instance %s: %w", s.Instance, err)
	}
	now := n.now()
	s.Created, s.LastUpdate, s.LastNotify, s.LastStatus = now, now, now, 0
	rec := record{Subscription: s, UID: n.cfg.NewID(), Region: target.Region}
	key := subscriptionKey(s.Instance, s.Name)
	err = n.subscriptions.Insert(ctx, key, rec)
	if nf.KindOf(err) == nf.Exists {
		// The existing one may belong to an earlier instance of the same id.
		taken := err
		_, err = n.subscriptions.Update(ctx, key, func(former *record) error {
			if former.Ended.IsZero() {
				return taken
			}
			*former = rec
			return nil
		})
	}
	if err != nil {
		return nf.Subscription{}, err
	}
	n.outbox.Scan()
	return s, nil
}

// Subscription returns one subscription of an instance, or nf.NotFound.
func (n *Notifier) Subscription(ctx context.Context, instance, name string) (nf.Subscription, error) {
	rec, err := n.subscriptions.Get(ctx, subscriptionKey(instance, name))
	if err != nil {
		return nf.Subscription{}, err
	}
	return rec.Subscription, rec.present()
}

// present returns nf.NotFound if the subscription's instance is gone.
func (r record) present() error {
	if r.Ended.IsZero() {
		return nil
	}
	return nf.E(nf.NotFound, "get", fmt.Sprintf("subscription %q", subscriptionKey(r.Instance, r.Name)), nil)
}

// SubscriptionsOf returns the subscriptions of an instance, sorted by name.
func (n *Notifier) SubscriptionsOf(ctx context.Context, instance string) ([]nf.Subscription, error) {
	out := []nf.Subscription{}
	for rec, err := range n.subscriptions.All(ctx, instance+"/") {
		if err != nil {
			return nil, err
		}
		if rec.Ended.IsZero() {
			out = append(out, rec.Subscription)
		}
	}
	return out, nil
}

// Change updates a subscription's callback, interval and metadata, and its
// secret unless the new one is empty. It returns the result. Pending
// notifications go to the new callback. Errors are those of Subscribe, except
// nf.Exists.
func (n *Notifier) Change(ctx context.Context, s nf.Subscription) (nf.Subscription, error) {
	s.Metadata = orEmpty(s.Metadata)
	if err := n.check("change", s); err != nil {
		return nf.Subscription{}, err
	}
	rec, err := n.subscriptions.Update(ctx, subscriptionKey(s.Instance, s.Name), func(rec *record) error {
		if err := rec.present(); err != nil {
			return err
		}
		rec.Callback, rec.MinInterval, rec.Metadata = s.Callback, s.MinInterval, s.Metadata
		if len(s.Secret) > 0 {
			rec.Secret = s.Secret
		}
		return nil
	})
	if err != nil {
		return nf.Subscription{}, err
	}
	n.outbox.Wake(rec.UID)
	return rec.Subscription, nil
}

// Unsubscribe deletes a subscription and its notifications, or returns
// nf.NotFound.
func (n *Notifier) Unsubscribe(ctx context.Context, instance, name string) error {
	var uid string
	err := n.subscriptions.DeleteIf(ctx, subscriptionKey(instance, name), func(rec record) error {
		uid = rec.UID
		return rec.present()
	})
	if err != nil {
		return err
	}
	n.outbox.Scan()
	return n.deleteRecords(ctx, uid)
}

// check returns nf.Invalid with all violations of a subscription.
func (n *Notifier) check(op string, s nf.Subscription) error {
	v := checkName(s.Name)
	if s.MinInterval < 0 || s.MinInterval > MaxInterval {
		v = append(v, nf.Violation{Field: "min-notify-interval", Message: fmt.Sprintf("is not between 0 and %s", MaxInterval)})
	}
	if len(s.Callback) > MaxCallback {
		v = append(v, nf.Violation{Field: "callback-url", Message: fmt.Sprintf("is longer than %d bytes", MaxCallback)})
	} else if err := n.cfg.Hosts.Check(s.Callback); err != nil {
		v = append(v, nf.Violation{Field: "callback-url", Message: err.Error()})
	}
	switch {
	case len(s.Metadata) > MaxMetadata:
		v = append(v, nf.Violation{Field: "metadata", Message: fmt.Sprintf("is larger than %d bytes", MaxMetadata)})
	case !json.Valid(s.Metadata) || s.Metadata[0] != '{':
		v = append(v, nf.Violation{Field: "metadata", Message: "is not a JSON object"})
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, op, "VNF instance "+s.Instance, v)
	}
	return nil
}

func checkName(name string) nf.Violations {
	control := func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }
	if name != "" && len(name) <= MaxName && utf8.ValidString(name) && !strings.ContainsFunc(name, control) {
		return nil
	}
	return nf.Violations{{Field: "name", Message: fmt.Sprintf("is not 1 to %d printable characters without a slash", MaxName)}}
}

// orEmpty returns a JSON document without surrounding space. A missing document
// or null becomes an empty object.
func orEmpty(document json.RawMessage) json.RawMessage {
	document = bytes.TrimSpace(document)
	if len(document) == 0 || string(document) == "null" {
		return json.RawMessage("{}")
	}
	return document
}
