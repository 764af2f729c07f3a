package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Request is an HTTP request that an outbox delivers.
type Request struct {
	Key    string            `json:"key"`    // of the queue
	Number int               `json:"number"` // in the queue, used once; requests are sent in this order
	Method string            `json:"method"`
	URL    string            `json:"url,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"`
	Secret nf.Secret         `json:"secret,omitempty"` // key that signs the request; empty: unsigned
	Policy Policy            `json:"policy,omitzero"`
	Note   json.RawMessage   `json:"note,omitempty"` // the source's own; not sent
}

// Delivery is a stored request: it is pending until it is delivered or becomes
// a dead letter.
type Delivery struct {
	Request

	ID         string    `json:"id"`
	Created    time.Time `json:"created"`
	Attempts   int       `json:"attempts"`
	Started    time.Time `json:"started,omitzero"` // the first attempt; zero: none was recorded
	Due        time.Time `json:"due"`              // when it is sent next
	Resent     time.Time `json:"resent,omitzero"`  // when it was last sent again as a dead letter
	Died       time.Time `json:"died,omitzero"`    // when it was given up; zero: not a dead letter
	LastStatus int       `json:"last_status,omitempty"`
	LastError  string    `json:"last_error,omitempty"`
}

// age returns how long the request has been pending.
func (d Delivery) age(now time.Time) time.Duration {
	return min(now.Sub(d.Created), now.Sub(d.Resent))
}

// deliveryID returns an id; the ids of one queue sort in the order of its
// requests.
func deliveryID(key string, number int) string { return fmt.Sprintf("%s-%010d", key, number) }

const (
	longestError = 512           // bytes kept of an error's text
	maxDead      = 100           // dead letters kept of one queue; the oldest are deleted first
	mostRequests = 9_999_999_999 // of one queue; its digits are those of deliveryID
)

// PutOp returns the op that stores a request, so that a caller can write it and
// its own record in one list of writes: the request first. After the write, the
// caller calls Wake. It returns nf.Invalid if the request has no key, if its
// number is not between 1 and 9,999,999,999, or if its policy is invalid.
//
// The op fails with nf.Exists if the queue has a pending request of that number.
// A caller that repeats its list after a crash must be the only writer of its
// record, as the holder of a claim is, and must derive the number and the content
// from the record. Then nf.Exists means that only the record is missing. If the
// request was delivered in the meantime, it is sent again, under the same id.
func (o *Outbox) PutOp(r Request) (store.Op, Delivery, error) {
	now := o.now()
	d := Delivery{Request: r, ID: deliveryID(r.Key, r.Number), Created: now, Due: now}
	if err := r.check(); err != nil {
		return store.Op{}, Delivery{}, nf.E(nf.Invalid, "put", o.cfg.Noun+" "+d.ID, err)
	}
	op, err := o.pending.InsertOp(d.ID, d)
	return op, d, err
}

// check returns an error if the request cannot be delivered in order.
func (r Request) check() error {
	switch {
	case r.Key == "":
		return errors.New("it has no key")
	case r.Number < 1 || r.Number > mostRequests:
		return fmt.Errorf("its number is not between 1 and %d", int64(mostRequests))
	}
	return r.Policy.check()
}

// Put stores a request for delivery. If the outbox has a source, the source must
// yield its queue already. Errors are those of PutOp and of its op. If Feed.Next
// puts a request, it is not sent before Next has returned.
func (o *Outbox) Put(ctx context.Context, r Request) (Delivery, error) {
	op, d, err := o.PutOp(r)
	if err == nil {
		_, err = store.Write(ctx, o.cfg.KV, []store.Op{op})
	}
	if err != nil {
		return Delivery{}, err
	}
	o.Wake(r.Key)
	return d, nil
}

// DeadLetters returns the dead letters, the oldest of each queue first.
func (o *Outbox) DeadLetters(ctx context.Context) ([]Delivery, error) { return o.dead.List(ctx, "") }

// DeadLetter returns a dead letter, or nf.NotFound.
func (o *Outbox) DeadLetter(ctx context.Context, id string) (Delivery, error) {
	return o.dead.Get(ctx, id)
}

// HasDeadLetters reports whether a queue has dead letters.
func (o *Outbox) HasDeadLetters(ctx context.Context, key string) (bool, error) {
	dead, err := idsOf(ctx, o.dead, key)
	return len(dead) > 0, err
}

