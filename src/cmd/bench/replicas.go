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

// replicaInstances is the number of instances that are created with each number of replicas.
const replicaInstances = 1000

// replicaPrograms are the paths of the programs of the scenario.
type replicaPrograms struct{ service, etcd string }

// replicas measures one replica on an external etcd node, and then three.
func replicas(ctx context.Context, programs replicaPrograms, out string, clients int, measured values) error {
	var text strings.Builder
	fmt.Fprintf(&text, replicasPreamble, time.Now().Format(time.DateOnly), machine(), lightRegions, usedRegions, replicaInstances, clients)
	var results []replicaResult
	for _, count := range []int{1, 3} {
		result, err := replicated(ctx, programs, count, clients)
		if err != nil {
			return fmt.Errorf("cannot measure %d replicas: %w", count, err)
		}
		fmt.Print(result.row())
		text.WriteString(result.row())
		results = append(results, result)
	}
	one, three := results[0], results[1]
	measured.set("throughput of three replicas to one", three.rate/one.rate)
	measured.set("work of three replicas: least to most", float64(slices.Min(three.shares))/float64(slices.Max(three.shares)))
	measured.set("memory of each of three replicas to one", float64(slices.Max(three.memories))/float64(one.memories[0]))
	return writeReport(out, text.String())
}

const replicasPreamble = `# Replicas

Written by ` + "`make bench SCENARIO=replicas`" + ` on %s: %s.

One replica of the service on an external etcd node, and then three on a new one. %d regions are registered, and %d of them get instances: paths of one light API server in the process of the
benchmark ([benchmarks-stored.md](benchmarks-stored.md)). %d instances of four objects are created by %d clients, which use the replicas in turns. All processes share the
processors of one machine. The goals with three replicas are more throughput, work on all replicas, and less memory for each.

| replicas | instances per second | operations of each replica | processor time of the service for an instance, ms | memory of each, not mapped from files, MiB |
|--:|--:|--:|--:|--:|
`

// replicaResult is the measurement of some replicas.
type replicaResult struct {
	rate             float64       // instances per second
	shares, memories []int         // operations of each replica, and its memory that is not mapped from files
	used             time.Duration // processor time of all for an instance
}

func (r replicaResult) row() string {
	var shares, memories []string
	for i := range r.shares {
		shares, memories = append(shares, strconv.Itoa(r.shares[i])), append(memories, mib(r.memories[i]))
	}
	return fmt.Sprintf("| %d | %.0f | %s | %s | %s |\n", len(r.shares), r.rate, strings.Join(shares, ", "), ms(r.used), strings.Join(memories, ", "))
}

// replicated measures a number of replicas.
func replicated(ctx context.Context, programs replicaPrograms, count, clients int) (replicaResult, error) {
	var none replicaResult
	folder, err := os.MkdirTemp("", "bench-replicas-")
	if err != nil {
		return none, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	store, stop, err := startEtcd(ctx, programs.etcd, folder)
	if err != nil {
		return none, err
	}
	defer stop()
	keys := filepath.Join(folder, "keys.json")
	if output, err := exec.CommandContext(ctx, programs.service, "keys", "init", keys).CombinedOutput(); err != nil {
		return none, fmt.Errorf("cannot create an encryption key: %w: %s", err, output)
	}
	light := newLightServer()
	defer light.close()
	replicas := make([]*service, count)
	for i := range replicas {
		if replicas[i], err = newService(ctx, programs.service, "--store", "etcd://"+store, "--encryption-key-file", keys, "--replica-name", fmt.Sprintf("replica-%d", i)); err != nil {
			return none, err
		}
		defer replicas[i].stop()
	}
	run := replicatedRun{replicas: replicas, light: light, clients: clients}
	return run.measure(ctx)
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

// replicatedRun is a measurement of some replicas.
type replicatedRun struct {
	replicas []*service
	light    *lightServer
	clients  int
}

// measure registers the regions, and creates the instances.
func (r replicatedRun) measure(ctx context.Context) (replicaResult, error) {
	var out replicaResult
	_, err := each(ctx, 0, lightRegions, r.clients, func(ctx context.Context, i int) error {
		return r.replicas[i%len(r.replicas)].register(ctx, regionName(i), r.light.kubeconfig(regionName(i)))
	})
	if err == nil {
		err = r.replicas[0].uploadLoad(ctx, loadPackageID)
	}
	if err == nil {
		err = r.create(ctx, 0, usedRegions*len(r.replicas)) // each replica reads the kinds of a region at its first use
	}
	if err != nil {
		return out, err
	}
	before, err := r.spent(ctx)
	if err != nil {
		return out, err
	}
	start := time.Now()
	if err := r.create(ctx, usedRegions*len(r.replicas), usedRegions*len(r.replicas)+replicaInstances); err != nil {
		return out, err
	}
	out.rate = replicaInstances / time.Since(start).Seconds()
	after, err := r.spent(ctx)
	if err != nil {
		return out, err
	}
	for i := range r.replicas {
		out.used += (after[i].processor - before[i].processor) / replicaInstances
		out.shares, out.memories = append(out.shares, after[i].operations-before[i].operations), append(out.memories, after[i].memory.anonymous)
	}
	return out, nil
}

// create creates instances, with the replicas in turns.
func (r replicatedRun) create(ctx context.Context, from, to int) error {
	_, err := each(ctx, from, to, r.clients, func(ctx context.Context, i int) error {
		_, err := r.replicas[i%len(r.replicas)].create(ctx, loadRequest(i))
		return err
	})
	return err
}

// spent is what a replica has used, and the number of operations that it has ended.
type spent struct {
	processor  time.Duration
	memory     memory
	operations int
}

func (r replicatedRun) spent(ctx context.Context) ([]spent, error) {
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
