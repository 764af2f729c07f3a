package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// HandOver is the delivery of the kubeconfig of a region to a URL.
type HandOver struct {
	outbox.Delivery

	Region   string
	Instance string // that registered the region
}

func handOverOf(d outbox.Delivery) (HandOver, error) {
	var note handOverNote
	if err := json.Unmarshal(d.Note, &note); err != nil {
		return HandOver{}, fmt.Errorf("cannot read dead letter %s: %w", d.ID, err)
	}
	return HandOver{Delivery: d, Region: d.Key, Instance: note.Instance}, nil
}

// DeadLetters returns the hand-overs that were given up, the oldest of each region first.
func (r *Registrar) DeadLetters(ctx context.Context) ([]HandOver, error) {
	dead, err := r.cfg.Outbox.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]HandOver, len(dead))
	for i, d := range dead {
		if out[i], err = handOverOf(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Resend queues a dead letter for delivery. It returns nf.NotFound if the dead letter or
// its region does not exist, and nf.Conflict if the region has other credentials by now: a
// later request hands these over.
func (r *Registrar) Resend(ctx context.Context, id string) (HandOver, error) {
	d, err := r.cfg.Outbox.DeadLetter(ctx, id)
	if err != nil {
		return HandOver{}, err
	}
	out, err := handOverOf(d)
	if err != nil {
		return HandOver{}, err
	}
	region, err := r.cfg.Regions.Region(ctx, out.Region)
	switch {
	case err != nil:
		return HandOver{}, err
	case region.Parent == nil || region.Parent.Instance != out.Instance:
		return HandOver{}, nf.E(nf.NotFound, "resend", "dead letter "+id, errors.New("its cloud region was deregistered"))
	case region.Parent.Sent > d.Number:
		return HandOver{}, nf.E(nf.Conflict, "resend", "dead letter "+id, errors.New("a later one has the present credentials of its cloud region; delete it"))
	}
	out.Delivery, err = r.cfg.Outbox.Resend(ctx, d)
	return out, err
}

// Discard deletes a dead letter, or returns nf.NotFound.
func (r *Registrar) Discard(ctx context.Context, id string) error {
	return r.cfg.Outbox.Discard(ctx, id)
}