// Resend queues a dead letter for delivery, ahead of its queue's later
// requests. It returns the new state.
func (o *Outbox) Resend(ctx context.Context, d Delivery) (Delivery, error) {
	now := o.now()
	d.Attempts, d.Started, d.Due, d.Resent, d.Died = 0, time.Time{}, now, now, time.Time{}
	// Order matters: insert before deleting, so that a crash in between may
	// send the request twice but never loses it.
	if err := o.pending.Insert(ctx, d.ID, d); err != nil && nf.KindOf(err) != nf.Exists {
		return Delivery{}, err
	}
	if err := nf.IgnoreNotFound(o.dead.Delete(ctx, d.ID)); err != nil {
		return Delivery{}, err
	}
	o.Wake(d.Key)
	return d, nil
}

// Discard deletes a dead letter, or returns nf.NotFound.
func (o *Outbox) Discard(ctx context.Context, id string) error { return o.dead.Delete(ctx, id) }

// Drop deletes all requests of a queue that has been removed from the source.
// If a crash interrupts it, the garbage collection deletes the rest.
func (o *Outbox) Drop(ctx context.Context, key string) error {
	o.Wake(key)
	for _, table := range []store.Table[Delivery]{o.pending, o.dead} {
		ids, err := idsOf(ctx, table, key)
		if err == nil {
			err = deleteAll(ctx, table, ids)
		}
		if err != nil {
			return fmt.Errorf("cannot delete the requests of a queue: %w", err)
		}
	}
	return nil
}

// DropQueues deletes all requests of the queues whose keys begin with a prefix, of an
// outbox without a source. A request that is put at the same time may remain.
func (o *Outbox) DropQueues(ctx context.Context, prefix string) error {
	keys := map[string]bool{}
	for _, table := range []store.Table[Delivery]{o.pending, o.dead} {
		for d, err := range table.All(ctx, prefix) {
			if err != nil {
				return fmt.Errorf("cannot delete the requests of queues: %w", err)
			}
			keys[d.Key] = true
		}
	}
	for key := range keys {
		if err := o.Drop(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// giveUp moves a pending request to the dead letters.
func (o *Outbox) giveUp(ctx context.Context, d Delivery) error {
	d.Died = o.now()
	if err := o.dead.Put(ctx, d.ID, d); err != nil {
		return err
	}
	if err := nf.IgnoreNotFound(o.pending.Delete(ctx, d.ID)); err != nil {
		return err
	}
	dead, err := idsOf(ctx, o.dead, d.Key)
	if err != nil {
		return err
	}
	return deleteAll(ctx, o.dead, dead[:max(len(dead)-maxDead, 0)])
}

// idsOf returns the ids of a queue's deliveries, in the order of their numbers.
func idsOf(ctx context.Context, table store.Table[Delivery], key string) ([]string, error) {
	var ids []string
	for d, err := range table.All(ctx, key+"-") {
		if err != nil {
			return nil, err
		}
		if d.Key == key { // another key may begin alike
			ids = append(ids, d.ID)
		}
	}
	return ids, nil
}

func deleteAll(ctx context.Context, table store.Table[Delivery], ids []string) error {
	for _, id := range ids {
		if err := nf.IgnoreNotFound(table.Delete(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// collect deletes the requests whose queue does not exist, and expired dead
// letters.
func (o *Outbox) collect(ctx context.Context) error {
	stray := map[string]bool{}
	var old []string
	for _, table := range []store.Table[Delivery]{o.pending, o.dead} {
		for d, err := range table.All(ctx, "") {
			if err != nil {
				return err
			}
			stray[d.Key] = true
			if !d.Died.IsZero() && o.now().Sub(d.Died) > o.cfg.Keep {
				old = append(old, d.ID)
			}
		}
	}
	if o.alone { // a request makes its queue, and a dead letter needs none
		return deleteAll(ctx, o.dead, old)
	}
	// Order matters: a queue is older than its requests, so listing the queues
	// last misses none.
	if err := o.eachQueue(ctx, func(q Queue) { delete(stray, q.Key) }); err != nil {
		return err
	}
	for key := range stray {
		if err := o.Drop(ctx, key); err != nil {
			return err
		}
	}
	return deleteAll(ctx, o.dead, old)
}
