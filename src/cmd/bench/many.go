package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is the input of the scenario of many instances: each has four objects in
// four stages and a namespace of its own, and the regions are kubeconfigs of one API
// server.
type load struct {
	instances, regions, clients int
}

// loadKinds are the kinds of an instance's objects, by stage. The last one is ready
// when its pod is.
var loadKinds = [...]int{8, 0, 6, 9} // newObject makes a Secret, a ConfigMap, a Service and a Deployment of them

// loadResult is the cost of a load in one way.
type loadResult struct {
	Took  time.Duration
	Used  map[string]time.Duration // processor time by program
	Again rechecks                 // of the service
}

// loadWays are the ways of a load, in order.
var loadWays = [...]string{"bare client", "service", "Flux"}

// many measures each load in each way.
func (b *bench) many(ctx context.Context, out string, counts []int, l load) error {
	var text strings.Builder
	fmt.Fprintf(&text, loadPreamble, time.Now().Format(time.DateOnly), machine(), l.regions, l.clients)
	for _, count := range counts {
		l.instances = count
		var results [len(loadWays)]loadResult
		for i, way := range loadWays {
			var err error
			if results[i], err = l.apart(ctx, b, way); err != nil {
				return fmt.Errorf("cannot measure %d instances: %s: %w", count, way, err)
			}
			row := results[i].row(count, way)
			fmt.Print(row)
			text.WriteString(row)
		}
		floor, service, flux := results[0], results[1], results[2]
		if count == 1000 {
			b.values.set("1,000 instances over 100 regions", service.Took.Seconds())
			b.values.set("the same: service to bare client", service.Took.Seconds()/floor.Took.Seconds())
			b.values.set("the same: Flux to service", flux.Took.Seconds()/service.Took.Seconds())
			b.values.set("the same: processor time for an instance", milliseconds(service.Used[measuredProgram])/1000)
			b.values.set("check of all 1,000 after a restart", service.Again.Restart.Seconds())
		}
		ratios := fmt.Sprintf("| %d | **service to bare client %.2f, Flux to service %.2f** | | | | | | |\n", count,
			service.Took.Seconds()/floor.Took.Seconds(), flux.Took.Seconds()/service.Took.Seconds())
		fmt.Print(ratios, service.Again.row(count))
		text.WriteString(ratios + service.Again.row(count))
	}
	return writeReport(out, text.String())
}

// apart measures a load in one way, by a run of this program in a sandbox of its own: to
// remove a thousand namespaces would take longer than to create them.
func (l load) apart(ctx context.Context, b *bench, way string) (loadResult, error) {
	var r loadResult
	result, err := os.CreateTemp("", "bench-result-")
	if err != nil {
		return r, fmt.Errorf("cannot make a file: %w", err)
	}
	defer func() { _ = os.Remove(result.Name()) }()
	defer func() { _ = result.Close() }()
	cmd := exec.CommandContext(ctx, "go", "run", "./src/cmd/sandbox", "exec", "--", os.Args[0], "--scenario", "load", "--way", way, "--result", result.Name(),
		"--instances", strconv.Itoa(l.instances), "--regions", strconv.Itoa(l.regions), "--clients", strconv.Itoa(l.clients), "--binary", b.binary, "--flux", b.flux)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("cannot run it in a sandbox: %w", err)
	}
	return r, json.NewDecoder(result).Decode(&r)
}

