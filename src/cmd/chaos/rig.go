package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// regions returns the cloud regions. Both are the sandbox, through separate
// lines.
func regions() []string { return []string{"east", "west"} }

// rig holds all running parts: an etcd cluster, the servers on it, and the
// lines between them and to the regions.
type rig struct {
	layout layout

	dir     string // of logs and data
	nodes   []*process
	servers []*process
	lines   []*line
	urls    []string // of the servers
	etcd    []string // of the etcd nodes, without the lines
	counts  *counts

	inventory *inventory

	mu     sync.Mutex
	deaths []string // of processes that ended unexpectedly
}

// plan says how to build a rig.
type plan struct {
	layout layout

	dir     string
	binary  string // of the service
	etcd    string // of etcd
	lease   time.Duration
	cluster *cluster
	starter *processStarter
	counts  *counts
}

// newRig prepares a rig without starting anything.
func newRig(ctx context.Context, p plan) (*rig, error) {
	r := &rig{layout: p.layout, dir: p.dir, counts: p.counts}
	// Start at a random port, because several runs may look for ports at the
	// same time.
	free, err := freeAddresses(2*p.layout.nodes+p.layout.servers+p.layout.lines()+1, firstPort+rand.IntN((lastPort-firstPort)/2))
	if err != nil {
		return nil, err
	}
	take := func(n int) (out []string) {
		out, free = free[:n], free[n:]
		return out
	}
	clients, peers, listen, lines := take(p.layout.nodes), take(p.layout.nodes), take(p.layout.servers), take(p.layout.lines())
	if r.inventory, err = newInventory(take(1)[0]); err != nil {
		return nil, err
	}
	r.layNodes(p, clients, peers)
	var names, upstreams []string
	for server := range p.layout.servers {
		for node := range p.layout.nodes {
			names = append(names, fmt.Sprintf("server %d to etcd %d", server+1, node+1))
			upstreams = append(upstreams, clients[node])
		}
	}
	for _, region := range regions() {
		names, upstreams = append(names, "region "+region), append(upstreams, p.cluster.upstream())
	}
	for i, name := range names {
		r.lines = append(r.lines, newLine(name, lines[i], upstreams[i]))
	}
	keys := filepath.Join(p.dir, "keys.json")
	if output, err := exec.CommandContext(ctx, p.binary, "keys", "init", keys).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot create an encryption key: %w: %s", err, output)
	}
	return r, r.layServers(p, keys, listen, lines)
}

func (r *rig) layNodes(p plan, clients, peers []string) {
	var cluster []string
	for i := range peers {
		cluster = append(cluster, fmt.Sprintf("etcd-%d=http://%s", i+1, peers[i]))
	}
	for i := range clients {
		name, client, peer := fmt.Sprintf("etcd-%d", i+1), "http://"+clients[i], "http://"+peers[i]
		r.etcd = append(r.etcd, client)
		r.nodes = append(r.nodes, r.process(p, name, p.etcd,
			"--name", name, "--data-dir", filepath.Join(r.dir, name),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-token", filepath.Base(r.dir),
			// Only processes are killed, not machines, so written data is not
			// lost without fsync.
			"--unsafe-no-fsync", "--log-level", "warn"))
	}
}

func (r *rig) layServers(p plan, keys string, listen, lines []string) error {
	inventory, err := r.inventory.flags(func(name, content string) (string, error) {
		name = filepath.Join(p.dir, name)
		return name, os.WriteFile(name, []byte(content), 0o600)
	})
	if err != nil {
		return fmt.Errorf("cannot write the credentials for A&AI: %w", err)
	}
	for i, address := range listen {
		name := fmt.Sprintf("server-%d", i+1)
		var endpoints []string
		for node := range p.layout.nodes {
			endpoints = append(endpoints, lines[p.layout.between(i, node)])
		}
		r.urls = append(r.urls, "http://"+address)
		r.servers = append(r.servers, r.process(p, name, p.binary, append([]string{
			"serve",
			"--listen", address, "--store", "etcd://" + strings.Join(endpoints, ","), "--encryption-key-file", keys,
			"--data", filepath.Join(r.dir, name), "--lease-duration", p.lease.String(), "--drain-timeout", "2s",
			"--log-format", "json", "--log-level", "info",
		}, inventory...)...))
	}
	return nil
}

func (r *rig) process(p plan, name, path string, args ...string) *process {
	return &process{name: name, path: path, args: args, log: filepath.Join(r.dir, name+".log"), starter: p.starter, died: r.died}
}

