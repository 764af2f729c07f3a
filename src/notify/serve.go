package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// service serves one subscription: it finds what has changed, writes it into a
// letter, and posts that. While a letter is on its way, no other is written:
// what happens meanwhile comes together in the next.
type service struct {
	n    *Notifier
	desk *desk
	uid  string
	key  string // of the subscription

	wake  chan struct{} // holds a token when there may be something to do
	stale atomic.Bool   // what is kept may have been changed by others

	// The turns alone use these.
	known   *baseline                 // nil: nothing yet
	pending []letter                  // on their way, in their order
	shown   map[string]map[string]any // the objects as the subscriber was told of them last, by Ref.Key
	owner   string                    // whose objects it listens to; empty: nobody's yet
	deafen  func()                    // ends that
}

var (
	errOver  = errors.New("the subscription is served here no more")
	errAhead = errors.New("another replica has served the subscription")
)

const (
	idle       = time.Hour
	errorPause = time.Minute
)

func newService(d *desk, rec record) *service {
	s := &service{
		n: d.n, desk: d, uid: rec.UID, key: subscriptionKey(rec.Instance, rec.Name),
		wake: make(chan struct{}, 1), shown: map[string]map[string]any{}, deafen: func() {},
	}
	s.stale.Store(true)
	return s
}

// review makes the service look at all that it has to do with.
func (s *service) review() {
	s.stale.Store(true)
	rouse(s.wake)
}

// run serves until the context or the subscription ends.
func (s *service) run(ctx context.Context) {
	defer func() { s.deafen() }()
	for failures := 0; ctx.Err() == nil; {
		wait, err := s.turn(ctx)
		switch {
		case errors.Is(err, errOver):
			return
		case err != nil && ctx.Err() == nil:
			failures++
			s.known = nil // it may have been written all the same, or by another
			s.stale.Store(true)
			s.n.cfg.Logger.WarnContext(ctx, "a subscription cannot be served for now", "subscription", s.key, "error", err)
			lease.Rest(ctx, min(backoff(failures, random), errorPause), nil)
		default:
			failures = 0
			lease.Rest(ctx, wait, s.wake)
		}
	}
}

// random returns a random part of a duration.
func random(d time.Duration) time.Duration { return rand.N(d) }

// turn does what is to be done next, and returns after which time there is more
// unless something happens before.
func (s *service) turn(ctx context.Context) (time.Duration, error) {
	rec, err := s.n.subscriptions.Get(ctx, s.key)
	switch {
	case nf.KindOf(err) == nf.NotFound || err == nil && (rec.UID != s.uid || rec.Region != s.desk.region):
		return 0, errOver // what is seen of another region says nothing of it
	case err != nil:
		return 0, err
	}
	if s.stale.Swap(false) {
		if err := s.load(ctx); err != nil {
			return 0, err
		}
	}
	if len(s.pending) > 0 {
		return s.deliver(ctx, rec)
	}
	if !rec.Ended.IsZero() {
		return s.windUp(ctx, rec)
	}
	return s.look(ctx, rec)
}

