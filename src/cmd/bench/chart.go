package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// The ways to install a chart and to delete it again.
const (
	chartWay       = "d"
	helmWay        = "e"
	removeWay      = "removal by the service"
	bareRemovalWay = "bare removal"
)

// mostOfAChart is the largest number of objects that is measured as a chart.
// With more objects, helm and the deletions would take most of an hour.
const mostOfAChart = 100

// chartOf writes the set's objects as a packaged chart, as helm package does.
func (s objectSet) chartOf() (path string, content []byte, err error) {
	templates := make([][]byte, len(s.objects))
	for i, o := range s.objects {
		if templates[i], err = json.Marshal(o.body); err != nil {
			return "", nil, err
		}
	}
	if content, err = packedChart(s.size, templates...); err != nil {
		return "", nil, err
	}
	// Not in the folder of the objects, which kubectl applies as a whole.
	path = filepath.Clean(s.folder) + ".tgz"
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", nil, fmt.Errorf("cannot save the chart: %w", err)
	}
	return path, content, nil
}

// packedChart returns a packaged chart with templates.
func packedChart(version int, templates ...[]byte) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	var err error
	put := func(name string, content []byte) {
		if err == nil {
			err = files.WriteHeader(&tar.Header{Name: "bench/" + name, Mode: 0o644, Size: int64(len(content))})
		}
		if err == nil {
			_, err = files.Write(content)
		}
	}
	put("Chart.yaml", fmt.Appendf(nil, "apiVersion: v2\nname: bench\nversion: 1.0.%d\n", version))
	for i, text := range templates {
		put(fmt.Sprintf("templates/%04d.yaml", i), text)
	}
	if err = errors.Join(err, files.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("cannot pack a chart: %w", err)
	}
	return packed.Bytes(), nil
}

// measureCharts compares the service with helm install, and its deletion with
// direct requests.
func (b *bench) measureCharts(ctx context.Context, set objectSet, r *result, rounds int) error {
	path, content, err := set.chartOf()
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	if err := b.service.put(ctx, chartID(set), content); err != nil {
		return err
	}
	for round := range rounds {
		order := []func(context.Context, objectSet, string) (map[string]time.Duration, error){b.byService, b.byHelm, b.byHand}
		for i := range order {
			times, err := order[(round+i)%len(order)](ctx, set, path)
			if err != nil {
				return err
			}
			for way, took := range times {
				r.times[way] = append(r.times[way], took)
			}
			if err := b.api.clear(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func chartID(set objectSet) string { return fmt.Sprintf("bench-chart-%d", set.size) }

// byService installs the chart by one request, waits until it is ready, and
// deletes it by another.
func (b *bench) byService(ctx context.Context, set objectSet, _ string) (map[string]time.Duration, error) {
	up, err := b.service.create(ctx, map[string]any{
		"cloud_region_id": "sandbox", "csar_id": chartID(set), "namespace": namespace, "vnf_instance_name": "bench", "wait": "applied",
	})
	if err != nil {
		return nil, err
	}
	if err := b.service.send(ctx, http.MethodGet, "/v1/operations/"+up.operation+"/events", content{}, nil); err != nil {
		return nil, err
	}
	if err := b.settled(ctx, set); err != nil {
		return nil, err
	}
	began := time.Now()
	err = b.service.send(ctx, http.MethodDelete, "/v1/vnf_instances/"+up.instance, content{}, nil)
	return map[string]time.Duration{chartWay: up.took, removeWay: time.Since(began)}, err
}

// byHelm runs helm install, which returns when everything is applied.
func (b *bench) byHelm(ctx context.Context, _ objectSet, chart string) (map[string]time.Duration, error) {
	helm := func(args ...string) error {
		cmd := exec.CommandContext(ctx, b.helm, append([]string{"--kubeconfig", b.api.kubeconfig, "--namespace", namespace}, args...)...)
		home := filepath.Dir(chart)
		cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run helm %s: %w: %s", args[0], err, output)
		}
		return nil
	}
	began := time.Now()
	if err := helm("install", "bench", chart); err != nil {
		return nil, err
	}
	took := time.Since(began)
	return map[string]time.Duration{helmWay: took}, helm("uninstall", "bench")
}

// byHand applies the objects, waits until they are ready, and deletes each by a
// separate request.
func (b *bench) byHand(ctx context.Context, set objectSet, _ string) (map[string]time.Duration, error) {
	if _, err := b.bare(ctx, set); err != nil {
		return nil, err
	}
	if err := b.settled(ctx, set); err != nil {
		return nil, err
	}
	began := time.Now()
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(b.workers)
	for _, o := range set.objects {
		group.Go(func() error {
			policy := "Foreground"
			if o.kind == "ConfigMap" || o.kind == "Secret" { // as the service does: they have no dependents
				policy = "Background"
			}
			path := fmt.Sprintf(o.path, namespace) + "/" + o.name + "?propagationPolicy=" + policy
			status, answer, err := b.api.do(within, http.MethodDelete, path, "", nil)
			if err == nil && status >= http.StatusBadRequest {
				err = fmt.Errorf("cannot delete %s: status %d: %s", o.name, status, answer)
			}
			return err
		})
	}
	err := group.Wait()
	for _, path := range []string{"/apis/apps/v1/namespaces/" + namespace + "/deployments", "/api/v1/namespaces/" + namespace + "/services"} {
		if err == nil {
			err = b.api.pollUntil(ctx, path+"?limit=1", pollInterval, none)
		}
	}
	return map[string]time.Duration{bareRemovalWay: time.Since(began)}, err
}

// settled waits until every Deployment has its pod, because an earlier deletion
// would have less to delete.
func (b *bench) settled(ctx context.Context, set objectSet) error {
	for _, o := range set.objects {
		if o.kind != "Deployment" {
			continue
		}
		ready := func(_ int, answer []byte) bool { return bytes.Contains(answer, []byte(`"readyReplicas":1`)) }
		if err := b.api.pollUntil(ctx, fmt.Sprintf(o.path, namespace)+"/"+o.name, pollInterval, ready); err != nil {
			return err
		}
	}
	return nil
}

const chartHeader = `
| objects | d | e | e/d | removal by the service | bare removal | overhead |
|--:|--:|--:|--:|--:|--:|--:|
`

func (r result) chartRow() string {
	return fmt.Sprintf("| %d | %s | %s | %.2f | %s | %s | %s |", r.size, ms(r.median(chartWay)), ms(r.median(helmWay)),
		r.ratio(helmWay, chartWay),
		ms(r.median(removeWay)), ms(r.median(bareRemovalWay)), ms(r.median(removeWay)-r.median(bareRemovalWay)))
}
