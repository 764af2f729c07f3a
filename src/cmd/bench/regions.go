package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The scenario regions: each phase has so many requests per second, for so long.
const (
	phaseRate    = 50
	phaseSeconds = 7
	phasePairs   = 12 // of a phase without faults and one with them; a pair takes no divisor of 30 s, after which much repeats
)

// faultNames are the faults of the first regions, in order.
var faultNames = [...]string{"black-holed", "slow", flooding}

const flooding = "flooding" // a region that works, but sends much

// faultOf returns the responses of a region with a fault.
func (l *lightServer) faultOf(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		region, path := regionAndPath(r)
		switch {
		case name == "black-holed":
			<-r.Context().Done()
			return
		case name == "slow":
			select {
			case <-r.Context().Done():
				return
			case <-time.After(2 * time.Second):
			}
		case r.URL.Query().Get("watch") == "true":
			flood(w, r, path)
			return
		}
		l.respond(w, r, region, path)
	})
}

// flood sends 1,000 events per second to a watch, of 1 KiB each.
func flood(w http.ResponseWriter, r *http.Request, path string) {
	kind := lightKinds[path[strings.LastIndexByte(path, '/')+1:]]
	version := "v1"
	if strings.HasPrefix(path, "apis/") {
		version = "apps/v1"
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 1; ; i++ {
		_, err := fmt.Fprintf(w, `{"type":"MODIFIED","object":{"apiVersion":%q,"kind":%q,"metadata":{"name":"flood","namespace":"flood","uid":"flood","resourceVersion":"%d",`+
			`"labels":{"k8splugin.io/rb-instance-id":"flood"},"annotations":{"flood":"%01000d"}}}}`+"\n", version, kind, i, i)
		if f, ok := w.(http.Flusher); ok && err == nil {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// regions measures requests to regions while others have faults.
func (b *bench) regions(ctx context.Context, out string, l load) error {
	light := newLightServer()
	defer light.close()
	text := fmt.Sprintf(regionsPreamble, time.Now().Format(time.DateOnly), machine(), l.regions, phaseSeconds, phaseRate)
	s, err := newService(ctx, b.binary)
	if err != nil {
		return err
	}
	defer s.stop()
	for i := range l.regions {
		if err := s.register(ctx, regionName(i), light.kubeconfig(regionName(i))); err != nil {
			return err
		}
	}
	if err := s.uploadLoad(ctx, loadPackageID); err != nil {
		return err
	}
	run := regionsRun{service: s, light: light, regions: l.regions}
	if err := run.warm(ctx); err != nil {
		return err
	}
	var phases [2][]*latencies // without and with faults
	for i := range 2 * phasePairs {
		run.set(i%2 == 1)
		phase, err := run.phase(ctx, i%2 == 1)
		if err != nil {
			return err
		}
		phases[i%2] = append(phases[i%2], phase)
		fmt.Printf("phase %d: p99 %v\n", i, quantile(phase.all(), 0.99))
	}
	text += regionRows(phases)
	b.values.set("creations beside regions with faults to without, p99", changeOf(createRequest, phases[1], phases[0]))
	b.values.set("reads beside regions with faults to without, p99", changeOf(readRequest, phases[1], phases[0]))
	fmt.Print(text)
	return writeReport(out, text)
}

const regionsPreamble = `# Regions with faults

Written by ` + "`make bench SCENARIO=regions`" + ` on %s: %s.

%d regions are paths of one light API server in the process of the benchmark ([benchmarks-stored.md](benchmarks-stored.md)). In phases of %d seconds, three of them have a fault in
every second phase: one is black-holed (it accepts requests and never answers), one is slow (it answers after 2 seconds), and one is flooding (each watch has 1,000 events per
second of 1 KiB). The load is %d requests per second to the other regions: of every five, one creates an instance of four objects and four read an instance with
its objects. Three more clients create instances in each of the three regions, one after another: in the flooding one in all phases, because it still works, and in the others while
they have faults. So all phases have about the same work.

Each row has the median and the p99 of the requests of all phases in milliseconds. The goal is a change of the p99 of at most 5 %%. A change is the mean of the middle half of the ratios
of a phase with faults and the one before it, so that a stall in one phase does not decide it. The last column compares the p99 of every second phase without faults with that of
the one before it: a change below it says nothing.

| requests | median without faults | with faults | p99 without faults | with faults | change of the p99 | between phases without faults |
|---|--:|--:|--:|--:|--:|--:|
`

func regionRows(phases [2][]*latencies) string {
	var text strings.Builder
	for _, name := range []string{createRequest, readRequest} {
		var halves [2][]*latencies
		for i, phase := range phases[0] {
			halves[i%2] = append(halves[i%2], phase)
		}
		without, with := together(name, phases[0]), together(name, phases[1])
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %+.0f %% | %+.0f %% |\n", name, ms(quantile(without, 0.5)), ms(quantile(with, 0.5)), ms(quantile(without, 0.99)), ms(quantile(with, 0.99)),
			100*(changeOf(name, phases[1], phases[0])-1), 100*(changeOf(name, halves[1], halves[0])-1))
	}
	return text.String()
}

// together returns the durations of the requests with a name in all phases.
func together(name string, phases []*latencies) []time.Duration {
	var all []time.Duration
	for _, phase := range phases {
		all = append(all, phase.byName[name]...)
	}
	return all
}

// changeOf returns the middle of the ratios of the p99 of requests in some phases to that
// in others, pair by pair: a stall in one phase must not decide it.
func changeOf(name string, these, others []*latencies) float64 {
	var ratios []float64
	for i := range min(len(these), len(others)) {
		ratios = append(ratios, float64(quantile(these[i].byName[name], 0.99))/float64(quantile(others[i].byName[name], 0.99)))
	}
	return middle(ratios)
}

// regionsRun is the scenario of regions with faults.
type regionsRun struct {
	service   *service
	light     *lightServer
	regions   int
	created   int
	instances []string // one of each region without a fault
}

// set sets or removes the faults.
func (r *regionsRun) set(faulty bool) {
	for i, name := range faultNames {
		r.light.fault(regionName(i), nil)
		if faulty {
			r.light.fault(regionName(i), r.light.faultOf(name))
		}
	}
}

// create creates an instance in a region.
func (r *regionsRun) create(ctx context.Context, region int, name string) (brought, error) {
	return r.service.create(ctx, map[string]any{"cloud_region_id": regionName(region), "csar_id": loadPackageID, "namespace": "bench-" + name, "vnf_instance_name": "bench"})
}

// warm creates an instance in each region, because a region is read at its first
// use.
func (r *regionsRun) warm(ctx context.Context) error {
	for i := range r.regions {
		in, err := r.create(ctx, i, fmt.Sprintf("warm-%d", i))
		if err != nil {
			return err
		}
		if i >= len(faultNames) {
			r.instances = append(r.instances, in.instance)
		}
	}
	return nil
}

// The requests of the scenario.
const (
	createRequest = "create an instance"
	readRequest   = "read an instance"
)

// phase sends the requests of a phase. In regions whose faults make it fail, others create
// instances only meanwhile.
func (r *regionsRun) phase(ctx context.Context, faulty bool) (*latencies, error) {
	others, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	first := r.created
	for client := range 3 * len(faultNames) {
		if !faulty && faultNames[client%len(faultNames)] != flooding {
			continue
		}
		group.Go(func() error {
			for i := 0; others.Err() == nil; i++ {
				_, _ = r.create(others, client%len(faultNames), fmt.Sprintf("faulty-%d-%d-%d", first, client, i)) // the faults make it fail
				select {
				case <-others.Done():
				case <-time.After(time.Second / 4):
				}
			}
			return nil
		})
	}
	const creating = 5 // of so many requests, one creates an instance
	r.created += phaseRate * phaseSeconds
	phase, err := atRate(ctx, phaseRate, phaseSeconds, func(ctx context.Context, i int) (string, error) {
		region := i % len(r.instances)
		if i%creating == 0 {
			_, err := r.create(ctx, len(faultNames)+region, fmt.Sprintf("load-%d", first+i))
			return createRequest, err
		}
		return readRequest, r.service.send(ctx, http.MethodGet, "/v1/vnf_instances/"+r.instances[region], content{}, nil)
	})
	cancel()
	_ = group.Wait() // it has no error
	return phase, err
}