// load reads what is kept of the subscription. A letter that was written, but
// not noted in the baseline, is noted.
func (s *service) load(ctx context.Context) error {
	if s.known == nil {
		known, err := s.n.baselines.Get(ctx, s.uid)
		if err == nil {
			s.known = &known
		} else if nf.KindOf(err) != nf.NotFound {
			return err
		}
	}
	var err error
	if s.pending, err = s.n.letters.List(ctx, lettersOf(s.uid)); err != nil {
		return err
	}
	for _, l := range s.pending {
		if s.known != nil && l.Number > s.known.Number {
			if err := s.learn(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// learn notes what the subscriber knows by a letter.
func (s *service) learn(ctx context.Context, l letter) error {
	kinds := s.known.Kinds
	b, err := s.n.baselines.Update(ctx, s.uid, func(b *baseline) error {
		if b.Number != l.Number-1 {
			return errAhead
		}
		b.learn(l)
		b.settle(kinds)
		return nil
	})
	if err == nil {
		s.known = &b
	}
	return err
}

// look finds what the subscriber does not know yet, and writes a letter when it
// is time for one.
func (s *service) look(ctx context.Context, rec record) (time.Duration, error) {
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
	s.listen(owner)
	s.desk.want(s.uid, kinds)
	things, seen := s.desk.scene.of(owner, kinds)
	if s.known == nil {
		return idle, s.begin(ctx, kinds, things, seen)
	}
	list := s.compare(things, seen)
	if len(list) == 0 {
		return idle, nil
	}
	if wait := s.known.Sent.Add(rec.MinInterval).Sub(s.n.now()); wait > 0 {
		return wait, nil
	}
	s.known.Kinds = kinds
	return 0, s.write(ctx, rec, list)
}

// listen makes changes of an owner's objects wake the service. What has changed
// before is seen by who looks afterwards.
func (s *service) listen(owner string) {
	if owner == s.owner {
		return
	}
	s.deafen()
	s.owner, s.deafen = owner, s.desk.scene.listen(owner, s.wake)
}

// begin keeps what is there as what the subscriber knows.
func (s *service) begin(ctx context.Context, kinds []nf.Ref, things map[string]*thing, seen map[string]bool) error {
	if slices.ContainsFunc(kinds, func(k nf.Ref) bool { return !seen[kindKey(k)] }) {
		return nil // the scene will tell
	}
	b := baseline{UID: s.uid, Kinds: kinds, Marks: map[string]string{}}
	for key, t := range things {
		b.Marks[key] = t.mark()
		s.shown[key] = t.object
	}
	if err := s.n.baselines.Insert(ctx, s.uid, b); err != nil {
		return err
	}
	s.known = &b
	return nil
}

// compare lists how what is there differs from what the subscriber knows, ordered
// by key. Of a kind that was not seen whole nothing is gone.
func (s *service) compare(things map[string]*thing, seen map[string]bool) []alteration {
	var out []alteration
	for key, t := range things {
		mark, known := s.known.Marks[key]
		if now := t.mark(); !known || now != mark {
			out = append(out, alteration{key: key, ref: t.ref, object: t.object, mark: now, known: known})
		}
	}
	for key := range s.known.Marks {
		if things[key] == nil && seen[kindOfKey(key)] {
			out = append(out, s.absence(key))
		}
	}
	slices.SortFunc(out, func(a, b alteration) int { return a.ref.Compare(b.ref) })
	return out
}

// absence is the alteration of an object that is gone.
func (s *service) absence(key string) alteration {
	return alteration{key: key, ref: refOf(key, s.known.Kinds), object: s.shown[key], known: true}
}

// write writes a letter. It is on its way from the moment it is kept.
func (s *service) write(ctx context.Context, rec record, list []alteration) error {
	content, marks, err := compose(list)
	if err != nil {
		return err
	}
	number, now := s.known.Number+1, s.n.now()
	l := letter{
		Letter: Letter{ID: letterID(s.uid, number), Instance: rec.Instance, Subscription: rec.Name, Changes: content, Created: now, Due: now},
		UID:    s.uid, Number: number, Marks: marks,
	}
	if err := s.n.letters.Insert(ctx, l.ID, l); err != nil {
		return err
	}
	if err := s.learn(ctx, l); err != nil {
		return err
	}
	for _, a := range list {
		if mark, told := marks[a.key]; told && mark == "" {
			delete(s.shown, a.key)
		} else if told {
			s.shown[a.key] = a.object
		}
	}
	s.pending = append(s.pending, l)
	return nil
}

// end notes that the instance is gone. The subscription serves to say so, and
// nobody sees it any more.
func (s *service) end(ctx context.Context) error {
	return s.edit(ctx, func(rec *record) { rec.Ended = s.n.now() })
}

// move notes that the instance is in another region now, whose desk serves the
// subscription.
func (s *service) move(ctx context.Context, region string) error {
	if err := s.edit(ctx, func(rec *record) { rec.Region = region }); err != nil {
		return err
	}
	s.n.poke()
	return errOver
}

func (s *service) edit(ctx context.Context, edit func(*record)) error {
	_, err := s.n.subscriptions.Update(ctx, s.key, func(rec *record) error {
		if rec.UID != s.uid {
			return errOver
		}
		edit(rec)
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return errOver
	}
	return err
}

// windUp tells that all objects are gone, and then forgets the subscription,
// unless a person may want to send some of its letters again.
func (s *service) windUp(ctx context.Context, rec record) (time.Duration, error) {
	s.desk.want(s.uid, nil)
	if s.known != nil && len(s.known.Marks) > 0 {
		var list []alteration
		for _, key := range slices.Sorted(maps.Keys(s.known.Marks)) {
			list = append(list, s.absence(key))
		}
		return 0, s.write(ctx, rec, list)
	}
	dead, err := idsOf(ctx, s.n.dead, s.uid)
	if err != nil || len(dead) > 0 {
		return idle, err
	}
	err = s.n.subscriptions.DeleteIf(ctx, s.key, func(rec record) error {
		if rec.UID != s.uid {
			return errOver
		}
		return nil
	})
	if err := nf.UnlessGone(err); err != nil {
		return 0, err
	}
	if err := s.n.forget(ctx, s.uid); err != nil {
		return 0, err // the sweep will
	}
	return 0, errOver
}
