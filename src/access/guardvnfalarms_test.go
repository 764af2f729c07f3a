package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// oneAlarm is a keeper of one alarm.
type oneAlarm struct {
	nf.Alarm

	changes int
}

// alarmKeeper keeps the alarm, whose type has the name of a method.
type alarmKeeper struct{ of *oneAlarm }

func (k alarmKeeper) Alarm(_ context.Context, id string) (nf.Alarm, error) {
	if id != k.of.ID {
		return nf.Alarm{}, nf.E(nf.NotFound, "read", "that", nil)
	}
	return k.of.Alarm, nil
}

func (k alarmKeeper) AlarmsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Alarm, error] {
	return func(yield func(nf.Alarm, error) bool) { yield(k.of.Alarm, nil) }
}

func (k alarmKeeper) UpdateAlarm(context.Context, string, func(*nf.Alarm) error) (nf.Alarm, error) {
	k.of.changes++
	return k.of.Alarm, nil
}

// TestGuardedVNFAlarms lets every identity read and acknowledge an alarm.
func TestGuardedVNFAlarms(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := nf.Scope{Project: accesstest.ProjectA, Region: accesstest.East}
	tried := map[nf.Kind]int{}
	for _, who := range accesstest.People() {
		reading, changing := nf.Internal, nf.Internal // allowed
		switch {
		case who == accesstest.Anonymous:
			reading, changing = nf.Unauthenticated, nf.Unauthenticated
		case !accesstest.May(who, nf.ReadInstance, in):
			reading, changing = nf.NotFound, nf.NotFound
		case !accesstest.May(who, nf.ChangeInstance, in):
			changing = nf.Forbidden
		}
		ctx, kept := h.as(t, who), &oneAlarm{Alarm: nf.Alarm{ID: "a", Project: in.Project, Region: in.Region}}
		guarded := access.NewVNFAlarms(h.Guarded, alarmKeeper{kept})
		want := func(call string, err error, kind nf.Kind) {
			if (err == nil) != (kind == nf.Internal) || err != nil && nf.KindOf(err) != kind {
				t.Errorf("%s by %s: %v, want %s", call, who, err, kind)
			}
			tried[kind]++
		}
		_, err := guarded.Alarm(ctx, "a")
		want("Alarm", err, reading)
		_, err = guarded.UpdateAlarm(ctx, "a", nil)
		want("UpdateAlarm", err, changing)
		shown := 0
		for _, err := range guarded.AlarmsFrom(ctx, nf.Cursor{}) {
			if err == nil {
				shown++
			}
		}
		if (shown == 1) != (reading == nf.Internal) || (kept.changes == 1) != (changing == nf.Internal) {
			t.Errorf("%s is shown %d alarms and makes %d changes", who, shown, kept.changes)
		}
	}
	if len(tried) < 4 {
		t.Errorf("only the outcomes %v were tried", tried)
	}
}
