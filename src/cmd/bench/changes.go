package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The ways and times of the scenario changes.
const (
	readWay    = "bare reads"
	reapplyWay = "re-apply"
	appliedWay = "accepted to applied"
	seenWay    = "ready until the operation has ended"
)

const (
	reappliedObjects = 500
	idleObjects      = 10
	idleRounds       = 40
)

// changes measures the re-apply of unchanged objects, and how soon a service without other
// work applies objects and sees that they are ready.
func (b *bench) changes(ctx context.Context, kubeconfig, out string, rounds int) error {
	counted, stop, err := b.counted(ctx, kubeconfig)
	defer stop()
	if err != nil {
		return err
	}
	again, writes, err := b.reapplied(ctx, counted, rounds)
	if err != nil {
		return fmt.Errorf("cannot measure the re-apply: %w", err)
	}
	idle, err := b.idle(ctx)
	if err != nil {
		return fmt.Errorf("cannot measure the idle service: %w", err)
	}
	b.values.set("re-apply of 500 unchanged objects: service to bare reads", again.ratio(reapplyWay, readWay))
	b.values.set("its writes, after the first one of objects that are a minute old", float64(writes.later))
	b.values.set("10 objects, accepted to applied, p99", milliseconds(quantile(idle.times[appliedWay], 0.99)))
	b.values.set("ready until the operation has ended, p99", milliseconds(quantile(idle.times[seenWay], 0.99)))
	text := fmt.Sprintf(changesReport, time.Now().Format(time.DateOnly), b.version, machine(), rounds, reappliedObjects, idleRounds,
		ms(again.median(readWay)), ms(again.median(reapplyWay)), again.ratio(reapplyWay, readWay), writes.young, writes.old, writes.later,
		ms(idle.median(appliedWay)), ms(quantile(idle.times[appliedWay], 0.99)), ms(idle.median(seenWay)), ms(quantile(idle.times[seenWay], 0.99)))
	fmt.Print(text)
	return writeReport(out, text)
}

// reapplyWrites are the writes of re-applies to the region.
type reapplyWrites struct {
	young, old int64 // of one right after the creation, and of the first one a minute later
	later      int64 // of all others together
}

// reapplied applies an instance again, and reads its objects without the service, in
// turns.
func (b *bench) reapplied(ctx context.Context, counted *counter, rounds int) (result, reapplyWrites, error) {
	r := result{size: reappliedObjects, times: map[string][]time.Duration{}}
	var writes reapplyWrites
	set, err := newObjectSet(r.size, "applied")
	if err != nil {
		return r, writes, err
	}
	defer set.remove()
	if err := b.service.upload(ctx, set); err != nil {
		return r, writes, err
	}
	made, err := b.service.create(ctx, map[string]any{
		"cloud_region_id": "sandbox", "csar_id": packageID(set), "namespace": namespace, "vnf_instance_name": "bench",
	})
	if err != nil {
		return r, writes, err
	}
	operation := made.operation
	again := func(count *int64) (took time.Duration, err error) {
		before := counted.writes.Load()
		if err := b.service.ended(ctx, operation); err != nil {
			return 0, err
		}
		began := time.Now()
		operation, err = b.service.update(ctx, made.instance, packageID(set))
		*count += counted.writes.Load() - before
		return time.Since(began), err
	}
	if _, err := again(&writes.young); err != nil {
		return r, writes, err
	}
	if err := wait(ctx, time.Minute); err != nil {
		return r, writes, err
	}
	if _, err := again(&writes.old); err != nil {
		return r, writes, err
	}
	for range rounds {
		took, err := again(&writes.later)
		if err != nil {
			return r, writes, err
		}
		r.times[reapplyWay] = append(r.times[reapplyWay], took)
		if took, err = b.read(ctx, set); err != nil {
			return r, writes, err
		}
		r.times[readWay] = append(r.times[readWay], took)
	}
	return r, writes, errors.Join(b.service.terminateAll(ctx), b.api.clear(ctx))
}

// read reads each object, with as many requests at a time as the service has.
func (b *bench) read(ctx context.Context, set objectSet) (time.Duration, error) {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.workers)
	for _, o := range set.objects {
		group.Go(func() error {
			status, answer, err := b.api.do(ctx, http.MethodGet, fmt.Sprintf(o.path, namespace)+"/"+o.name, "", nil)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("cannot read %s: status %d: %s", o.name, status, answer)
			}
			return err
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// idle creates instances, one after another, and waits until they are ready.
func (b *bench) idle(ctx context.Context) (result, error) {
	r := result{size: idleObjects, times: map[string][]time.Duration{}}
	set, err := newObjectSet(r.size, "ready")
	if err != nil {
		return r, err
	}
	defer set.remove()
	if err := b.service.upload(ctx, set); err != nil {
		return r, err
	}
	for round := range idleRounds + 1 {
		watching, stop := context.WithCancel(ctx)
		ready, failed := make(chan time.Time, 1), make(chan error, 1)
		go func() {
			at, err := b.api.deploymentsReady(watching, 1)
			ready <- at
			failed <- err
		}()
		applied, err := b.service.instantiateReady(ctx, set)
		ended := time.Now()
		if err != nil {
			stop()
			return r, err
		}
		at, err := <-ready, <-failed
		stop()
		if err = errors.Join(err, b.service.terminateAll(ctx), b.api.clear(ctx)); err != nil {
			return r, err
		}
		if round > 0 { // the first one reads the schemas of the region
			r.times[appliedWay], r.times[seenWay] = append(r.times[appliedWay], applied), append(r.times[seenWay], max(0, ended.Sub(at)))
		}
	}
	return r, nil
}

var changesReport = strings.TrimLeft(`
# Changes of instances

Written by `+"`make bench SCENARIO=changes`"+` on %s: Kubernetes %s, %s.

**Re-apply**, %d rounds, medians, and the mean of the middle half of the ratios of the rounds: an instance of %d unchanged objects is updated to the package that it has. A bare client reads the same objects, one request for each, with as many requests at a time as
the service uses, in turns. A proxy, which only the service's requests pass, counts the writes. The goals are no write, and a ratio of at most 1.1. Within a minute of its creation, an object whose
status has changed is sent again, and once more afterwards, so the measured re-applies come after these.

**Idle**: %d instances of ten objects are created one after another, until they are ready. The first time is that between the operation's acceptance and its last apply. The second is that from when a
watch of this program has seen the Deployment available until it has the last event of the operation. The goals are at most 150 ms and, for the p99, 200 ms.

| what | result |
|---|--:|
| bare reads, ms | %s |
| re-apply, ms | %s |
| ratio | %.2f |
| writes of a re-apply right after the creation | %d |
| writes of the first re-apply after a minute | %d |
| writes of the measured re-applies, all rounds | %d |
| accepted to applied, median and p99, ms | %s, %s |
| ready until the operation has ended, median and p99, ms | %s, %s |
`, "\n")
