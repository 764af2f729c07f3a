package fault

import (
	"context"
	"fmt"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// record is a stored alarm.
type record struct {
	nf.Alarm

	Key     string `json:"key"`     // of the fault
	Subject nf.VNF `json:"subject"` // the VNF as notices have it
}

// Alarm returns an alarm, or nf.NotFound.
func (w *Watcher) Alarm(ctx context.Context, id string) (nf.Alarm, error) {
	r, err := w.alarms.Get(ctx, id)
	return r.Alarm, err
}

// AlarmsFrom yields the alarms, sorted by id.
func (w *Watcher) AlarmsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Alarm, error] {
	return func(yield func(nf.Alarm, error) bool) {
		for r, err := range w.alarms.From(ctx, "", from.After) {
			if err == nil && r.ID == from.After {
				continue
			}
			if !yield(r.Alarm, err) {
				return
			}
		}
	}
}

// UpdateAlarm edits Acknowledged of an alarm. Edit may be called more than once. It
// returns nf.NotFound if there is none.
func (w *Watcher) UpdateAlarm(ctx context.Context, id string, edit func(*nf.Alarm) error) (nf.Alarm, error) {
	r, err := w.alarms.Update(ctx, id, func(r *record) error {
		edited := r.Alarm
		if err := edit(&edited); err != nil {
			return err
		}
		r.Acknowledged = edited.Acknowledged
		return nil
	})
	return r.Alarm, err
}

// NoticesFrom yields the notices of alarms, sorted by id.
func (w *Watcher) NoticesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Notice, error] {
	return w.notices.From(ctx, "", from.After)
}

// DropNotice deletes a notice. It need not exist.
func (w *Watcher) DropNotice(ctx context.Context, id string) error {
	return nf.IgnoreNotFound(w.notices.Delete(ctx, id))
}

// Noticed receives a value when this replica may have written a notice.
func (w *Watcher) Noticed() <-chan struct{} { return w.noticed }

// change stores an alarm with its notice: first the notice, so that no change is without
// one. If the alarm was acknowledged in the meantime, it stays so.
func (w *Watcher) change(ctx context.Context, kind nf.NoticeKind, r record) error {
	now := w.now()
	before, read, err := w.alarms.GetRevision(ctx, r.ID)
	switch {
	case err == nil:
		r.Acknowledged = before.Acknowledged
	case nf.KindOf(err) == nf.NotFound:
		read = store.Absent
	default:
		return err
	}
	notice := nf.Notice{ID: fmt.Sprintf("%020d-%s", now.UnixNano(), r.ID), Kind: kind, Time: now, VNF: r.Subject, Alarm: new(r.Alarm)}
	told, err := w.notices.PutOp(notice.ID, notice)
	if err != nil {
		return err
	}
	stored, err := w.alarms.ReplaceOp(r.ID, r, read)
	if err != nil {
		return err
	}
	_, err = store.Write(ctx, w.cfg.KV, []store.Op{told, stored})
	w.noticed.Send()
	return err
}

// recordOf returns the record of a new alarm. Its id follows from the fault and from its
// last alarm, so that it is the same if a crash makes it be raised again.
func recordOf(v nf.VNF, key string, a nf.Alarm, last string) record {
	a.ID = nf.UUIDOf("k8splugin.io/alarm/" + v.ID + "/" + key + "/" + last)
	return record{Alarm: a, Key: key, Subject: subjectOf(v)}
}

// subjectOf returns a VNF as notices have it.
func subjectOf(v nf.VNF) nf.VNF {
	return nf.VNF{ID: v.ID, Project: v.Project, Name: v.Name, Package: v.Package, VNFD: v.VNFD, Created: v.Created, Updated: v.Updated}
}

// expire deletes the alarms that were cleared long ago.
func (w *Watcher) expire(ctx context.Context) error {
	for r, err := range w.alarms.All(ctx, "") {
		if err != nil {
			return err
		}
		if r.Cleared.IsZero() || w.now().Sub(r.Cleared) < w.cfg.Retention {
			continue
		}
		if err := nf.IgnoreNotFound(w.alarms.Delete(ctx, r.ID)); err != nil {
			return err
		}
	}
	return nil
}
