package access

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VNFAlarmKeeper stores the alarms of SOL003.
type VNFAlarmKeeper interface {
	Alarm(ctx context.Context, id string) (nf.Alarm, error)
	AlarmsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Alarm, error]
	UpdateAlarm(ctx context.Context, id string, edit func(*nf.Alarm) error) (nf.Alarm, error)
}

// VNFAlarms gives access to a VNFAlarmKeeper with the permissions of the identity in the
// context. An alarm belongs to the project and the region of its VNF.
type VNFAlarms struct {
	guard  *guard
	keeper VNFAlarmKeeper
}

var _ VNFAlarmKeeper = VNFAlarms{}

// NewVNFAlarms returns the guarded alarms of a keeper.
func NewVNFAlarms(guarded *Guarded, keeper VNFAlarmKeeper) VNFAlarms {
	return VNFAlarms{guarded.guard, keeper}
}

func vnfAlarmScope(a nf.Alarm) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(a.Project), Region: a.Region}
}

// Alarm requires instance:read.
func (v VNFAlarms) Alarm(ctx context.Context, id string) (nf.Alarm, error) {
	hidden := absent("alarm", id)
	a, err := v.keeper.Alarm(ctx, id)
	if err != nil {
		return nf.Alarm{}, orAbsent(err, hidden)
	}
	if err := v.guard.see(ctx, nf.ReadInstance, vnfAlarmScope(a), hidden); err != nil {
		return nf.Alarm{}, err
	}
	return a, nil
}

// AlarmsFrom yields the alarms that the identity may read.
func (v VNFAlarms) AlarmsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Alarm, error] {
	visible, err := v.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.Alarm](err)
	}
	return list[nf.Alarm]{v.keeper.AlarmsFrom(ctx, from), vnfAlarmScope, visible}.shown(
		func(a nf.Alarm) (nf.Alarm, error) { return a, nil })
}

// UpdateAlarm requires instance:change.
func (v VNFAlarms) UpdateAlarm(ctx context.Context, id string, edit func(*nf.Alarm) error) (nf.Alarm, error) {
	a, err := v.Alarm(ctx, id)
	if err != nil {
		return nf.Alarm{}, err
	}
	if err := v.guard.may(ctx, nf.ChangeInstance, vnfAlarmScope(a), id, a.VNF); err != nil {
		return nf.Alarm{}, err
	}
	changed, err := v.keeper.UpdateAlarm(ctx, id, edit)
	return changed, orAbsent(err, absent("alarm", id))
}
