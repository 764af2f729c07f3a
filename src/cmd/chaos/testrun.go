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

// testRun is one run of a scenario.
type testRun struct {
	options options

	dir     string
	name    string // of the run, also the prefix of its namespaces
	etcd    string // path of etcd's program
	out     io.Writer
	cluster *cluster
	counts  *counts
	ledger  ledger
	rig     *rig
	client  *client
	calm    context.CancelFunc // ends the faults of A&AI
}

func (o options) newTestRun(dir string, out io.Writer) (*testRun, error) {
	kubeconfig, bin := os.Getenv("K8SPLUGIN_SANDBOX"), os.Getenv("K8SPLUGIN_SANDBOX_BIN")
	if kubeconfig == "" || bin == "" {
		return nil, errors.New("cannot find the sandbox: run this with make chaos or sandbox exec, which set K8SPLUGIN_SANDBOX and K8SPLUGIN_SANDBOX_BIN")
	}
	c, err := newCluster(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &testRun{
		options: o, dir: dir, out: out, cluster: c, counts: newCounts(), etcd: filepath.Join(bin, "etcd"),
		name: "chaos-test-" + strings.ToLower(rand.Text()[:8]),
	}, nil
}

// build builds the service, unless a program is given.
func (t *testRun) build(ctx context.Context) error {
	if t.options.binary != "" {
		return nil
	}
	t.options.binary = filepath.Join(t.dir, "k8splugin")
	args := []string{"build", "-o", t.options.binary}
	if t.options.race {
		args = append(args, "-race")
	}
	output, err := exec.CommandContext(ctx, "go", append(args, "github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot build the service: %w: %s", err, output)
	}
	return nil
}

// run runs the scenario, and fails if an invariant is violated. All processes
// have ended when it returns.
func (t *testRun) run(ctx context.Context) error {
	fmt.Fprintf(t.out, "seed %d, scenario %s\n", t.options.seed, t.options.scenario)
	if err := t.build(ctx); err != nil {
		return err
	}
	// If the run is interrupted, the starter must stay alive until all
	// processes have ended.
	raising, done := context.WithCancel(context.WithoutCancel(ctx))
	starter := newProcessStarter()
	var raised errgroup.Group
	raised.Go(func() error { return starter.run(raising) })
	err := t.play(ctx, starter)
	if t.rig != nil {
		t.rig.stop()
	}
	done()
	return errors.Join(err, raised.Wait(), t.cluster.clear(context.WithoutCancel(ctx), t.name))
}

func (t *testRun) play(ctx context.Context, n *processStarter) error {
	l := layout{servers: 3, nodes: 3, regions: len(regions())}
	var err error
	t.rig, err = newRig(ctx, plan{
		layout: l, dir: t.dir, binary: t.options.binary, etcd: t.etcd, lease: t.options.lease, cluster: t.cluster, starter: n, counts: t.counts,
	})
	if err != nil {
		return err
	}
	if err := t.rig.inventory.start(ctx); err != nil {
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
		err = fmt.Errorf("the service violated its guarantees: %d findings", len(findings))
	}
	return err
}

// beside disturbs A&AI, and makes clusters available, during the scenario.
func (t *testRun) beside(ctx context.Context, l layout) (findings []finding, err error) {
	serving, enough := context.WithCancel(ctx)
	disturbing, calm := context.WithCancel(ctx)
	t.calm = calm
	var group errgroup.Group
	group.Go(func() error { return t.rig.inventory.disturb(disturbing, t.options.seed) })
	group.Go(func() error { return machines{t.cluster, t.counts, t.name}.run(serving) })
	findings, err = t.withFaults(ctx, l)
	enough()
	calm()
	return findings, errors.Join(err, group.Wait())
}

// withFaults runs the load and the faults, and then checks the result.
func (t *testRun) withFaults(ctx context.Context, l layout) ([]finding, error) {
	work := &load{client: t.client, ledger: &t.ledger, counts: t.counts, seed: t.options.seed, run: t.name, atOnce: t.options.instances}
	var err error
	switch t.options.scenario {
	case scenarioReplicas:
		err = t.replicas(ctx, work)
	case scenarioNetwork:
		err = t.injectFaults(ctx, l, func(ctx context.Context, _ <-chan struct{}) error {
			return work.onOneNetwork(ctx, t.options.instances)
		})
	default:
		err = t.injectFaults(ctx, l, func(ctx context.Context, over <-chan struct{}) error { return t.storm(ctx, over, work) })
	}
	if err != nil {
		return nil, err
	}
	w := &watcher{rig: t.rig, client: t.client, cluster: t.cluster, ledger: &t.ledger, prefix: t.name}
	if err := t.settled(ctx, w); err != nil {
		return nil, err
	}
	t.calm()
	if err := t.listed(ctx, w); err != nil {
		return nil, err
	}
	return t.judge(ctx, w)
}

// storm generates requests, and floods the servers, until the last fault is over. A
// flood that went on would only slow down the operations that must end then.
func (t *testRun) storm(ctx context.Context, over <-chan struct{}, work *load) error {
	flooding, enough := context.WithCancel(ctx)
	defer enough()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return flood{t.client, t.rig, t.counts}.run(flooding) })
	group.Go(func() error { return t.rig.weigh(flooding) })
	group.Go(func() error {
		defer enough()
		select {
		case <-over:
		case <-ctx.Done():
		}
		return nil
	})
	group.Go(func() error { return work.generate(ctx, over, 0) })
	return group.Wait()
}

