// Command bench measures the overhead of the service compared to the API
// server, and its gain compared to kubectl. A bare client, the service and
// kubectl apply the same objects in turns, in one run, on one sandbox.
//
// It prints medians and ratios and writes them to a Markdown file. Absolute times
// depend mainly on the machine, so only the scenario quick asserts anything, and
// only ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// bench is one run of the benchmark.
type bench struct {
	binary, kubectl, helm, flux string
	workers                     int
	values                      values

	api     *apiServer // API server of the present table
	line    *distance  // to it, if it is remote
	version string     // of the API server
	service *service
}

// options holds the flags.
type options struct {
	scenario, out string
	binary, helm  string
	flux          string
	workers       int

	sizes     numbers // of objects
	rounds    int
	roundTrip time.Duration

	load      load
	way       string  // of the scenario load
	result    string  // its file
	instances numbers // of the scenario many
	stored    numbers // instances
	outage    time.Duration
}

func (o *options) declare(flags *flag.FlagSet) {
	flags.StringVar(&o.scenario, "scenario", "objects", "objects, quick (whether the ratios of objects hold), many (instances over regions), inventory (instances that A&AI gets), networks (instances with and without them), stored (instances that exist), changes (re-applies, and instances one after another), charts (the memory of dry runs), week (changes, until as many records are deleted as are written), replicas (three, and one), vnfs (occurrences of SOL003), or regions (some with faults)")
	flags.StringVar(&o.out, "out", "docs/benchmarks.md", "report of the scenario objects; other scenarios append their names")
	flags.StringVar(&o.binary, "binary", "bin/k8splugin", "program of the service")
	flags.StringVar(&o.helm, "helm", "bin/helm", "Helm's program")
	flags.StringVar(&o.flux, "flux", "bin/kustomize-controller", "program of Flux's kustomize-controller")
	flags.IntVar(&o.workers, "workers", 16, "concurrent requests of the bare client, as many as the service uses")
	o.sizes = numbers{10, 100, 500}
	flags.Var(&o.sizes, "sizes", "numbers of objects")
	flags.IntVar(&o.rounds, "rounds", 0, "number of rounds; each runs every way once, starting with a different one (default 9 of objects, with several times as many of up to 100 objects; 7 of other scenarios)")
	flags.DurationVar(&o.roundTrip, "distance", 20*time.Millisecond, "round-trip time to the remote API server of the second table")
	o.instances = numbers{1000}
	flags.Var(&o.instances, "instances", "numbers of instances of the scenario many")
	flags.IntVar(&o.load.regions, "regions", 100, "number of regions of the scenarios many and regions")
	flags.StringVar(&o.way, "way", "", "way of the scenario load, which many runs: bare client, service or Flux")
	flags.StringVar(&o.result, "result", "", "file for the result of the scenario load")
	flags.IntVar(&o.load.clients, "clients", 32, "concurrent clients of the scenarios many and stored")
	o.stored = numbers{100, 10_000, 50_000}
	flags.DurationVar(&o.outage, "outage", 10*time.Minute, "how long A&AI does not respond after the last instance of the scenario inventory")
	flags.Var(&o.stored, "stored", "numbers of stored instances of the scenario stored, in ascending order")
}

// report returns the path of a scenario's report.
func (o *options) report(scenario string) string {
	return strings.TrimSuffix(o.out, ".md") + "-" + scenario + ".md"
}

// numbers is a comma-separated list as a flag.
type numbers []int

// String implements flag.Value.
func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*n), " ", ","), "&[]")
}

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("cannot read the number %q: %w", part, err)
		}
		*n = append(*n, number)
	}
	return nil
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	o.declare(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := bench{binary: o.binary, helm: o.helm, flux: o.flux, workers: o.workers, values: values{}}
	if o.rounds == 0 {
		o.rounds = 7
		if o.scenario == "objects" {
			o.rounds = 9
		}
	}
	began := time.Now()
	if err := o.run(ctx, &b); err != nil || len(b.values) == 0 {
		return err
	}
	return b.values.record(o.report(goalsTable), o.scenario, time.Since(began))
}

