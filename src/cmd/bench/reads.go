package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// latencies holds the durations of requests by name.
type latencies struct {
	mu     sync.Mutex
	names  []string // in order of their first request
	byName map[string][]time.Duration
}

func (l *latencies) add(name string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string][]time.Duration{}
	}
	if l.byName[name] == nil {
		l.names = append(l.names, name)
	}
	l.byName[name] = append(l.byName[name], took)
}

// all returns the durations of all requests.
func (l *latencies) all() []time.Duration {
	var all []time.Duration
	for _, name := range l.names {
		all = slices.Concat(all, l.byName[name])
	}
	return all
}

// atRate sends requests at a constant rate, whether or not earlier ones have been
// answered. Do sends the request with a number and returns its name.
func atRate(ctx context.Context, perSecond, seconds int, do func(ctx context.Context, i int) (string, error)) (*latencies, error) {
	var out latencies
	group, ctx := errgroup.WithContext(ctx)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := 0; i < perSecond*seconds && ctx.Err() == nil; i++ {
		<-tick.C
		group.Go(func() error {
			began := time.Now()
			name, err := do(ctx, i)
			out.add(name, time.Since(began))
			return err
		})
	}
	return &out, group.Wait()
}

// The reads of the scenario stored: so many per second, for so long.
const (
	readRate    = 200
	readSeconds = 30
	readPause   = 10 * time.Second // after the start of the service
)

// readResult holds the durations of reads with a number of stored instances.
type readResult struct {
	times  *latencies
	stored int
	cores  float64 // processor time of the service, per time
}

// reads sends reads of several kinds at a constant rate. Half of them read one
// instance, with the status of its objects from its region. It first waits, because a
// service that was started a moment ago reads all instances once.
func (r *storedRun) reads(ctx context.Context) (readResult, error) {
	if err := wait(ctx, readPause); err != nil {
		return readResult{}, err
	}
	instance := list{name: "one instance", path: "/v1/vnf_instances/" + r.sample[0]}
	operation := list{name: "one operation", path: "/v1/operations/" + r.sample[1]}
	mix := []list{instance, operation, instance, lists[0], instance, lists[1], instance, lists[3], instance, lists[7]}
	out := readResult{stored: r.stored}
	before, err := processorTime(r.service.cmd.Process.Pid)
	if err != nil {
		return out, err
	}
	began := time.Now()
	out.times, err = atRate(ctx, readRate, readSeconds, func(ctx context.Context, i int) (string, error) {
		one := mix[i%len(mix)]
		return one.name, r.service.send(ctx, http.MethodGet, one.path, content{}, nil)
	})
	if err != nil {
		return out, err
	}
	after, err := processorTime(r.service.cmd.Process.Pid)
	out.cores = (after - before).Seconds() / time.Since(began).Seconds()
	return out, err
}
