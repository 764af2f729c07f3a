package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Instances are created with one and with three replicas, in turns.
const (
	replicaTurns     = 9
	replicaInstances = 200 // of each turn
)

// replicaPrograms are the paths of the programs of the scenario.
type replicaPrograms struct{ service, etcd string }

// replicas compares one replica on an external etcd node with three on another one.
func replicas(ctx context.Context, programs replicaPrograms, out string, clients int, measured values) error {
	one, err := newReplicatedRun(ctx, programs, 1, clients)
	defer one.stop()
	if err != nil {
		return fmt.Errorf("cannot start one replica: %w", err)
	}
	three, err := newReplicatedRun(ctx, programs, 3, clients)
	defer three.stop()
	if err != nil {
		return fmt.Errorf("cannot start three replicas: %w", err)
	}
	runs := []*replicatedRun{one, three}
	for turn := range replicaTurns {
		for i := range runs {
			if err := runs[(turn+i)%len(runs)].turn(ctx); err != nil {
				return err
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, replicasPreamble, time.Now().Format(time.DateOnly), machine(), lightRegions, usedRegions, replicaInstances, replicaTurns, clients)
	for _, r := range runs {
		text.WriteString(r.result.row())
	}
	gain := three.result.to(one.result)
	fmt.Fprintf(&text, "\nThe throughput of three replicas is %.2f times that of one: the mean of the middle half of the turns.\n", gain)
	fmt.Print(text.String())
	measured.set("throughput of three replicas to one", gain)
	measured.set("work of three replicas: least to most", float64(slices.Min(three.result.shares))/float64(slices.Max(three.result.shares)))
	measured.set("memory of each of three replicas to one", float64(slices.Max(three.result.memories))/float64(one.result.memories[0]))
	return writeReport(out, text.String())
}

const replicasPreamble = `# Replicas

Written by ` + "`make bench SCENARIO=replicas`" + ` on %s: %s.

One replica of the service on an external etcd node, and three on another one. Each has %d regions, and %d of them get instances: paths of one light API server in the process of the
benchmark ([benchmarks-stored.md](benchmarks-stored.md)). One and three create %d instances of four objects in turns, %d times, by requests of %d clients, which use the replicas in turns. All processes share the
processors of one machine, also with those that wait for their turn, and check their regions meanwhile. The goals with three replicas are more throughput, work on all replicas, and less memory for each.

| replicas | instances per second | operations of each replica | processor time of the service for an instance, ms | memory of each, not mapped from files, MiB |
|--:|--:|--:|--:|--:|
`

// replicaResult is the measurement of some replicas.
type replicaResult struct {
	rates            []float64     // instances per second, of each turn
	shares, memories []int         // operations of each replica, and its memory that is not mapped from files
	used             time.Duration // processor time of all, in all turns
}

// to returns the ratio of the rates to those of others in the same turns.
func (r replicaResult) to(others replicaResult) float64 {
	ratios := make([]float64, len(r.rates))
	for i := range ratios {
		ratios[i] = r.rates[i] / others.rates[i]
	}
	return middle(ratios)
}

func (r replicaResult) row() string {
	var shares, memories []string
	for i := range r.shares {
		shares, memories = append(shares, strconv.Itoa(r.shares[i])), append(memories, mib(r.memories[i]))
	}
	return fmt.Sprintf("| %d | %.0f | %s | %s | %s |\n", len(r.shares), quantile(r.rates, 0.5), strings.Join(shares, ", "), ms(r.used/time.Duration(replicaInstances*len(r.rates))), strings.Join(memories, ", "))
}

// replicatedRun is a measurement of some replicas.
type replicatedRun struct {
	replicas []*service
	light    *lightServer
	clients  int
	created  int
	stops    []func() // in the order of the starts
	result   replicaResult
}

// newReplicatedRun starts some replicas, and registers the regions. The caller stops the
// run, also after an error.
func newReplicatedRun(ctx context.Context, programs replicaPrograms, count, clients int) (*replicatedRun, error) {
	r := &replicatedRun{light: newLightServer(), clients: clients, result: replicaResult{shares: make([]int, count), memories: make([]int, count)}}
	r.stops = append(r.stops, r.light.close)
	folder, err := os.MkdirTemp("", "bench-replicas-")
	if err != nil {
		return r, fmt.Errorf("cannot make a folder: %w", err)
	}
	r.stops = append(r.stops, func() { _ = os.RemoveAll(folder) })
	store, stop, err := startEtcd(ctx, programs.etcd, folder)
	if err != nil {
		return r, err
	}
	r.stops = append(r.stops, stop)
	keys := filepath.Join(folder, "keys.json")
	if output, err := exec.CommandContext(ctx, programs.service, "keys", "init", keys).CombinedOutput(); err != nil {
		return r, fmt.Errorf("cannot create an encryption key: %w: %s", err, output)
	}
	for i := range count {
		s, err := newService(ctx, programs.service, "--store", "etcd://"+store, "--encryption-key-file", keys, "--replica-name", fmt.Sprintf("replica-%d", i))
		if err != nil {
			return r, err
		}
		r.replicas, r.stops = append(r.replicas, s), append(r.stops, s.stop)
	}
	return r, r.prepare(ctx)
}

// stop stops what was started last first.
func (r *replicatedRun) stop() {
	for _, stop := range slices.Backward(r.stops) {
		stop()
	}
}

// startEtcd starts an etcd node with its data in a folder, and returns its address.
func startEtcd(ctx context.Context, program, folder string) (address string, stop func(), err error) {
	var addresses [2]string
	for i := range addresses {
		if addresses[i], err = freeAddress(); err != nil {
			return "", nil, err
		}
	}
	client, peer := "http://"+addresses[0], "http://"+addresses[1]
	cmd := exec.CommandContext(ctx, program, "--name", "bench", "--data-dir", filepath.Join(folder, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "bench="+peer, "--log-level", "warn")
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("cannot start etcd: %w", err)
	}
	return addresses[0], func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}, nil
}

// prepare registers the regions, and creates an instance in each through each replica, which
// reads the kinds of a region at its first use.
func (r *replicatedRun) prepare(ctx context.Context) error {
	_, err := each(ctx, 0, lightRegions, r.clients, func(ctx context.Context, i int) error {
		return r.replicas[i%len(r.replicas)].register(ctx, regionName(i), r.light.kubeconfig(regionName(i)))
	})
	if err == nil {
		err = r.replicas[0].uploadLoad(ctx, loadPackageID)
	}
	if err == nil {
		_, err = r.create(ctx, usedRegions*len(r.replicas))
	}
	return err
}

// turn creates instances, and adds what it took to the result.
func (r *replicatedRun) turn(ctx context.Context) error {
	before, err := r.spent(ctx)
	if err != nil {
		return err
	}
	took, err := r.create(ctx, replicaInstances)
	if err != nil {
		return err
	}
	after, err := r.spent(ctx)
	if err != nil {
		return err
	}
	r.result.rates = append(r.result.rates, replicaInstances/took.Seconds())
	for i := range r.replicas {
		r.result.used += after[i].processor - before[i].processor
		r.result.shares[i] += after[i].operations - before[i].operations
		r.result.memories[i] = after[i].memory.anonymous
	}
	return nil
}

// create creates more instances, with the replicas in turns.
func (r *replicatedRun) create(ctx context.Context, more int) (time.Duration, error) {
	from := r.created
	r.created += more
	return each(ctx, from, r.created, r.clients, func(ctx context.Context, i int) error {
		_, err := r.replicas[i%len(r.replicas)].create(ctx, loadRequest(i))
		return err
	})
}

// spent is what a replica has used, and the number of operations that it has ended.
type spent struct {
	processor  time.Duration
	memory     memory
	operations int
}

func (r *replicatedRun) spent(ctx context.Context) ([]spent, error) {
	out := make([]spent, len(r.replicas))
	for i, s := range r.replicas {
		var err, err2, err3 error
		out[i].processor, err = processorTime(s.cmd.Process.Pid)
		out[i].memory, err2 = s.memory(ctx)
		out[i].operations, err3 = s.sum(ctx, "k8splugin_operations_total{", "")
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, err
		}
	}
	return out, nil
}