// run runs the scenario of the options.
func (o options) run(ctx context.Context, b *bench) error {
	switch o.scenario { // with a light API server
	case "stored":
		return b.stored(ctx, o.report("stored"), o.stored, o.load.clients)
	case "many": // has its own sandboxes
		return b.many(ctx, o.report("many"), o.instances, o.load)
	case "regions":
		return b.regions(ctx, o.report("regions"), o.load)
	case "inventory":
		return b.inventory(ctx, o.report("inventory"), o)
	case "charts":
		return charts(ctx, b.binary, o.report("charts"), b.values)
	case "week":
		return week(ctx, b.binary, o.report("week"), o.load.clients, b.values)
	}
	kubeconfig, bin := os.Getenv("K8SPLUGIN_SANDBOX"), os.Getenv("K8SPLUGIN_SANDBOX_BIN")
	if kubeconfig == "" || bin == "" {
		return errors.New("cannot find the sandbox: run this with make bench")
	}
	b.kubectl = bin + "/kubectl"
	switch o.scenario {
	case "quick":
		return b.quick(ctx, kubeconfig, o.out)
	case "load":
		o.load.instances = o.instances[0]
		return o.load.measure(ctx, b, kubeconfig, o.way, o.result)
	case "networks":
		return b.networks(ctx, kubeconfig, o.report("networks"), plan{sizes: o.sizes, rounds: o.rounds})
	case "changes":
		return b.changes(ctx, kubeconfig, o.report("changes"), 3*o.rounds) // each takes less than a second
	case "vnfs":
		return b.vnfs(ctx, kubeconfig, o.report("vnfs"), o.rounds)
	case "replicas":
		return replicas(ctx, replicaPrograms{b.binary, bin + "/etcd"}, o.report("replicas"), o.load.clients, b.values)
	case "objects":
		return b.objects(ctx, kubeconfig, o)
	}
	return fmt.Errorf("cannot run the scenario %q: it is unknown", o.scenario)
}

// objects compares the ways for each number of objects, near and at a distance.
func (b *bench) objects(ctx context.Context, kubeconfig string, o options) error {
	// A ratio varies much between rounds, so there are more of those that take little time.
	p := plan{sizes: o.sizes, rounds: 4 * o.rounds, slow: min(o.rounds, 2), large: min(2*o.rounds, 15)}
	near, err := b.all(ctx, kubeconfig, p)
	if err != nil {
		return err
	}
	t := tables{near: near, nearPlan: p, roundTrip: o.roundTrip}
	p.rounds, p.slow, p.large = 3*o.rounds, o.rounds, min(o.rounds, 7) // the goals of kubectl and Helm are those at a distance
	far, err := b.allFrom(ctx, o.roundTrip, kubeconfig, p)
	if err != nil {
		return err
	}
	for place, results := range map[string][]result{"near": near, "at a distance": far} {
		for _, r := range results {
			objects := fmt.Sprintf("%d objects, %s: ", r.size, place)
			b.values.set(objects+"service to bare client", r.ratio(serviceWay, bareWay))
			b.values.set(objects+"service minus bare client", milliseconds(r.median(serviceWay)-r.median(bareWay)))
			b.values.set(objects+"kubectl to service", r.ratio(kubectlWay, serviceWay))
			b.values.set(objects+"Helm to service", r.ratio(helmWay, chartWay))
		}
	}
	t.far, t.farPlan = far, p
	return b.report(o.out, t)
}

// plan is the input of one table.
type plan struct {
	sizes  []int
	rounds int
	slow   int  // rounds of kubectl and charts, which take long
	large  int  // rounds of more objects than those of a chart; kubectl runs once with them
	quick  bool // only the bare client and the service
}

// all measures every size with the API server of a kubeconfig.
func (b *bench) all(ctx context.Context, kubeconfig string, p plan) ([]result, error) {
	var err error
	if b.api, err = newAPIServer(kubeconfig); err != nil {
		return nil, err
	}
	if b.version, err = b.api.version(ctx); err != nil {
		return nil, err
	}
	if err := b.api.createNamespace(ctx); err != nil {
		return nil, err
	}
	if b.service, err = startService(ctx, b.binary, kubeconfig); err != nil {
		return nil, err
	}
	defer b.service.stop()
	var results []result
	for _, size := range p.sizes {
		r, err := b.measure(ctx, size, p)
		if err != nil {
			return nil, fmt.Errorf("cannot measure %d objects: %w", size, err)
		}
		results = append(results, r)
		if p.quick {
			continue
		}
		fmt.Println(r.row())
		if size <= mostOfAChart {
			fmt.Println(r.chartRow())
		}
	}
	return results, nil
}