// measure measures a load in one way, and writes its result to a file.
func (l load) measure(ctx context.Context, b *bench, kubeconfig, way, result string) error {
	var err error
	if b.api, err = newAPIServer(kubeconfig); err != nil {
		return err
	}
	do := map[string]func(ctx context.Context, l load) (loadResult, error){loadWays[0]: b.bareLoad, loadWays[1]: b.serviceLoad, loadWays[2]: b.fluxLoad}[way]
	if do == nil {
		return fmt.Errorf("cannot measure the way %q: it is unknown", way)
	}
	r, err := do(ctx, l)
	if err != nil {
		return err
	}
	count, err := b.api.loadNamespaces(ctx)
	if err == nil && count != l.instances {
		err = fmt.Errorf("it has created %d of %d instances", count, l.instances)
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(result, text, 0o600)
}

const loadPreamble = `# Many instances over many regions

Written by ` + "`make bench SCENARIO=many`" + ` on %s: %s.

Instances of four objects (a Secret, a ConfigMap, a Service and a Deployment), each in a namespace of its own, on one API server. Each way has
a new sandbox.

- The **bare client** creates the namespace of an instance and applies its four objects one after another.
- The **service** has %d regions, which are kubeconfigs of the API server. Each object is in its own stage, without a wait for readiness. %d clients make the
  requests, and the service answers when all objects of an instance are applied. The bare client uses as many.
- **Flux** is its kustomize-controller, which applies a Kustomization for each instance, without a wait for readiness. All use one artifact, with the same
  objects, from a local server. The time is that from the first Kustomization until all are ready. It has one region and no limit of its requests, and
  reconciles as many Kustomizations at a time as there are clients. The source is an ExternalArtifact, so source-controller does not run: its
  module needs github.com/fluxcd/pkg/artifact v0.18.3, which the module proxy does not have.

The goals at 1,000 instances are: the service takes at most 45 s and at most 1.6 times as long as the bare client, Flux takes at least 4 times as long as the service, and
the service uses at most 12 ms of processor time for an instance. Afterwards, the service is restarted; the goal is that it has checked the health of all instances within 10 s. Then
all instances are updated to the package that they have. The last columns are processor times of the programs in milliseconds for each instance; *others* are
controller manager, scheduler and KWOK.

| instances | way | time, s | per second | service or Flux | API server | etcd | others |
|--:|---|--:|--:|--:|--:|--:|--:|
`

func (r loadResult) row(count int, way string) string {
	cost := func(program string) string { return ms(r.Used[program] / time.Duration(count)) }
	return fmt.Sprintf("| %d | %s | %.1f | %.1f | %s | %s | %s | %s |\n", count, way, r.Took.Seconds(), float64(count)/r.Took.Seconds(),
		cost(measuredProgram), cost("kube-apiserver"), cost("etcd"), cost(otherPrograms))
}

// The programs of a loadResult, in addition to kube-apiserver and etcd.
const (
	measuredProgram = "measured"
	otherPrograms   = "others"
)

// spend returns the time that do takes, and the processor time of the control
// plane and of a process during it. The process is optional.
func (b *bench) spend(pid int, do func() error) (loadResult, error) {
	before, err := b.used(pid)
	if err != nil {
		return loadResult{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return loadResult{}, err
	}
	r := loadResult{Took: time.Since(began)}
	r.Used, err = b.used(pid)
	for program := range r.Used {
		r.Used[program] -= before[program]
	}
	return r, err
}

// used returns the processor times of the sandbox's programs, which have its
// folder in their arguments, and of a process.
func (b *bench) used(pid int) (map[string]time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	used := map[string]time.Duration{}
	for _, file := range files {
		line, _ := os.ReadFile(file) // a process that has ended
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		program, arguments, _ := strings.Cut(string(line), "\x00")
		switch program = filepath.Base(program); {
		case id == pid:
			program = measuredProgram
		case !strings.Contains(arguments, filepath.Dir(b.api.kubeconfig)+"/"):
			continue
		case program != "etcd" && program != "kube-apiserver":
			program = otherPrograms
		}
		time, err := processorTime(id)
		if err != nil {
			return nil, err
		}
		used[program] += time
	}
	return used, nil
}

// loadNamespaces returns the number of namespaces of the load.
func (a *apiServer) loadNamespaces(ctx context.Context) (int, error) {
	_, answer, err := a.do(ctx, http.MethodGet, "/api/v1/namespaces", "", nil)
	if err != nil {
		return 0, fmt.Errorf("cannot list the namespaces: %w", err)
	}
	return bytes.Count(answer, []byte(`"name":"`+loadPrefix)), nil
}

// loadPrefix begins the names of the namespaces of the load.
const loadPrefix = "bench-load-"

func loadNamespace(i int) string { return fmt.Sprintf("%s%04d", loadPrefix, i) }

// each calls do with the numbers from one up to, but excluding, another, as many
// at a time as there are clients, and returns the time.
func each(ctx context.Context, from, to, clients int, do func(ctx context.Context, i int) error) (time.Duration, error) {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := from; i < to && ctx.Err() == nil; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	err := group.Wait()
	return time.Since(began), err
}

func (b *bench) bareLoad(ctx context.Context, l load) (loadResult, error) {
	return b.spend(0, func() error {
		_, err := each(ctx, 0, l.instances, l.clients, func(ctx context.Context, i int) error {
			name := loadNamespace(i)
			if err := b.api.postNamespace(ctx, name, http.StatusCreated); err != nil {
				return err
			}
			for _, kind := range loadKinds {
				o := newObject(kind)
				body, err := o.owned(name)
				if err == nil {
					err = b.api.apply(ctx, o, name, body)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
}

func (b *bench) serviceLoad(ctx context.Context, l load) (loadResult, error) {
	access, err := os.ReadFile(b.api.kubeconfig)
	if err != nil {
		return loadResult{}, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	s, err := newService(ctx, b.binary)
	if err != nil {
		return loadResult{}, err
	}
	defer s.stop()
	for i := range l.regions {
		if err := s.register(ctx, regionName(i), access); err != nil {
			return loadResult{}, err
		}
	}
	if err := s.uploadLoad(ctx, loadPackageID); err != nil {
		return loadResult{}, err
	}
	instances := make([]string, l.instances)
	r, err := b.spend(s.cmd.Process.Pid, func() error {
		_, err := each(ctx, 0, l.instances, l.clients, func(ctx context.Context, i int) error {
			made, err := s.create(ctx, map[string]any{
				"cloud_region_id": regionName(i % l.regions), "csar_id": loadPackageID, "namespace": loadNamespace(i), "vnf_instance_name": "bench",
			})
			instances[i] = made.instance
			return err
		})
		return err
	})
	if err == nil {
		r.Again, err = s.recheck(ctx, instances, l.clients)
	}
	return r, err
}

func regionName(i int) string { return fmt.Sprintf("bench-%03d", i) }

const loadPackageID = "bench-many"

// uploadLoad uploads the package of an instance with an id.
func (s *service) uploadLoad(ctx context.Context, id string) error {
	archive, err := loadPackage(id)
	if err != nil {
		return err
	}
	return s.send(ctx, http.MethodPut, "/v1/packages/"+id, content{mediaType: "application/zip", bytes: archive}, nil)
}

// loadPackage returns the package of an instance, as a zip archive. The objects have the
// package's id as their version.
func loadPackage(id string) ([]byte, error) {
	metadata := &strings.Builder{}
	metadata.WriteString("name: bench-many\nresources:\n")
	files := map[string][]byte{}
	for i, kind := range loadKinds {
		o := newObject(kind)
		o.body["metadata"].(map[string]any)["annotations"] = map[string]any{"version": id}
		body, err := json.Marshal(o.body)
		if err != nil {
			return nil, err
		}
		file := strconv.Itoa(i) + ".json"
		files[file] = body
		fmt.Fprintf(metadata, "- name: stage-%d\n  wait: applied\n  manifest:\n  - %s\n", i, file)
	}
	files["metadata.yaml"] = []byte(metadata.String())
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(archive, name, files[name]); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return buffer.Bytes(), err
}
