package aaisync

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
)

// removeStrays deletes objects that no record names, once per interval. Nothing is
// written meanwhile.
func (k *Keeper) removeStrays(ctx context.Context, s scan, now time.Time) error {
	if k.strays.IsZero() {
		k.strays = now.Add(k.cfg.Verify) // a start does not wait for it
	}
	if now.Before(k.strays) || k.isDenied() {
		return nil
	}
	k.strays = now.Add(k.cfg.Verify)
	records, err := k.records.List(ctx, "") // those of the scan are older than what was written since
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, r := range records {
		for path := range r.Written {
			known[path] = true
		}
	}
	isKnown := func(path string) bool { return known[path] }
	strays := make(aai.Written)
	networks, err := k.cfg.Target.StrayNetworks(ctx, isKnown)
	errs := []error{err}
	maps.Copy(strays, networks)
	for place := range s.places {
		more, err := k.cfg.Target.Strays(ctx, place, isKnown)
		errs = append(errs, err)
		maps.Copy(strays, more)
	}
	if len(strays) > 0 {
		k.cfg.Logger.WarnContext(ctx, "A&AI has objects of this service that it does not know; deleting them", "objects", len(strays))
		_, err = k.cfg.Target.Write(ctx, nil, strays, false)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
