package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// namespacesOfOneNetwork is the number of namespaces that the instances share: the API
// server takes longer to delete one than the service to terminate an instance.
const namespacesOfOneNetwork = 5

// onOneNetwork creates instances at once, all on one network, which the first of them
// creates. When the network has all of them as users, it terminates them at once, and the
// last of them deletes the network.
func (l *load) onOneNetwork(ctx context.Context, instances int) error {
	region := regions()[0]
	link := l.run + "-one"
	all := make([]*workloadState, instances)
	for i := range all {
		w := newWorkload(l.seed, i, l.run)
		w.place = place{Region: region, Namespace: fmt.Sprintf("%s-%d", l.run, i%namespacesOfOneNetwork)}
		w.share, w.link, w.volume, w.edge = true, link, "", ""
		w.acts = []act{{verb: create, end: succeeds, shape: shapeOf("lean").name}, {verb: terminate, end: succeeds}}
		all[i] = &workloadState{workload: w}
	}
	if err := l.performAtOnce(ctx, all, 0); err != nil {
		return err
	}
	var n shared
	if _, err := l.client.get(ctx, "/v1/networks/"+region+"."+link, &n); err != nil {
		return err
	}
	if len(n.Users) != instances {
		return fmt.Errorf("network %s has %d users, and %d instances were created on it", link, len(n.Users), instances)
	}
	l.counts.add("users of one network", len(n.Users))
	return l.performAtOnce(ctx, all, 1)
}

// performAtOnce performs the act with the number for all workloads at once.
func (l *load) performAtOnce(ctx context.Context, all []*workloadState, number int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		group.Go(func() error {
			a := s.acts[number]
			if err := l.perform(ctx, s, number, a); err != nil {
				return fmt.Errorf("%s of instance %s: %w", a.verb, s.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
