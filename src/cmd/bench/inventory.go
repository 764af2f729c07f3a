package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// The ways of the scenario inventory.
const (
	unlistedWay = "without A&AI"
	listedWay   = "with A&AI"
	outageWay   = "with A&AI, which does not respond"
)

const (
	inventoryLogin = "bench"
	listedApp      = "k8splugin" // the service's name in A&AI
	listedRegions  = "/cloud-infrastructure/cloud-regions/cloud-region/bench/"
)

// inventoryRun measures instances that the service writes to a simulator of A&AI. The
// regions are those of a light API server.
type inventoryRun struct {
	binary    string
	instances int
	clients   int
	outage    time.Duration
	light     *lightServer
}

// listing is one way, in a service and an A&AI of its own.
type listing struct {
	run         inventoryRun
	way, region string
	service     *service
	sim         *aai.Simulator
}

// listed is the result of one way.
type listed struct {
	took         time.Duration
	latencies    []time.Duration
	transactions int // that A&AI executed
	requests     int // of the service to A&AI
}

// inventory measures the three ways, and writes the report.
func (b *bench) inventory(ctx context.Context, out string, o options) error {
	light := newLightServer()
	defer light.close()
	const rounds = 3
	run := inventoryRun{b.binary, slices.Max(o.instances), o.load.clients, o.outage, light}
	results := map[string][]listed{}
	ways := []string{unlistedWay, listedWay, outageWay}
	for round := range rounds {
		for i := range ways {
			way := ways[(round+i)%len(ways)]
			l, err := run.measure(ctx, way, fmt.Sprintf("bench-%d-%d", round, i))
			if err != nil {
				return fmt.Errorf("cannot measure instances %s: %w", way, err)
			}
			results[way] = append(results[way], l)
			fmt.Printf("round %d, %s: %v, %d transactions of %d requests\n", round, way, l.took.Round(time.Millisecond), l.transactions, l.requests)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, inventoryPreamble, time.Now().Format(time.DateOnly), machine(), rounds, run.instances, run.clients, run.outage)
	for _, way := range ways {
		text.WriteString(inventoryRow(way, results[way], results[unlistedWay]))
	}
	fmt.Print(text.String())
	return writeReport(out, text.String())
}

// measure creates the instances in one way, in a service and an A&AI of their own.
func (r inventoryRun) measure(ctx context.Context, way, region string) (out listed, err error) {
	sim, err := aai.New(aai.Config{Users: map[string]string{inventoryLogin: inventoryLogin}})
	if err != nil {
		return out, err
	}
	server := httptest.NewServer(sim)
	defer server.Close()
	for _, object := range [][2]string{{region, `{"cloud-type":"k8s"}`}, {region + "/tenants/tenant/t1", `{"tenant-name":"t1"}`}} {
		if w := sim.Do(ctx, "bench", http.MethodPut, listedRegions+object[0], object[1]); w.Code != http.StatusCreated {
			return out, fmt.Errorf("cannot put %s into A&AI: status %d", object[0], w.Code)
		}
	}
	sim.Journal()
	folder, err := os.MkdirTemp("", "bench-inventory-")
	if err != nil {
		return out, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	var flags []string
	if way != unlistedWay {
		login := filepath.Join(folder, "login")
		if err := os.WriteFile(login, []byte(inventoryLogin), 0o600); err != nil {
			return out, fmt.Errorf("cannot write the login: %w", err)
		}
		flags = []string{"--aai-url", server.URL, "--aai-write", "--aai-user-file", login, "--aai-password-file", login, "--aai-rate", "1000", "--aai-service-url", "https://k8splugin.example"}
	}
	s, err := newService(ctx, r.binary, flags...)
	if err != nil {
		return out, err
	}
	defer s.stop()
	request := map[string]any{"cloud_region_id": region, "cloud_owner": "bench", "aai_tenant": "t1", "kubeconfig": r.light.kubeconfig(region)}
	if err := errors.Join(s.post(ctx, "/v1/cloud_regions", request, nil), s.uploadLoad(ctx, loadPackageID)); err != nil {
		return out, err
	}
	l := listing{r, way, region, s, sim}
	if err := l.create(ctx, &out); err != nil {
		return out, err
	}
	return out, l.await(ctx, &out)
}

// create creates the instances. In the way with an outage, A&AI stops to respond after a
// quarter of them.
func (l listing) create(ctx context.Context, out *listed) error {
	var mu sync.Mutex
	one := func(ctx context.Context, i int) error {
		made, err := l.service.create(ctx, map[string]any{"cloud_region_id": l.region, "csar_id": loadPackageID, "namespace": loadNamespace(i), "vnf_instance_name": "bench"})
		mu.Lock()
		defer mu.Unlock()
		out.latencies = append(out.latencies, made.took)
		return err
	}
	first, err := each(ctx, 0, l.run.instances/4, l.run.clients, one)
	if err != nil {
		return err
	}
	if l.way == outageWay {
		l.sim.Script(aai.Fault{Status: http.StatusServiceUnavailable, Times: -1})
	}
	rest, err := each(ctx, l.run.instances/4, l.run.instances, l.run.clients, one)
	out.took = first + rest
	return err
}

// await waits until A&AI has all objects of the instances, and counts what that took.
func (l listing) await(ctx context.Context, out *listed) error {
	if l.way == unlistedWay {
		return nil
	}
	if l.way == outageWay {
		if err := wait(ctx, l.run.outage); err != nil {
			return err
		}
		l.sim.Repair()
	}
	for has := 0; has < l.run.instances*len(loadKinds); {
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
		w := l.sim.Do(ctx, "bench", http.MethodGet, listedRegions+l.region+"/tenants/tenant/t1/k8s-resources", "")
		if w.Code != http.StatusOK && w.Code != http.StatusNotFound {
			return fmt.Errorf("cannot list the objects of A&AI: status %d", w.Code)
		}
		has = strings.Count(w.Body.String(), `"selflink":`)
	}
	for _, e := range l.sim.Journal() {
		if e.AppID != listedApp {
			continue
		}
		out.requests++
		if e.Status == http.StatusCreated {
			out.transactions++
		}
	}
	return nil
}

// wait waits, unless the context ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func inventoryRow(way string, of, base []listed) string {
	took := func(rs []listed) (sum time.Duration) {
		for _, r := range rs {
			sum += r.took
		}
		return sum / time.Duration(len(rs))
	}
	var all []time.Duration
	var transactions, requests int
	for _, l := range of {
		all, transactions, requests = append(all, l.latencies...), transactions+l.transactions, requests+l.requests
	}
	return fmt.Sprintf("| %s | %.1f | %.2f | %s | %s | %.2f | %.2f |\n", way, took(of).Seconds(), float64(took(of))/float64(took(base)), ms(quantile(all, 0.5)), ms(quantile(all, 0.99)),
		float64(transactions)/float64(len(all)), float64(requests)/float64(len(all)))
}

const inventoryPreamble = `# Instances and A&AI

Written by ` + "`make bench SCENARIO=inventory`" + ` on %s: %s, %d rounds.

%d instances of four objects are created by %d clients, in three ways, in turns. Each way has its own service, and a simulator of A&AI in the process of the benchmark. The region is a path of a
light API server ([benchmarks-stored.md](benchmarks-stored.md)). In the last way, A&AI responds with 503 after a quarter of the instances, and for %s after the last one. Then the
benchmark waits until A&AI has all objects. The goals: A&AI slows no operation, which is a ratio of about 1, and gets at most 1.2 transactions for each instance.

| way | time, s | ratio | p50, ms | p99, ms | transactions per instance | requests to A&AI per instance |
|---|--:|--:|--:|--:|--:|--:|
`
