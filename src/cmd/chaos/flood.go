package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest/adversary"
)

// floodRegion is a cloud region that sends as much data as it can.
const floodRegion = "flood"

// mostMemory is the maximum memory of a server in MiB while a region floods it.
// It does not apply with the race detector, which multiplies memory use.
const mostMemory = 300

// flood serves the region, and reads from it through all servers at the same
// time.
type flood struct {
	client *client
	rig    *rig
	counts *counts
}

// run serves the region, and sends requests that read from it, until the
// context ends.
func (f flood) run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot serve the region that floods: %w", err)
	}
	region := adversary.New(adversary.Flood, "")
	region.Endless()
	server := &http.Server{Handler: region, ReadHeaderTimeout: time.Minute}
	var group errgroup.Group
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve the region that floods: %w", err)
		}
		return nil
	})
	if err = f.readRegion(ctx, listener.Addr().String()); ctx.Err() != nil {
		err = nil // ended as intended
	}
	f.counts.add("MiB sent by the region that floods", int(region.Sent()>>20))
	return errors.Join(err, server.Close(), group.Wait())
}

// readRegion registers the region, and sends requests that read from it to every
// server until the context ends.
func (f flood) readRegion(ctx context.Context, address string) error {
	kubeconfig := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "flood",
		"clusters": [{"name": "flood", "cluster": {"server": "http://%s"}}], "users": [{"name": "flood", "user": {}}],
		"contexts": [{"name": "flood", "context": {"cluster": "flood", "user": "flood"}}]}`, address)
	a, err := f.client.insist(ctx, call{method: http.MethodPost, path: "/v1/cloud_regions", key: "region-" + floodRegion, body: map[string]any{
		"cloud_region_id": floodRegion, "kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)),
	}})
	if err != nil || a.status != http.StatusCreated {
		return errors.Join(err, fmt.Errorf("cannot register region %s: status %d: %s", floodRegion, a.status, a.body))
	}
	preview := call{method: http.MethodPost, path: "/v1/vnf_instances?dry_run=true", body: map[string]any{
		"cloud_region_id": floodRegion, "csar_id": shapes()[0].name, "namespace": floodRegion,
	}}
	query := call{method: http.MethodGet, path: "/v1/query?CloudRegion=" + floodRegion + "&ApiVersion=v1&Kind=ConfigMap"}
	var group errgroup.Group
	for server := range f.rig.urls {
		for _, q := range []call{preview, query} {
			group.Go(func() error {
				for pause(ctx, 500*time.Millisecond) == nil {
					a, err := f.client.once(ctx, server, q)
					switch {
					case err != nil: // the server is down or slower than the client's timeout
						f.counts.add("floods unanswered", 1)
					case a.status >= http.StatusBadRequest:
						f.counts.add("floods refused", 1)
					default:
						f.counts.add("floods answered", 1)
					}
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// weigh records the servers' memory use until the context ends.
func (r *rig) weigh(ctx context.Context) error {
	for pause(ctx, 200*time.Millisecond) == nil {
		for _, p := range r.servers {
			r.counts.most(memoryCount, p.memory())
		}
	}
	return nil
}

const memoryCount = "MiB of memory of the largest server"

// heavy returns a finding if a server used too much memory.
func (t *testRun) heavy() []finding {
	numbers, _ := t.counts.all()
	if held := numbers[memoryCount]; held > mostMemory && !t.options.race {
		return []finding{{Rule: "memory", Text: fmt.Sprintf("a server held %d MiB, and at most %d are allowed while a region floods it", held, mostMemory)}}
	}
	return nil
}

// memory returns the process's memory use in MiB, or 0 if it does not run.
func (p *process) memory() int {
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	if pid == 0 {
		return 0
	}
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(content))
	if err != nil || len(fields) < 2 {
		return 0 // the process has just ended
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize() >> 20
}