// allFrom is all with added latency.
func (b *bench) allFrom(ctx context.Context, roundTrip time.Duration, kubeconfig string, p plan) ([]result, error) {
	folder, err := os.MkdirTemp("", "bench-distance-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	d, far, err := newDistance(kubeconfig, folder, roundTrip)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	b.line = d
	defer func() { b.line = nil }()
	var line errgroup.Group
	line.Go(func() error { return d.run(ctx) })
	results, err := b.all(ctx, far, p)
	cancel()
	return results, errors.Join(err, line.Wait())
}

// way is one way to apply objects. It returns the measured time.
type way struct {
	name string
	do   func(ctx context.Context, set objectSet) (time.Duration, error)
}

// result holds the times for one size, by way.
type result struct {
	size  int
	times map[string][]time.Duration
	bytes map[string]traffic // of the last round
}

// The ways, as named in the ratios. The last is the part of the service's time
// from an operation's acceptance to its last apply.
const (
	bareWay     = "a"
	serviceWay  = "b"
	kubectlWay  = "c"
	acceptedWay = "b accepted to applied"
)

func (b *bench) measure(ctx context.Context, size int, p plan) (result, error) {
	set, err := newObjectSet(size, "applied")
	if err != nil {
		return result{}, err
	}
	defer set.remove()
	if err := b.service.upload(ctx, set); err != nil {
		return result{}, err
	}
	r := result{size: size, times: map[string][]time.Duration{}, bytes: map[string]traffic{}}
	ways := []way{
		{bareWay, b.bare},
		{serviceWay, func(ctx context.Context, set objectSet) (time.Duration, error) {
			whole, accepted, err := b.service.instantiate(ctx, set)
			r.times[acceptedWay] = append(r.times[acceptedWay], accepted)
			return whole, err
		}},
		{kubectlWay, b.apply},
	}
	if p.quick {
		ways = ways[:2]
	}
	rounds, kubectlRounds := p.rounds, p.slow
	if size > mostOfAChart {
		rounds, kubectlRounds = p.large, 1
	}
	if _, _, err := b.once(ctx, ways[1], set); err != nil { // the first instance of a package is checked by dry runs
		return r, fmt.Errorf("the first instance: %w", err)
	}
	delete(r.times, acceptedWay)
	for round := range rounds {
		if round == kubectlRounds {
			ways = ways[:2]
		}
		for i := range ways {
			w := ways[(round+i)%len(ways)]
			took, bytes, err := b.once(ctx, w, set)
			if err != nil {
				return r, fmt.Errorf("way %s: %w", w.name, err)
			}
			r.times[w.name], r.bytes[w.name] = append(r.times[w.name], took), bytes
		}
	}
	if size > mostOfAChart || p.quick {
		return r, nil
	}
	return r, b.measureCharts(ctx, set, &r, p.slow)
}

// namespace is the namespace of all objects. It is created once, because
// creating or deleting one keeps the controllers busy for seconds and would
// disturb the measurements.
const namespace = "bench"

// once applies the objects, and waits until all are deleted again, so that one
// way does not affect the next.
func (b *bench) once(ctx context.Context, w way, set objectSet) (time.Duration, traffic, error) {
	before := b.line.traffic()
	took, err := w.do(ctx, set)
	bytes := b.line.traffic().since(before)
	if w.name == serviceWay && err == nil {
		err = b.service.terminateAll(ctx)
	}
	return took, bytes, errors.Join(err, b.api.clear(ctx))
}

func (r result) median(way string) time.Duration {
	return quantile(r.times[way], 0.5)
}

// ratio returns the middle of the ratios of two ways in the same round: the machine is
// as fast for both then.
func (r result) ratio(x, y string) float64 {
	var ratios []float64
	for i := range min(len(r.times[x]), len(r.times[y])) {
		ratios = append(ratios, float64(r.times[x][i])/float64(r.times[y][i]))
	}
	return middle(ratios)
}

func (r result) row() string {
	ratio := func(x, y string) string { return strconv.FormatFloat(r.ratio(x, y), 'f', 2, 64) }
	return fmt.Sprintf("| %d | %s | %s | %s | %s | %s | %s |", r.size, ms(r.median(bareWay)), ms(r.median(serviceWay)), ms(r.median(acceptedWay)), ms(r.median(kubectlWay)),
		ratio(serviceWay, bareWay), ratio(kubectlWay, serviceWay))
}
