package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// The ways of the scenario networks.
const (
	plainWay    = "without"
	attachedWay = "with two networks"
)

// benchLinks are the networks that instances attach to.
var benchLinks = [...]string{"bench-oam", "bench-lan"}

// networks measures instances that attach all their workloads to two networks, and the
// same instances without.
func (b *bench) networks(ctx context.Context, kubeconfig, out string, p plan) error {
	var err error
	if b.api, err = newAPIServer(kubeconfig); err != nil {
		return err
	}
	if b.version, err = b.api.version(ctx); err != nil {
		return err
	}
	if err := b.defineAttachments(ctx); err != nil {
		return err
	}
	if err := b.api.createNamespace(ctx); err != nil {
		return err
	}
	if b.service, err = startService(ctx, b.binary, kubeconfig); err != nil {
		return err
	}
	defer b.service.stop()
	for _, name := range benchLinks {
		if err := b.service.post(ctx, "/v1/networks", map[string]any{
			"name": name, "cloud_region_id": "sandbox", "driver": "multus", "spec": map[string]any{"type": "macvlan", "master": "eth1"},
		}, nil); err != nil {
			return err
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, networksPreamble, time.Now().Format(time.DateOnly), b.version, machine(), p.rounds)
	for _, size := range p.sizes {
		r, err := b.measureNetworks(ctx, size, p.rounds)
		if err != nil {
			return fmt.Errorf("cannot measure %d objects: %w", size, err)
		}
		fmt.Fprintf(&text, "| %d | %s | %s | %.2f |\n", size, ms(r.median(plainWay)), ms(r.median(attachedWay)), r.ratio(attachedWay, plainWay))
	}
	for _, name := range benchLinks {
		if err := b.service.send(ctx, http.MethodDelete, "/v1/networks/sandbox."+name, content{}, nil); err != nil {
			return err
		}
	}
	fmt.Print(text.String())
	return writeReport(out, text.String())
}

// defineAttachments applies the definition of the kind NetworkAttachmentDefinition.
func (b *bench) defineAttachments(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, b.kubectl, "--kubeconfig", b.api.kubeconfig, "apply", "--server-side", "--filename", "src/cluster/clustertest/networks.yaml")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot run kubectl: %w: %s", err, output)
	}
	return b.api.pollUntil(ctx, "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions", pollInterval, found)
}

// measureNetworks lets both ways take turns.
func (b *bench) measureNetworks(ctx context.Context, size, rounds int) (result, error) {
	r := result{size: size, times: map[string][]time.Duration{}}
	set, err := newObjectSet(size, "applied")
	if err != nil {
		return r, err
	}
	defer set.remove()
	if err := b.service.upload(ctx, set); err != nil {
		return r, err
	}
	ways := []string{plainWay, attachedWay}
	for round := range rounds + 1 {
		for i := range ways {
			way := ways[(round+i)%len(ways)]
			took, err := b.onNetworks(ctx, set, way == attachedWay)
			if err != nil {
				return r, fmt.Errorf("%s: %w", way, err)
			}
			if round > 0 { // the first one warms the caches of the region's schemas
				r.times[way] = append(r.times[way], took)
			}
		}
		fmt.Printf("%d objects: round %d of %d\n", size, round, rounds)
	}
	return r, nil
}

// onNetworks returns the time that an instance takes, and removes it.
func (b *bench) onNetworks(ctx context.Context, set objectSet, attached bool) (time.Duration, error) {
	request := map[string]any{"cloud_region_id": "sandbox", "csar_id": packageID(set), "namespace": namespace, "vnf_instance_name": "bench"}
	if attached {
		var attachments []map[string]any
		for _, name := range benchLinks {
			attachments = append(attachments, map[string]any{"network": name, "workload": "*"})
		}
		request["networks"] = attachments
	}
	made, err := b.service.create(ctx, request)
	if err == nil {
		err = b.service.terminateAll(ctx)
	}
	return made.took, errors.Join(err, b.api.clear(ctx))
}

var networksPreamble = `# Instances with networks

Written by ` + "`make bench SCENARIO=networks`" + ` on %s: Kubernetes %s, %s, %d rounds, medians, also of the ratios of the rounds.

The same package, of which every tenth object is a Deployment, is instantiated without networks and with ` + fmt.Sprint(len(benchLinks)) + ` networks of the driver
multus (` + strings.Join(benchLinks[:], ", ") + `), which exist, in turns. With networks, each Deployment is attached to both. The time is that from the request until the response
with 201, in milliseconds: then all objects are applied. Each way starts after all objects of the one before are gone. The goal is a ratio of at most 1.15.

| objects | without networks | with two networks | ratio |
|--:|--:|--:|--:|
`
