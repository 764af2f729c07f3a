// Command chaos tests the service's guarantees under faults. Three servers on a
// three-node etcd instantiate, change and terminate instances on the sandbox.
// Meanwhile a seeded script kills and stalls servers and etcd nodes, and cuts,
// slows and black-holes connections. In a storm, a cloud region also floods the
// servers, which may use 300 MiB each. Then the command repairs everything, and compares
// the servers' records and the cluster's objects with the requests and their
// responses.
//
// It exits with code 1 if an invariant is violated, and keeps all logs in that
// case. It measures nothing except memory, and does not affect clocks, disks or
// the API server. The same seed repeats the faults and requests, but not their
// exact timing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
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

// options holds the command line options of a run.
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
	scenarioNetwork  = "one-network"
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
	flags.StringVar(&o.scenario, "scenario", o.scenario, "storm: all kinds of faults; three-replicas: one server and one etcd node are killed while -operations run; one-network: all kinds of faults while -instances are created at once on one network, and then terminated at once")
	flags.Uint64Var(&o.seed, "seed", o.seed, "seed of the faults and the requests")
	flags.IntVar(&o.kills, "kills", o.kills, "number of times that a process is killed, stalled, terminated or disconnected from the store")
	flags.DurationVar(&o.duration, "duration", 0, "time over which the faults are spread (default three seconds per kill)")
	flags.IntVar(&o.instances, "instances", o.instances, "number of instances that are changed concurrently")
	flags.IntVar(&o.operations, "operations", o.operations, "number of operations of three-replicas")
	flags.BoolVar(&o.quorumLoss, "quorum-loss", false, "also kill two etcd nodes at once")
	flags.BoolVar(&o.race, "race", false, "build the service with the race detector")
	flags.DurationVar(&o.lease, "lease-duration", o.lease, "lease duration of the servers")
	flags.DurationVar(&o.settle, "settle", o.settle, "time that operations have to end after the faults")
	flags.StringVar(&o.binary, "binary", "", "program of the service; built if empty")
	flags.StringVar(&o.logs, "logs", "", "folder for logs and data, which is kept; a temporary one if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return o.run(ctx, stdout)
}

func (o options) run(ctx context.Context, stdout io.Writer) (err error) {
	switch {
	case !slices.Contains([]string{scenarioStorm, scenarioReplicas, scenarioNetwork}, o.scenario):
		return fmt.Errorf("unknown scenario %q: must be storm, three-replicas or one-network", o.scenario)
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
	t, err := o.newTestRun(dir, stdout)
	if err != nil {
		return err
	}
	if err = t.run(ctx); err == nil && o.logs == "" {
		return os.RemoveAll(dir)
	}
	fmt.Fprintln(stdout, "logs and data are in", dir)
	return err
}