// died records that a process ended unexpectedly.
func (r *rig) died(name string, state *os.ProcessState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaths = append(r.deaths, fmt.Sprintf("%s at %s: %s", name, time.Now().Format(time.TimeOnly), state))
}

// start starts everything, and returns when the servers are ready.
func (r *rig) start(ctx context.Context) error {
	for _, l := range r.lines {
		if err := l.open(ctx); err != nil {
			return err
		}
	}
	for _, p := range r.nodes {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	for i := range r.nodes {
		if err := r.healthy(ctx, r.etcd[i]+"/health"); err != nil {
			return fmt.Errorf("etcd node %d did not start: %w", i+1, err)
		}
	}
	for _, p := range r.servers {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	for i, url := range r.urls {
		if err := r.healthy(ctx, url+"/readyz"); err != nil {
			return fmt.Errorf("server %d did not start: %w", i+1, err)
		}
	}
	return nil
}

// startPatience is the maximum start time of one process.
const startPatience = 5 * time.Minute

// healthy waits until a URL responds with 200.
func (r *rig) healthy(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		status, _, err := fetch(ctx, http.MethodGet, url, "")
		if err == nil && status == http.StatusOK {
			return nil
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return errors.Join(fmt.Errorf("%s answers status %d", url, status), err)
		}
	}
}

// fetch sends one request.
func fetch(ctx context.Context, method, url, body string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// register registers the regions, which serve networks and clusters, and uploads the packages.
func (r *rig) register(ctx context.Context, c *client, cluster *cluster) error {
	if err := errors.Join(cluster.defineNetworks(ctx), cluster.defineClusters(ctx)); err != nil {
		return err
	}
	for i, region := range regions() {
		kubeconfig := cluster.through(r.lines[r.layout.servers*r.layout.nodes+i].address)
		a, err := c.insist(ctx, call{method: http.MethodPost, path: "/v1/cloud_regions", key: "region-" + region, body: map[string]any{
			"cloud_region_id": region, "cloud_owner": inventoryOwner, "aai_tenant": inventoryTenant, "kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)),
		}})
		if err != nil || a.status != http.StatusCreated {
			return errors.Join(err, fmt.Errorf("cannot register region %s: status %d: %s", region, a.status, a.body))
		}
	}
	for _, s := range shapes() {
		archive, err := s.archive()
		if err != nil {
			return err
		}
		a, err := c.insist(ctx, call{method: http.MethodPut, path: "/v1/packages/" + s.name, body: archive})
		if err != nil || a.status >= http.StatusBadRequest {
			return errors.Join(err, fmt.Errorf("cannot upload package %s: status %d: %s", s.name, a.status, a.body))
		}
	}
	return nil
}

// revive restarts processes that have ended unexpectedly, as a supervisor
// would, until the context ends.
func (r *rig) revive(ctx context.Context) error {
	for pause(ctx, 500*time.Millisecond) == nil {
		for _, p := range append(r.nodes, r.servers...) {
			if p.lost() {
				_ = p.start(ctx) // retried in the next round
			}
		}
	}
	return nil
}

// restore repairs everything: all lines forward normally, all processes run,
// and all servers are ready.
func (r *rig) restore(ctx context.Context) error {
	for _, l := range r.lines {
		l.heal()
		l.cut() // stuck bytes must not arrive later
	}
	for _, p := range append(r.nodes, r.servers...) {
		p.resume()
	}
	return r.start(ctx)
}

// stop ends every process and closes the lines.
func (r *rig) stop() {
	var all errgroup.Group
	for _, p := range r.servers {
		all.Go(func() error { p.end(10 * time.Second); return nil })
	}
	_ = all.Wait() // no function returns an error
	for _, p := range r.nodes {
		p.kill()
	}
	for _, l := range r.lines {
		l.cut()
	}
}

// keys returns the store's keys with a prefix. It asks etcd directly, through
// its JSON gateway.
func (r *rig) keys(ctx context.Context, prefix string) ([]string, error) {
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
	question, err := json.Marshal(map[string]any{"key": []byte(prefix), "range_end": []byte(end), "keys_only": true})
	if err != nil {
		return nil, err
	}
	status, text, err := fetch(ctx, http.MethodPost, r.etcd[0]+"/v3/kv/range", string(question))
	if err != nil || status != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("cannot list the keys of etcd: status %d: %s", status, text), err)
	}
	var found struct {
		Kvs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("cannot read etcd's answer: %w", err)
	}
	var out []string
	for _, kv := range found.Kvs {
		out = append(out, string(kv.Key))
	}
	return out, nil
}
