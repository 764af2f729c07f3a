package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Letter tells one subscriber of changes. Those of a subscription are posted in
// their order, each until it arrives or is dead.
type Letter struct {
	ID           string          `json:"id"`
	Instance     string          `json:"instance"`
	Subscription string          `json:"subscription"`
	Changes      json.RawMessage `json:"changes"` // the resource-changes of ONAP's notification
	Created      time.Time       `json:"created"`
	Attempts     int             `json:"attempts"`
	Due          time.Time       `json:"due"`           // when it is posted next
	Died         time.Time       `json:"died,omitzero"` // zero: it is on its way
	LastStatus   int             `json:"last_status,omitempty"`
	LastError    string          `json:"last_error,omitempty"`
}

// letter is a letter as it is kept.
type letter struct {
	Letter

	UID    string            `json:"uid"`             // of the subscription
	Number int               `json:"number"`          // of the subscription's letters, from 1
	Marks  map[string]string `json:"marks,omitempty"` // what the subscriber knows by it; an empty mark: that the object is gone
}

// letterID has a subscription's letters in their order.
func letterID(uid string, number int) string { return fmt.Sprintf("%s-%010d", uid, number) }

// lettersOf is the beginning of the ids of a subscription's letters.
func lettersOf(uid string) string { return uid + "-" }

// The tries of a letter: 20, the last about 16 hours after the first.
const (
	attempts     = 20
	firstPause   = time.Second
	longestPause = 2 * time.Hour
	maxDead      = 100 // letters kept of a subscription; older ones make room
)

// backoff is how long to wait after the nth failure: twice as long each time,
// with a part of it at random so that those who failed together do not come
// together.
func backoff(n int, random func(time.Duration) time.Duration) time.Duration {
	d := longestPause
	if shift := n - 1; shift < 20 {
		d = min(firstPause<<shift, longestPause)
	}
	return d*3/4 + random(d/2)
}

// DeadLetters returns the letters that were given up, the oldest of each
// subscription first.
func (n *Notifier) DeadLetters(ctx context.Context) ([]Letter, error) {
	out := []Letter{}
	for l, err := range n.dead.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		out = append(out, l.Letter)
	}
	return out, nil
}

// Resend puts a dead letter on its way again, before all that its subscriber has
// not got yet. It is nf.NotFound when there is no such letter, or its
// subscription is gone.
func (n *Notifier) Resend(ctx context.Context, id string) (Letter, error) {
	l, err := n.dead.Get(ctx, id)
	if err != nil {
		return Letter{}, err
	}
	rec, err := n.subscriptions.Get(ctx, subscriptionKey(l.Instance, l.Subscription))
	if err == nil && rec.UID != l.UID {
		err = nf.E(nf.NotFound, "resend", "letter "+id, nil)
	}
	if err != nil {
		return Letter{}, err
	}
	l.Attempts, l.Due, l.Died = 0, n.now(), time.Time{}
	// First it is there, then it is dead no more: a crash between may post it
	// twice, and never loses it.
	if err := n.letters.Insert(ctx, id, l); err != nil && nf.KindOf(err) != nf.Exists {
		return Letter{}, err
	}
	if err := nf.UnlessGone(n.dead.Delete(ctx, id)); err != nil {
		return Letter{}, err
	}
	n.remind(l.UID)
	return l.Letter, nil
}

// Discard forgets a dead letter, or returns nf.NotFound.
func (n *Notifier) Discard(ctx context.Context, id string) error { return n.dead.Delete(ctx, id) }

// bury gives a letter up.
func (n *Notifier) bury(ctx context.Context, l letter) error {
	l.Died = n.now()
	if err := n.dead.Put(ctx, l.ID, l); err != nil {
		return err
	}
	if err := nf.UnlessGone(n.letters.Delete(ctx, l.ID)); err != nil {
		return err
	}
	ids, err := idsOf(ctx, n.dead, l.UID)
	if err != nil {
		return err
	}
	for _, id := range ids[:max(len(ids)-maxDead, 0)] {
		if err := nf.UnlessGone(n.dead.Delete(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// forget removes what is kept beside a subscription that is gone. What a crash
// leaves of it is swept later.
func (n *Notifier) forget(ctx context.Context, uid string) error {
	for _, table := range []store.Table[letter]{n.letters, n.dead} {
		ids, err := idsOf(ctx, table, uid)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := nf.UnlessGone(table.Delete(ctx, id)); err != nil {
				return fmt.Errorf("cannot forget the letters of a subscription: %w", err)
			}
		}
	}
	return nf.UnlessGone(n.baselines.Delete(ctx, uid))
}

func idsOf(ctx context.Context, table store.Table[letter], uid string) ([]string, error) {
	var ids []string
	for l, err := range table.All(ctx, lettersOf(uid)) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	return ids, nil
}

// sweep removes what belongs to no subscription, and dead letters that are old.
func (n *Notifier) sweep(ctx context.Context) error {
	stray := map[string]bool{}
	for _, table := range []store.Table[letter]{n.letters, n.dead} {
		for l, err := range table.All(ctx, "") {
			if err != nil {
				return err
			}
			stray[l.UID] = true
		}
	}
	for b, err := range n.baselines.All(ctx, "") {
		if err != nil {
			return err
		}
		stray[b.UID] = true
	}
	// The subscriptions come last: each is older than what was found of it.
	for rec, err := range n.subscriptions.All(ctx, "") {
		if err != nil {
			return err
		}
		delete(stray, rec.UID)
	}
	for uid := range stray {
		if err := n.forget(ctx, uid); err != nil {
			return err
		}
	}
	return n.expire(ctx)
}

// expire forgets the dead letters that are old.
func (n *Notifier) expire(ctx context.Context) error {
	var old []string
	for l, err := range n.dead.All(ctx, "") {
		if err != nil {
			return err
		}
		if n.now().Sub(l.Died) > n.cfg.Keep {
			old = append(old, l.ID)
		}
	}
	for _, id := range old {
		if err := nf.UnlessGone(n.dead.Delete(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// clipped cuts an error's text to what is worth keeping.
func clipped(text string) string {
	const longest = 512
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
