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

// Limits on what a subscriber may ask for.
const (
	MaxName     = 100       // bytes of a subscription's name
	MaxCallback = 2048      // bytes of a URL
	MaxMetadata = 256 << 10 // bytes of JSON
	MaxInterval = 366 * 24 * time.Hour
)

// Subscription asks for notifications of what becomes of an instance's objects.
type Subscription struct {
	Instance    string          `json:"instance"`
	Name        string          `json:"name"` // unique for the instance
	Callback    string          `json:"callback"`
	MinInterval time.Duration   `json:"min_interval"`     // between two letters
	Metadata    json.RawMessage `json:"metadata"`         // a JSON object that each letter repeats
	Secret      nf.Secret       `json:"secret,omitempty"` // letters are signed with it; empty: they are not
	Created     time.Time       `json:"created"`
	LastUpdate  time.Time       `json:"last_update"` // when a change was seen last
	LastNotify  time.Time       `json:"last_notify"` // when a letter was posted last, whether or not it arrived
	LastStatus  int             `json:"last_status"` // of the answer; 500 when there was none, 0 before the first
}

// record is a subscription as it is kept.
type record struct {
	Subscription

	UID    string    `json:"uid"`            // another one for another subscription of the same name
	Region string    `json:"region"`         // of the instance, as last seen
	Ended  time.Time `json:"ended,omitzero"` // the instance is gone, and what is left is to deliver its letters
}

func subscriptionKey(instance, name string) string { return instance + "/" + name }

// Subscribe keeps a new subscription and returns it; times and status are its
// own. It is nf.Invalid with a violation for every field that is wrong, nf.Exists
// when the instance has one of the name, and nf.NotFound when there is no such
// instance. What the instance's objects are now is told to nobody.
func (n *Notifier) Subscribe(ctx context.Context, s Subscription) (Subscription, error) {
	s.Metadata = orEmpty(s.Metadata)
	if err := n.check("subscribe to", s); err != nil {
		return Subscription{}, err
	}
	target, err := n.cfg.Source.Target(ctx, s.Instance)
	if err != nil {
		return Subscription{}, fmt.Errorf("cannot subscribe to VNF instance %s: %w", s.Instance, err)
	}
	now := n.now()
	s.Created, s.LastUpdate, s.LastNotify, s.LastStatus = now, now, now, 0
	rec := record{Subscription: s, UID: n.cfg.NewID(), Region: target.Region}
	key := subscriptionKey(s.Instance, s.Name)
	err = n.subscriptions.Insert(ctx, key, rec)
	if nf.KindOf(err) == nf.Exists {
		// It may be that of an earlier instance of the same id.
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
		return Subscription{}, err
	}
	n.poke()
	return s, nil
}

// Subscription returns one subscription of an instance, or nf.NotFound.
func (n *Notifier) Subscription(ctx context.Context, instance, name string) (Subscription, error) {
	rec, err := n.subscriptions.Get(ctx, subscriptionKey(instance, name))
	if err != nil {
		return Subscription{}, err
	}
	return rec.Subscription, rec.present()
}

// present is nf.NotFound for a subscription whose instance is gone.
func (r record) present() error {
	if r.Ended.IsZero() {
		return nil
	}
	return nf.E(nf.NotFound, "get", fmt.Sprintf("subscription %q", subscriptionKey(r.Instance, r.Name)), nil)
}

// SubscriptionsOf returns the subscriptions of an instance, ordered by name.
func (n *Notifier) SubscriptionsOf(ctx context.Context, instance string) ([]Subscription, error) {
	out := []Subscription{}
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

// Change gives a subscription another callback, interval, metadata and, unless
// it is empty, another secret; it returns the result. Letters that wait go to the
// new callback. Its errors are those of Subscribe, but for nf.Exists.
func (n *Notifier) Change(ctx context.Context, s Subscription) (Subscription, error) {
	s.Metadata = orEmpty(s.Metadata)
	if err := n.check("change", s); err != nil {
		return Subscription{}, err
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
		return Subscription{}, err
	}
	n.remind(rec.UID)
	return rec.Subscription, nil
}

// Unsubscribe forgets a subscription and its letters, or returns nf.NotFound.
func (n *Notifier) Unsubscribe(ctx context.Context, instance, name string) error {
	var uid string
	err := n.subscriptions.DeleteIf(ctx, subscriptionKey(instance, name), func(rec record) error {
		uid = rec.UID
		return rec.present()
	})
	if err != nil {
		return err
	}
	n.remind(uid)
	n.poke()
	return n.forget(ctx, uid)
}

// check returns nf.Invalid with all that is wrong with a subscription.
func (n *Notifier) check(op string, s Subscription) error {
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

// orEmpty returns a JSON document without the space around it; none, or null, is
// an empty object.
func orEmpty(document json.RawMessage) json.RawMessage {
	document = bytes.TrimSpace(document)
	if len(document) == 0 || string(document) == "null" {
		return json.RawMessage("{}")
	}
	return document
}
