package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// subscriptionWorker is the feed of one subscription's queue: it finds changes
// and stores them as a notification. It creates the next notification only when
// the previous one is no longer pending; changes in the meantime are combined in
// the next one.
type subscriptionWorker struct {
	n      *Notifier
	region *regionWatch
	uid    string
	key    string       // of the subscription
	wakeCh delay.Signal // of the queue

	known       *baseline                 // nil: not loaded or not stored yet
	shown       map[string]map[string]any // the objects as last sent to the subscriber, by Ref.Key
	owner       string                    // owner that the worker listens to; empty: none yet
	unsubscribe func()                    // stops listening
}

var _ outbox.Feed = (*subscriptionWorker)(nil)

const idle = time.Hour

var errAhead = errors.New("another replica has served the subscription")

func newSubscriptionWorker(w *regionWatch, q outbox.Queue, wakeCh delay.Signal) *subscriptionWorker {
	return &subscriptionWorker{
		n: w.n, region: w, uid: q.Key, key: q.Name, wakeCh: wakeCh,
		shown: map[string]map[string]any{}, unsubscribe: func() {},
	}
}

// Next implements outbox.Feed.
func (s *subscriptionWorker) Next(ctx context.Context) (time.Duration, error) {
	rec, err := s.load(ctx)
	switch {
	case err != nil:
		return 0, err
	case !rec.Ended.IsZero():
		return s.drain(ctx, rec)
	}
	return s.look(ctx, rec)
}

// Prepare implements outbox.Feed. It adds a notification to the baseline that a
// crash left out of it.
func (s *subscriptionWorker) Prepare(ctx context.Context, d outbox.Delivery) (outbox.Request, error) {
	rec, err := s.load(ctx)
	if err == nil && s.known != nil && d.Number > s.known.Number {
		err = s.learn(ctx, d)
	}
	if err != nil {
		return outbox.Request{}, err
	}
	return addressed(d.Request, rec.Subscription)
}

// Sent implements outbox.Feed.
func (s *subscriptionWorker) Sent(ctx context.Context, d outbox.Delivery) error {
	_, err := s.n.subscriptions.Update(ctx, s.key, func(rec *record) error {
		if rec.UID == s.uid {
			rec.LastUpdate, rec.LastNotify, rec.LastStatus = d.Created, s.n.now(), d.LastStatus
		}
		return nil
	})
	return nf.IgnoreNotFound(err)
}

// Forget implements outbox.Feed.
func (s *subscriptionWorker) Forget() { s.known = nil }

// Close implements outbox.Feed.
func (s *subscriptionWorker) Close() {
	s.unsubscribe()
	s.region.want(s.uid, nil)
}

// load reads the subscription, and its baseline unless that is known.
func (s *subscriptionWorker) load(ctx context.Context) (record, error) {
	rec, err := s.n.subscriptions.Get(ctx, s.key)
	switch {
	case nf.KindOf(err) == nf.NotFound || err == nil && (rec.UID != s.uid || rec.Region != s.region.region):
		return record{}, outbox.ErrOver // this worker does not see the objects of another region
	case err != nil || s.known != nil:
		return rec, err
	}
	known, err := s.n.baselines.Get(ctx, s.uid)
	if err == nil {
		s.known = &known
	}
	return rec, nf.IgnoreNotFound(err)
}

// learn updates the stored baseline with a notification.
func (s *subscriptionWorker) learn(ctx context.Context, d outbox.Delivery) error {
	content, err := noteOf(d)
	if err != nil {
		return err
	}
	kinds := s.known.Kinds
	b, err := s.n.baselines.Update(ctx, s.uid, func(b *baseline) error {
		if b.Number != d.Number-1 {
			return errAhead
		}
		b.learn(d.Number, d.Created, content.Marks)
		b.setKinds(kinds)
		return nil
	})
	if err == nil {
		s.known = &b
	}
	return err
}

// look compares the objects with the baseline, and stores a notification if
// something has changed and the minimum interval has passed.
func (s *subscriptionWorker) look(ctx context.Context, rec record) (time.Duration, error) {
	target, err := s.n.cfg.Source.Target(ctx, rec.Instance)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return 0, s.end(ctx)
	case err != nil:
		return 0, fmt.Errorf("cannot find the objects of VNF instance %s: %w", rec.Instance, err)
	case target.Region != rec.Region:
		return 0, s.move(ctx, target.Region)
	}
	kinds := distinct(target.Kinds)
	if s.known != nil {
		kinds = distinct(slices.Concat(kinds, s.known.Kinds))
	}
	owner := cmp.Or(target.Owner, rec.Instance)
	s.subscribe(owner)
	s.region.want(s.uid, kinds)
	objects, seen := s.region.objects.objectsOf(owner, kinds)
	if s.known == nil {
		return idle, s.begin(ctx, kinds, objects, seen)
	}
	list := s.compare(objects, seen)
	if len(list) == 0 {
		return idle, nil
	}
	if wait := s.known.Sent.Add(rec.MinInterval).Sub(s.n.now()); wait > 0 {
		return wait, nil
	}
	s.known.Kinds = kinds
	return 0, s.write(ctx, rec, list)
}