// injectFaults executes a script of faults during the work, which learns when the last
// fault is over, and then waits for the work to end.
func (t *testRun) injectFaults(ctx context.Context, l layout, work func(ctx context.Context, over <-chan struct{}) error) error {
	script := newScript(t.options.seed, l, strength{kills: t.options.kills, duration: t.options.duration, lease: t.options.lease, quorumLoss: t.options.quorumLoss})
	fmt.Fprintf(t.out, "%d faults in %s, then up to %s to settle\n", len(script), ends(script).Round(time.Second), t.options.settle)
	log, err := os.Create(filepath.Join(t.dir, "faults.log"))
	if err != nil {
		return fmt.Errorf("cannot write the log of the faults: %w", err)
	}
	defer func() { _ = log.Close() }()
	// Accepted operations must end soon after the last fault.
	ctx, cancel := context.WithTimeout(ctx, ends(script)+t.options.settle)
	defer cancel()
	reviving, enoughReviving := context.WithCancel(ctx)
	over := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.rig.revive(reviving) })
	group.Go(func() error {
		defer enoughReviving()
		defer close(over)
		s := &faultInjector{rig: t.rig, script: script, log: log}
		if err := s.run(ctx); err != nil {
			return err
		}
		return t.rig.restore(ctx)
	})
	group.Go(func() error { return work(ctx, over) })
	err = group.Wait()
	enoughReviving()
	return err
}

// replicas kills one server and one etcd node permanently while operations run.
func (t *testRun) replicas(ctx context.Context, work *load) error {
	ctx, cancel := context.WithTimeout(ctx, t.options.settle+time.Duration(t.options.operations)*time.Second)
	defer cancel()
	played := make(chan struct{})
	group, playing := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(played)
		return work.generate(playing, nil, t.options.operations)
	})
	for share, victim := range map[int]*process{3: t.rig.servers[0], 2: t.rig.nodes[0]} {
		group.Go(func() error {
			for t.ledger.accepted() < t.options.operations/share {
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
			t.counts.add(victim.name+" killed and not restarted", 1)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := t.settled(ctx, &watcher{rig: t.rig, client: t.client}); err != nil {
		return err
	}
	t.counts.add("operations that ended before a process was restarted", t.ledger.accepted())
	return t.rig.restore(ctx) // only for the final check
}

// settled waits until all operations have ended, at most for the settle time.
// Operations that are still running then are reported later.
func (t *testRun) settled(ctx context.Context, w *watcher) error {
	deadline, cancel := context.WithTimeout(ctx, t.options.settle)
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

// listed waits until A&AI is equal, at most for the settle time: after failures, the
// servers retry less and less often. What differs then is reported later.
func (t *testRun) listed(ctx context.Context, w *watcher) error {
	deadline, cancel := context.WithTimeout(ctx, t.options.settle)
	defer cancel()
	for {
		seen, err := w.collect(deadline)
		q := &checker{snapshot: seen}
		if err == nil {
			if q.inventoryIsEqual(); len(q.findings) == 0 {
				t.counts.add("objects in A&AI", len(seen.listed))
				return nil
			}
		}
		if pause(deadline, time.Second) != nil {
			return ctx.Err()
		}
	}
}

// settleTime is the time for the cluster's controllers to garbage-collect
// dependent objects, and for the servers to remove ended operations from their
// lists.
const settleTime = 30 * time.Second

// judge checks repeatedly until there are no findings, and returns those that
// remain after the settle time.
func (t *testRun) judge(ctx context.Context, w *watcher) ([]finding, error) {
	deadline, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		seen, err := w.collect(ctx)
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
