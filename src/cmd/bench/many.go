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
	"runtime"
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

// many measures the load with the bare client and then with the service.
func (b *bench) many(ctx context.Context, kubeconfig, out string, l load) error {
	var err error
	if b.api, err = newAPIServer(kubeconfig); err != nil {
		return err
	}
	if b.version, err = b.api.version(ctx); err != nil {
		return err
	}
	floor, err := b.bareLoad(ctx, l)
	if err != nil {
		return err
	}
	fmt.Printf("bare: %.1f s\n", floor.Seconds())
	if b.service, err = startService(ctx, b.binary, kubeconfig); err != nil {
		return err
	}
	defer b.service.stop()
	took, used, err := b.serviceLoad(ctx, kubeconfig, l)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(loadReport, time.Now().Format(time.DateOnly), b.version, runtime.Version(), runtime.NumCPU(), l.instances, l.regions, l.clients,
		floor.Seconds(), took.Seconds(), took.Seconds()/floor.Seconds(), used.Seconds()*1000/float64(l.instances))
	fmt.Print(text)
	return writeReport(out, text)
}

const loadReport = `# Many instances over many regions

Written by ` + "`make bench SCENARIO=many`" + ` on %s: Kubernetes %s, %s, %d cores.

%d instances of four objects (a Secret, a ConfigMap, a Service and a Deployment, each in its own stage, without a wait for readiness), each in a namespace of
its own, over %d regions, which are kubeconfigs of one API server. %d clients make the requests. The bare client creates the namespace of an instance and
applies its four objects one after another. The service answers when all objects of an instance are applied.

| bare client, s | service, s | ratio | processor time of the service, ms per instance |
|--:|--:|--:|--:|
| %.1f | %.1f | %.2f | %.1f |
`

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

func (b *bench) bareLoad(ctx context.Context, l load) (time.Duration, error) {
	return each(ctx, 0, l.instances, l.clients, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("bench-bare-%04d", i)
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
}

func (b *bench) serviceLoad(ctx context.Context, kubeconfig string, l load) (took, used time.Duration, err error) {
	access, err := os.ReadFile(kubeconfig)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	for i := range l.regions {
		if err := b.service.register(ctx, regionName(i), access); err != nil {
			return 0, 0, err
		}
	}
	if err := b.service.uploadLoad(ctx); err != nil {
		return 0, 0, err
	}
	before, err := processorTime(b.service.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	took, err = each(ctx, 0, l.instances, l.clients, func(ctx context.Context, i int) error {
		_, err := b.service.create(ctx, map[string]any{
			"cloud_region_id": regionName(i % l.regions), "csar_id": loadPackageID, "namespace": fmt.Sprintf("bench-many-%04d", i), "vnf_instance_name": "bench",
		})
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := processorTime(b.service.cmd.Process.Pid)
	return took, after - before, err
}

func regionName(i int) string { return fmt.Sprintf("bench-%03d", i) }

const loadPackageID = "bench-many"

func (s *service) uploadLoad(ctx context.Context) error {
	archive, err := loadPackage()
	if err != nil {
		return err
	}
	return s.send(ctx, http.MethodPut, "/v1/packages/"+loadPackageID, content{"application/zip", archive}, nil)
}

// loadPackage returns the package of an instance, as a zip archive.
func loadPackage() ([]byte, error) {
	metadata := &strings.Builder{}
	metadata.WriteString("name: bench-many\nresources:\n")
	files := map[string][]byte{}
	for i, kind := range loadKinds {
		body, err := json.Marshal(newObject(kind).body)
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
