// Command bench measures what the service costs on top of the API server, and
// what it saves against kubectl: the same objects are brought up by a bare
// client, by the service and by kubectl, in turns, in one run, on one sandbox.
//
// It prints medians and ratios and writes them to a Markdown file. It asserts
// nothing and is no test: absolute times say more about the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	api     *apiServer
	service *service
	kubectl string
	workers int
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("sizes", "10,100,500", "numbers of objects")
	rounds := flags.Int("rounds", 5, "rounds; each runs every way once, beginning with another one")
	workers := flags.Int("workers", 16, "requests that the bare client keeps in flight: as many as the service does")
	binary := flags.String("binary", "bin/k8splugin", "the service's program")
	out := flags.String("out", "docs/benchmarks.md", "file to write the table to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	kubeconfig, bin := os.Getenv("K8SPLUGIN_SANDBOX"), os.Getenv("K8SPLUGIN_SANDBOX_BIN")
	if kubeconfig == "" || bin == "" {
		return errors.New("cannot find the sandbox: run this with make bench")
	}
	api, err := newAPIServer(kubeconfig)
	if err != nil {
		return err
	}
	svc, err := startService(ctx, *binary, kubeconfig)
	if err != nil {
		return err
	}
	defer svc.stop()
	b := bench{api: api, service: svc, kubectl: bin + "/kubectl", workers: *workers}
	var results []result
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("cannot read the size %q: %w", text, err)
		}
		r, err := b.measure(ctx, size, *rounds)
		if err != nil {
			return fmt.Errorf("cannot measure %d objects: %w", size, err)
		}
		results = append(results, r)
		fmt.Println(r.row())
	}
	return report(ctx, *out, api, results, *rounds)
}

// way is one way to bring objects up. It returns the time that counts.
type way struct {
	name string
	do   func(ctx context.Context, namespace string, set objectSet) (time.Duration, error)
}

// result is the times of one size, by way.
type result struct {
	size  int
	times map[string][]time.Duration
}

// The ways, by the letters that the ratios use, and the part of the service's
// time that lies between an operation's acceptance and its last apply.
const (
	bareWay     = "a"
	serviceWay  = "b"
	kubectlWay  = "c"
	acceptedWay = "b accepted to applied"
)

func (b bench) measure(ctx context.Context, size, rounds int) (result, error) {
	set, err := newObjectSet(size)
	if err != nil {
		return result{}, err
	}
	defer set.remove()
	if err := b.service.upload(ctx, set); err != nil {
		return result{}, err
	}
	r := result{size: size, times: map[string][]time.Duration{}}
	ways := []way{
		{bareWay, b.bare},
		{serviceWay, func(ctx context.Context, ns string, set objectSet) (time.Duration, error) {
			whole, accepted, err := b.service.instantiate(ctx, ns, set)
			r.times[acceptedWay] = append(r.times[acceptedWay], accepted)
			return whole, err
		}},
		{kubectlWay, b.apply},
	}
	for round := range rounds {
		for i := range ways {
			w := ways[(round+i)%len(ways)]
			namespace := fmt.Sprintf("bench-%d-%d-%s", size, round, w.name)
			took, err := b.once(ctx, w, namespace, set)
			if err != nil {
				return r, fmt.Errorf("way %s: %w", w.name, err)
			}
			r.times[w.name] = append(r.times[w.name], took)
		}
	}
	return r, nil
}

// once brings the objects up in a fresh namespace, and waits until all is gone
// again, so that no way pays for the one before it.
func (b bench) once(ctx context.Context, w way, namespace string, set objectSet) (time.Duration, error) {
	if err := b.api.createNamespace(ctx, namespace); err != nil {
		return 0, err
	}
	took, err := w.do(ctx, namespace, set)
	if w.name == serviceWay && err == nil {
		err = b.service.terminateAll(ctx, namespace)
	}
	return took, errors.Join(err, b.api.removeNamespace(ctx, namespace))
}

func (r result) median(way string) time.Duration {
	sorted := slices.Sorted(slices.Values(r.times[way]))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func (r result) row() string {
	ms := func(way string) string {
		return strconv.FormatFloat(float64(r.median(way).Microseconds())/1000, 'f', 1, 64)
	}
	ratio := func(x, y string) string {
		return strconv.FormatFloat(float64(r.median(x))/float64(r.median(y)), 'f', 2, 64)
	}
	return fmt.Sprintf("| %d | %s | %s | %s | %s | %s | %s |", r.size, ms(bareWay), ms(serviceWay), ms(acceptedWay), ms(kubectlWay),
		ratio(serviceWay, bareWay), ratio(kubectlWay, serviceWay))
}

const preamble = `# Benchmarks

Written by ` + "`make bench`" + ` on %s: Kubernetes %s, %s, %d rounds, medians.

The same objects (six ConfigMaps, two Services, one Secret and one Deployment in every ten) are brought up in a fresh namespace three
ways, in turns, each after the traces of the last are gone:

- **a**, the floor: the final bytes of every object as one server-side apply request, sent in parallel by a bare HTTP client with as many
  requests in flight, on one connection, as the service keeps;
- **b**, this service: from the moment that the client sends ` + "`POST /v1/vnf_instances`" + ` until it has the 201, the rendering, the
  preflight and every durable record included; the next column is the part between the operation's acceptance and its last apply;
- **c**, ` + "`kubectl apply --server-side`" + ` of the same files, from the start of the program to its end.

Times are milliseconds and say as much about the machine as about the code; the ratios are what counts. The goals at 100 objects are
b/a ≤ 1.25 and c/b ≥ 5.

| objects | a | b | b, accepted to applied | c | b/a | c/b |
|--:|--:|--:|--:|--:|--:|--:|
`

func report(ctx context.Context, path string, api *apiServer, results []result, rounds int) error {
	version, err := api.version(ctx)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, preamble, time.Now().Format(time.DateOnly), version, goVersion(), rounds)
	for _, r := range results {
		text.WriteString(r.row() + "\n")
	}
	if notes, err := os.ReadFile(strings.TrimSuffix(path, ".md") + "-notes.md"); err == nil {
		text.WriteString("\n" + string(notes))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("cannot write the table: %w", err)
	}
	return nil
}
