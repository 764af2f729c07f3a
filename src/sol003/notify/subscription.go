package notify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Limits of a subscription.
const (
	MaxURL    = 2048 // bytes of a callback, and of a token endpoint
	MaxSecret = 1024 // bytes of a user, and of a password
	maxFilter = 1000 // values in the lists of a filter together
)

// Subscribe stores a new subscription and returns it, with an id and a time. It returns
// nf.Invalid with a violation for each wrong field, and nf.Failed if the callback does not
// pass its test.
func (n *Notifier) Subscribe(ctx context.Context, s nf.VNFSubscription) (nf.VNFSubscription, error) {
	if v := n.check(s); len(v) > 0 {
		return nf.VNFSubscription{}, nf.E(nf.Invalid, "subscribe to", "VNFs", v)
	}
	s.ID, s.Created = nf.UUIDOf("k8splugin.io/subscription/"+n.cfg.NewID()), n.now()
	if err := n.test(ctx, s); err != nil {
		return nf.VNFSubscription{}, err
	}
	if err := n.subscriptions.Insert(ctx, s.ID, s); err != nil {
		return nf.VNFSubscription{}, err
	}
	return s, nil
}

// CallbackOp checks and tests a callback that is not subscribed by a client: that of a PM
// job or of a threshold. It returns the op that stores it under its id, in place of an
// earlier one. It returns nf.Invalid with a violation for each wrong field, and nf.Failed if
// the callback does not pass its test.
func (n *Notifier) CallbackOp(ctx context.Context, s nf.VNFSubscription) (store.Op, error) {
	if v := n.check(s); len(v) > 0 {
		return store.Op{}, nf.E(nf.Invalid, "notify", "the callback", v)
	}
	if err := n.test(ctx, s); err != nil {
		return store.Op{}, err
	}
	return n.subscriptions.PutOp(s.ID, s)
}

// test sends a GET to the callback, which must answer 204.
func (n *Notifier) test(ctx context.Context, s nf.VNFSubscription) error {
	if n.cfg.SkipTest {
		return nil
	}
	status, err := n.sender.test(ctx, s)
	if ctx.Err() != nil {
		return nf.E(nf.Cancelled, "test", "the callback", ctx.Err())
	}
	if err == nil && status != http.StatusNoContent {
		err = fmt.Errorf("it answered GET with %d instead of 204", status)
	}
	if err != nil {
		return nf.E(nf.Failed, "subscribe to", "VNFs with this callback", err)
	}
	return nil
}

// Subscription returns a subscription, or nf.NotFound.
func (n *Notifier) Subscription(ctx context.Context, id string) (nf.VNFSubscription, error) {
	return n.subscriptions.Get(ctx, id)
}

// SubscriptionsFrom yields the subscriptions, sorted by id.
func (n *Notifier) SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error] {
	return func(yield func(nf.VNFSubscription, error) bool) {
		for s, err := range n.subscriptions.From(ctx, "", from.After) {
			if err == nil && s.ID == from.After {
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// Unsubscribe deletes a subscription with its notifications and dead letters, or returns
// nf.NotFound. If it fails after that, the notifications that remain are not sent.
func (n *Notifier) Unsubscribe(ctx context.Context, id string) error {
	if err := n.subscriptions.Delete(ctx, id); err != nil {
		return err
	}
	n.sender.forget(id)
	return n.outbox.DropQueues(ctx, queueOf(id, ""))
}

// check returns the violations of a subscription.
func (n *Notifier) check(s nf.VNFSubscription) nf.Violations {
	v := n.checkURL(nil, "callbackUri", s.Callback)
	f := s.Filter
	values := len(f.Types) + len(f.VNFDs) + len(f.Products) + len(f.VNFs) + len(f.Names) + len(f.Operations) + len(f.States) +
		len(f.Resources) + len(f.Severities) + len(f.Events) + len(f.Causes)
	if values > maxFilter {
		v = append(v, nf.Violation{Field: "filter", Message: fmt.Sprintf("has more than %d values", maxFilter)})
	}
	if wrong := n.checkAuth(s.Auth); wrong != nil {
		v = append(v, nf.Violation{Field: "authentication", Message: wrong.Error()})
	}
	if s.Auth.Kind.TokenBased() {
		v = n.checkURL(v, "authentication.tokenEndpoint", s.Auth.TokenURL)
	}
	return v
}

func (n *Notifier) checkURL(v nf.Violations, field, url string) nf.Violations {
	if len(url) > MaxURL {
		return append(v, nf.Violation{Field: field, Message: fmt.Sprintf("is longer than %d bytes", MaxURL)})
	}
	if err := n.cfg.Hosts.Check(url); err != nil {
		return append(v, nf.Violation{Field: field, Message: err.Error()})
	}
	return v
}

func (n *Notifier) checkAuth(a nf.CallbackAuth) error {
	switch {
	case len(a.User) > MaxSecret || len(a.Password) > MaxSecret:
		return fmt.Errorf("has a value that is longer than %d bytes", MaxSecret)
	case a.Kind.Certified() && !n.cfg.Certified:
		return errors.New("needs a certificate of the service, which has none")
	case a.Kind == nf.CallbackBasic && a.User == "":
		return errors.New("needs a user name")
	case a.Kind == nf.CallbackClientCredentials && (a.User == "" || len(a.Password) == 0):
		return errors.New("needs the id and the password of a client")
	case a.Kind == nf.CallbackClientCertificate && a.User == "":
		return errors.New("needs the id of a client")
	}
	return nil
}
