// Command chaos proves that the service keeps its word while everything around
// it fails: three servers on a three-node etcd bring instances up, change them
// and take them down on the sandbox, while servers and etcd nodes are killed and
// stalled, and connections cut, slowed and black-holed, as a seeded script says.
// Besides, a cloud region floods the servers, which may hold 300 MiB each.
// Afterwards it makes everything whole, and holds what the servers say and what
// the cluster has against what was asked and answered.
//
// It ends with code 1 when one invariant is broken, and then keeps all logs. But
// for memory it measures nothing, and it does not touch clocks, disks or the API
// server. The same seed repeats the faults and the requests, not their exact
// meeting.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "interrupted")
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are what a run is made of.
type options struct {
	scenario   string
	seed       uint64
	kills      int
	duration   time.Duration
	instances  int
	operations int
	quorumLoss bool
	race       bool
	lease      time.Duration
	settle     time.Duration
	binary     string
	logs       string
}

// The scenarios.
const (
	scenarioStorm    = "storm"
	scenarioReplicas = "three-replicas"
)

func defaults() options {
	return options{
		scenario: scenarioStorm, seed: uint64(time.Now().UnixNano()) % 1_000_000, kills: 20, instances: 6, operations: 200,
		lease: 3 * time.Second, settle: 2 * time.Minute,
	}
}

func command(ctx context.Context, args []string, stdout io.Writer) error {
	o := defaults()
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.StringVar(&o.scenario, "scenario", o.scenario, "storm: everything fails; three-replicas: one server and one etcd node die while -operations go on")
	flags.Uint64Var(&o.seed, "seed", o.seed, "of the faults and the requests")
	flags.IntVar(&o.kills, "kills", o.kills, "how many times a process is killed, stalled, ended or parted from the store")
	flags.DurationVar(&o.duration, "duration", 0, "over which the faults are spread; three seconds for each kill unless told")
	flags.IntVar(&o.instances, "instances", o.instances, "instances that are worked on at once")
	flags.IntVar(&o.operations, "operations", o.operations, "of three-replicas")
	flags.BoolVar(&o.quorumLoss, "quorum-loss", false, "kill two etcd nodes at once, too")
	flags.BoolVar(&o.race, "race", false, "build the service with the race detector")
	flags.DurationVar(&o.lease, "lease", o.lease, "of the servers")
	flags.DurationVar(&o.settle, "settle", o.settle, "how long operations may go on after the faults")
	flags.StringVar(&o.binary, "binary", "", "the service's program; built unless told")
	flags.StringVar(&o.logs, "logs", "", "folder for logs and data, which is kept; a temporary one unless told")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return o.run(ctx, stdout)
}

func (o options) run(ctx context.Context, stdout io.Writer) (err error) {
	switch {
	case o.scenario != scenarioStorm && o.scenario != scenarioReplicas:
		return fmt.Errorf("cannot play %q: it is neither storm nor three-replicas", o.scenario)
	case o.kills < 1 || o.instances < 1 || o.operations < 1 || o.lease < time.Second:
		return errors.New("cannot run: kills, instances and operations are at least 1, the lease is at least a second")
	}
	if o.duration == 0 {
		o.duration = time.Duration(o.kills) * 3 * time.Second
	}
	dir := o.logs
	if dir == "" {
		if dir, err = os.MkdirTemp("", "chaos-"); err != nil {
			return fmt.Errorf("cannot make a folder: %w", err)
		}
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder %s: %w", dir, err)
	}
	t, err := o.trial(dir, stdout)
	if err != nil {
		return err
	}
	if err = t.run(ctx); err == nil && o.logs == "" {
		return os.RemoveAll(dir)
	}
	fmt.Fprintln(stdout, "logs and data are in", dir)
	return err
}