// subscribe makes changes of an owner's objects wake the worker. The caller must
// look at the objects afterwards, to see earlier changes.
func (s *subscriptionWorker) subscribe(owner string) {
	if owner == s.owner {
		return
	}
	s.unsubscribe()
	s.owner, s.unsubscribe = owner, s.region.objects.subscribe(owner, s.wakeCh)
}

// begin stores the present objects as the baseline, once all kinds have synced.
func (s *subscriptionWorker) begin(ctx context.Context, kinds []nf.Ref, objects map[string]*cachedObject, seen map[string]bool) error {
	unknown := func(k nf.Ref) bool { _, known := seen[kindKey(k)]; return !known }
	if slices.ContainsFunc(kinds, unknown) {
		return nil // the cache wakes the worker when a kind has synced
	}
	b := baseline{UID: s.uid, Kinds: kinds, Marks: map[string]string{}}
	for key, cached := range objects {
		b.Marks[key] = cached.mark()
		s.shown[key] = cached.object
	}
	if err := s.n.baselines.Insert(ctx, s.uid, b); err != nil {
		return err
	}
	s.known = &b
	return nil
}

// compare returns the differences between the objects and the baseline, sorted.
// An object counts as deleted only if the objects of its kind have been seen.
func (s *subscriptionWorker) compare(objects map[string]*cachedObject, seen map[string]bool) []objectChange {
	var out []objectChange
	for key, cached := range objects {
		mark, known := s.known.Marks[key]
		if now := cached.mark(); !known || now != mark {
			out = append(out, objectChange{key: key, ref: cached.ref, object: cached.object, mark: now, known: known})
		}
	}
	for key := range s.known.Marks {
		if objects[key] == nil && seen[kindOfKey(key)] {
			out = append(out, s.absence(key))
		}
	}
	slices.SortFunc(out, func(a, b objectChange) int { return a.ref.Compare(b.ref) })
	return out
}

// absence returns the change for a deleted object.
func (s *subscriptionWorker) absence(key string) objectChange {
	return objectChange{key: key, ref: refOf(key, s.known.Kinds), object: s.shown[key], known: true}
}

// write stores a notification and updates the baseline. Once stored, the
// notification is pending.
func (s *subscriptionWorker) write(ctx context.Context, rec record, list []objectChange) error {
	content, marks, err := compose(list)
	if err != nil {
		return err
	}
	r, err := newRequest(rec, s.known.Number+1, content, marks)
	if err != nil {
		return err
	}
	d, err := s.n.outbox.Put(ctx, r)
	if err != nil {
		return err
	}
	if err := s.learn(ctx, d); err != nil {
		return err
	}
	for _, a := range list {
		if mark, told := marks[a.key]; told && mark == "" {
			delete(s.shown, a.key)
		} else if told {
			s.shown[a.key] = a.object
		}
	}
	return nil
}

// end records that the instance is gone. From then on the subscription is
// hidden; it only delivers the remaining notifications.
func (s *subscriptionWorker) end(ctx context.Context) error {
	return s.edit(ctx, func(rec *record) { rec.Ended = s.n.now() })
}

// move records that the instance is in another region, whose worker will serve
// the subscription.
func (s *subscriptionWorker) move(ctx context.Context, region string) error {
	if err := s.edit(ctx, func(rec *record) { rec.Region = region }); err != nil {
		return err
	}
	s.n.outbox.Scan()
	return outbox.ErrOver
}

func (s *subscriptionWorker) edit(ctx context.Context, edit func(*record)) error {
	_, err := s.n.subscriptions.Update(ctx, s.key, func(rec *record) error {
		if rec.UID != s.uid {
			return outbox.ErrOver
		}
		edit(rec)
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return outbox.ErrOver
	}
	return err
}

// drain notifies the subscriber that all objects are gone, and then deletes
// the subscription. The subscription stays while it has dead letters, so that
// they can be resent.
func (s *subscriptionWorker) drain(ctx context.Context, rec record) (time.Duration, error) {
	s.region.want(s.uid, nil)
	if s.known != nil && len(s.known.Marks) > 0 {
		var list []objectChange
		for _, key := range slices.Sorted(maps.Keys(s.known.Marks)) {
			list = append(list, s.absence(key))
		}
		return 0, s.write(ctx, rec, list)
	}
	dead, err := s.n.outbox.HasDeadLetters(ctx, s.uid)
	if err != nil || dead {
		return idle, err
	}
	err = s.n.subscriptions.DeleteIf(ctx, s.key, func(rec record) error {
		if rec.UID != s.uid {
			return outbox.ErrOver
		}
		return nil
	})
	if err := nf.IgnoreNotFound(err); err != nil {
		return 0, err
	}
	if err := s.n.deleteRecords(ctx, s.uid); err != nil {
		return 0, err // the hourly collection will delete the rest
	}
	return 0, outbox.ErrOver
}
