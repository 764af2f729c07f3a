package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// trial is one run.
type trial struct {
	options

	dir     string
	name    string // of the run, and the prefix of its namespaces
	etcd    string // etcd's program
	out     io.Writer
	cluster *cluster
	counts  *counts
	ledger  ledger
	rig     *rig
	client  *client
}

func (o options) trial(dir string, out io.Writer) (*trial, error) {
	kubeconfig, bin := os.Getenv("K8SPLUGIN_SANDBOX"), os.Getenv("K8SPLUGIN_SANDBOX_BIN")
	if kubeconfig == "" || bin == "" {
		return nil, errors.New("cannot find the sandbox: run this with make chaos, or beside `sandbox exec`, which sets K8SPLUGIN_SANDBOX and K8SPLUGIN_SANDBOX_BIN")
	}
	c, err := newCluster(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &trial{
		options: o, dir: dir, out: out, cluster: c, counts: newCounts(), etcd: filepath.Join(bin, "etcd"),
		name: "chaos-test-" + strings.ToLower(rand.Text()[:8]),
	}, nil
}

// build builds the service, unless its program is given.
func (t *trial) build(ctx context.Context) error {
	if t.binary != "" {
		return nil
	}
	t.binary = filepath.Join(t.dir, "k8splugin")
	args := []string{"build", "-o", t.binary}
	if t.race {
		args = append(args, "-race")
	}
	output, err := exec.CommandContext(ctx, "go", append(args, "github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot build the service: %w: %s", err, output)
	}
	return nil
}

// run plays the scenario, and fails when an invariant is broken. Nothing runs
// any more when it returns.
func (t *trial) run(ctx context.Context) error {
	fmt.Fprintf(t.out, "seed %d, scenario %s\n", t.seed, t.scenario)
	if err := t.build(ctx); err != nil {
		return err
	}
	// Processes must outlive an interrupted run until they have been ended.
	raising, done := context.WithCancel(context.WithoutCancel(ctx))
	nursery := newNursery()
	var raised errgroup.Group
	raised.Go(func() error { return nursery.run(raising) })
	err := t.play(ctx, nursery)
	if t.rig != nil {
		t.rig.stop()
	}
	done()
	return errors.Join(err, raised.Wait(), t.cluster.clear(context.WithoutCancel(ctx), t.name))
}

func (t *trial) play(ctx context.Context, n *nursery) error {
	l := layout{servers: 3, nodes: 3, regions: len(regions())}
	var err error
	t.rig, err = newRig(ctx, plan{
		layout: l, dir: t.dir, binary: t.binary, etcd: t.etcd, lease: t.lease, cluster: t.cluster, nursery: n, counts: t.counts,
	})
	if err != nil {
		return err
	}
	if err := t.rig.start(ctx); err != nil {
		return err
	}
	t.client = newClient(t.rig.urls, func(server int) bool { return t.rig.servers[server].running() }, t.counts)
	if err := t.rig.register(ctx, t.client, t.cluster); err != nil {
		return err
	}
	began := time.Now()
	findings, err := t.beside(ctx, l)
	t.counts.longest("the whole run", time.Since(began))
	t.report()
	if err == nil && len(findings) > 0 {
		t.explain(ctx, findings)
		err = fmt.Errorf("the service has not kept its word: %d findings", len(findings))
	}
	return err
}

// beside has a region flood the servers all the while.
func (t *trial) beside(ctx context.Context, l layout) (findings []finding, err error) {
	flooding, enough := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return flood{t.client, t.rig, t.counts}.run(flooding) })
	group.Go(func() error { return t.rig.weigh(flooding) })
	findings, err = t.trouble(ctx, l)
	enough()
	return findings, errors.Join(err, group.Wait())
}

// trouble lets the load meet the faults, and then looks at what is left.
func (t *trial) trouble(ctx context.Context, l layout) ([]finding, error) {
	work := &load{client: t.client, ledger: &t.ledger, counts: t.counts, seed: t.seed, run: t.name, atOnce: t.instances}
	var err error
	if t.scenario == scenarioReplicas {
		err = t.replicas(ctx, work)
	} else {
		err = t.storm(ctx, work, l)
	}
	if err != nil {
		return nil, err
	}
	w := &watcher{rig: t.rig, client: t.client, cluster: t.cluster, ledger: &t.ledger, prefix: t.name}
	if err := t.settled(ctx, w); err != nil {
		return nil, err
	}
	return t.judge(ctx, w)
}

