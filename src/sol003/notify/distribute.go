package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

const (
	batch = 200 // notices read at once, and requests written at once

	lookPause    = time.Second      // between looks for the notices of other replicas
	soleLook     = 30 * time.Second // likewise, if there are none
	longestPause = time.Minute      // after failures

	queueSeparator = "."
)

// queueOf returns the key of the queue of a subscription and a VNF.
func queueOf(subscription, vnf string) string { return subscription + queueSeparator + vnf }

// position is the notice of a source that was distributed last, and its number. The
// number is that of its requests, so that they have the same ids if they are stored again.
type position struct {
	Notice string `json:"notice"`
	Number int    `json:"number"`
}

// distribution distributes the notices of one source.
type distribution struct {
	n      *Notifier
	name   string
	source Source
	at     *position // nil: not loaded
	read   store.Revision
}

// distribute distributes the notices of all sources until the context ends.
func (n *Notifier) distribute(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for name, source := range n.cfg.Sources {
		running.Go(func() { (&distribution{n: n, name: name, source: source}).run(ctx) })
	}
}

func (d *distribution) run(ctx context.Context) {
	look := lookPause
	if d.n.cfg.Sole {
		look = soleLook
	}
	for failures := 0; ctx.Err() == nil; {
		more, err := d.round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			failures++
			d.at = nil // the write may have succeeded, or another replica may have written
			d.n.cfg.Logger.WarnContext(ctx, "failed to distribute notices; will retry", "source", d.name, "error", err)
			delay.For(ctx, delay.Doubled(lookPause, longestPause, failures-1), nil)
		case !more:
			failures = 0
			delay.For(ctx, look, d.source.Noticed())
		}
	}
}

// round distributes the first notices. It reports whether there may be more.
func (d *distribution) round(ctx context.Context) (more bool, err error) {
	var notices []nf.Notice
	for notice, err := range d.source.NoticesFrom(ctx, nf.Cursor{Expect: batch}) {
		if err != nil {
			return false, err
		}
		if notices = append(notices, notice); len(notices) == batch {
			break
		}
	}
	if len(notices) == 0 {
		return false, nil
	}
	if err := d.load(ctx); err != nil {
		return false, err
	}
	subscriptions, err := d.n.subscriptions.List(ctx, "")
	if err != nil {
		return false, err
	}
	// Order matters: a crash may have left requests of this notice under its number.
	slices.SortStableFunc(notices, func(a, b nf.Notice) int { return cmp.Compare(d.later(a), d.later(b)) })
	for _, notice := range notices {
		if err := d.one(ctx, notice, subscriptions); err != nil {
			return false, err
		}
	}
	return true, nil
}

// later returns 0 for the notice of the position, and 1 for others.
func (d *distribution) later(notice nf.Notice) int {
	if notice.ID == d.at.Notice {
		return 0
	}
	return 1
}

// load loads the position.
func (d *distribution) load(ctx context.Context) error {
	if d.at != nil {
		return nil
	}
	at, read, err := d.n.positions.GetRevision(ctx, d.name)
	if nf.KindOf(err) == nf.NotFound {
		at, read, err = position{}, store.Absent, nil
	}
	if err == nil {
		d.at, d.read = &at, read
	}
	return err
}

// one stores the requests of a notice, and drops the notice.
func (d *distribution) one(ctx context.Context, notice nf.Notice, all []nf.VNFSubscription) error {
	to := slices.DeleteFunc(slices.Clone(all), func(s nf.VNFSubscription) bool { return !selects(s, notice) })
	for i, part := range slices.Collect(slices.Chunk(to, batch)) {
		if i == 0 {
			if err := d.advance(ctx, notice.ID); err != nil {
				return err
			}
		}
		if err := d.put(ctx, notice, part); err != nil {
			return err
		}
	}
	return d.source.DropNotice(ctx, notice.ID)
}

// selects reports whether a subscription selects a notice.
func selects(s nf.VNFSubscription, n nf.Notice) bool {
	if n.PM != nil || s.Interface == nf.VNFPerformance {
		return n.PM != nil && n.PM.Target.ID == s.ID // a job and a threshold are their own subscription
	}
	faults := n.Kind == nf.NoticeAlarm || n.Kind == nf.NoticeCleared
	return (s.Interface == nf.VNFFaults) == faults && nf.ProjectOf(s.Project) == nf.ProjectOf(n.VNF.Project) && s.Filter.Selects(n)
}

// advance gives a notice the next number, unless it has one. It returns nf.Conflict if
// another replica distributes notices.
func (d *distribution) advance(ctx context.Context, id string) error {
	if d.at.Notice == id {
		return nil
	}
	next := position{Notice: id, Number: d.at.Number + 1}
	op, err := d.n.positions.ReplaceOp(d.name, next, d.read)
	if err != nil {
		return err
	}
	revisions, err := store.Write(ctx, d.n.cfg.KV, []store.Op{op})
	if err != nil {
		return err
	}
	d.at, d.read = &next, revisions[0]
	return nil
}

// put stores the requests of a notice to some subscriptions, unless they are stored.
func (d *distribution) put(ctx context.Context, notice nf.Notice, to []nf.VNFSubscription) error {
	var ops []store.Op
	for _, s := range to {
		op, err := d.request(ctx, notice, s)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	for len(ops) > 0 {
		_, err := store.Write(ctx, d.n.cfg.KV, ops)
		if err == nil {
			break
		}
		failed, ok := errors.AsType[*store.WriteError](err)
		if !ok || nf.KindOf(err) != nf.Exists {
			return err
		}
		ops = slices.Delete(ops, failed.Index, failed.Index+1) // it was stored before a crash
	}
	for _, s := range to {
		d.n.outbox.Wake(queueOf(s.ID, notice.VNF.ID))
	}
	return nil
}

// request returns the op that stores the request to notify a subscription. A notification
// that is too large to be stored is sent as a short one.
func (d *distribution) request(ctx context.Context, notice nf.Notice, s nf.VNFSubscription) (store.Op, error) {
	op, err := d.requestOf(notice, s, s.Short)
	if nf.KindOf(err) == nf.TooLarge {
		d.n.cfg.Logger.WarnContext(ctx, "notification is too large; shortened it", "vnf", notice.VNF.ID, "subscription", s.ID)
		op, err = d.requestOf(notice, s, true)
	}
	return op, err
}

func (d *distribution) requestOf(notice nf.Notice, s nf.VNFSubscription, short bool) (store.Op, error) {
	body, err := json.Marshal(documents{d.n.cfg.Endpoint, d.n.cfg.Status}.of(notice, s, short))
	if err != nil {
		return store.Op{}, fmt.Errorf("cannot encode a notification: %w", err)
	}
	op, _, err := d.n.outbox.PutOp(outbox.Request{
		Key: queueOf(s.ID, notice.VNF.ID), Number: d.at.Number, Method: http.MethodPost, URL: s.Callback, Body: body,
		Header: map[string]string{"Content-Type": "application/json", "Accept": "application/json", "Version": s.Interface.Version()},
	})
	return op, err
}