// storm lets everything fail for a while, and then nothing.
func (t *trial) storm(ctx context.Context, work *load, l layout) error {
	script := newScript(t.seed, l, strength{kills: t.kills, duration: t.duration, lease: t.lease, quorumLoss: t.quorumLoss})
	fmt.Fprintf(t.out, "%d faults in %s, then up to %s to settle\n", len(script), ends(script).Round(time.Second), t.settle)
	log, err := os.Create(filepath.Join(t.dir, "faults.log"))
	if err != nil {
		return fmt.Errorf("cannot write the log of the faults: %w", err)
	}
	defer func() { _ = log.Close() }()
	// What is promised must be answered soon after the last fault.
	ctx, cancel := context.WithTimeout(ctx, ends(script)+t.settle)
	defer cancel()
	reviving, enoughReviving := context.WithCancel(ctx)
	over := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.rig.revive(reviving) })
	group.Go(func() error {
		defer enoughReviving()
		defer close(over)
		s := &storm{rig: t.rig, script: script, log: log}
		if err := s.rage(ctx); err != nil {
			return err
		}
		return t.rig.restore(ctx)
	})
	group.Go(func() error { return work.play(ctx, over, 0) })
	err = group.Wait()
	enoughReviving()
	return err
}

// replicas lets one server and one etcd node die for good, while operations go
// on.
func (t *trial) replicas(ctx context.Context, work *load) error {
	ctx, cancel := context.WithTimeout(ctx, t.settle+time.Duration(t.operations)*time.Second)
	defer cancel()
	played := make(chan struct{})
	group, playing := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(played)
		return work.play(playing, nil, t.operations)
	})
	for share, victim := range map[int]*process{3: t.rig.servers[0], 2: t.rig.nodes[0]} {
		group.Go(func() error {
			for t.ledger.accepted() < t.operations/share {
				if err := pause(playing, 20*time.Millisecond); err != nil {
					return err
				}
			}
			select {
			case <-played:
				return fmt.Errorf("cannot kill %s: the operations are over already", victim.name)
			default:
			}
			victim.kill()
			t.counts.add(victim.name+" killed for good", 1)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := t.settled(ctx, &watcher{rig: t.rig, client: t.client}); err != nil {
		return err
	}
	t.counts.add("operations ended before anybody came back", t.ledger.accepted())
	return t.rig.restore(ctx) // for the last look only
}

// settled waits until all operations have ended, and returns at the latest when
// they must have: what is not over by then is found later.
func (t *trial) settled(ctx context.Context, w *watcher) error {
	deadline, cancel := context.WithTimeout(ctx, t.settle)
	defer cancel()
	for {
		all, err := w.allOperations(deadline, -1)
		open := 0
		for _, op := range all {
			if !op.final() {
				open++
			}
		}
		if err == nil && open == 0 {
			return nil
		}
		if pause(deadline, 500*time.Millisecond) != nil {
			return ctx.Err()
		}
	}
}

// afterglow is how long the cluster's controllers may take to collect what
// belonged to objects that are gone, and the servers to take what has ended off
// their lists.
const afterglow = 30 * time.Second

// judge looks until everything is as it must be, and returns what is not after
// the afterglow.
func (t *trial) judge(ctx context.Context, w *watcher) ([]finding, error) {
	deadline, cancel := context.WithTimeout(ctx, afterglow)
	defer cancel()
	for {
		seen, err := w.look(ctx)
		if err != nil {
			return nil, err
		}
		findings := slices.Concat(seen.check(), t.rig.crashes(), t.heavy())
		if len(findings) == 0 || pause(deadline, time.Second) != nil {
			t.tally(seen)
			return findings, w.keep(ctx, filepath.Join(t.dir, "records.json"))
		}
	}
}
