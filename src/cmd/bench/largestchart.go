package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// The largest chart: nearly as many documents and as much output as the service accepts.
const (
	chartDocuments = 4900
	chartOutput    = 15 << 20 // bytes
	largestChart   = "bench-largest"
)

// charts measures the memory of dry runs of the largest chart: of one, and of several at once.
func charts(ctx context.Context, binary, out string, measured values) error {
	light := newLightServer()
	defer light.close()
	s, err := newService(ctx, binary)
	if err != nil {
		return err
	}
	defer s.stop()
	var text strings.Builder
	fmt.Fprintf(&text, chartsPreamble, time.Now().Format(time.DateOnly), machine(), chartDocuments, chartOutput>>20)
	if err := s.register(ctx, regionName(0), light.kubeconfig(regionName(0))); err != nil {
		return err
	}
	chart, err := packedChart(0, fmt.Appendf(nil, "{{ range $i := until %d }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"config-{{ $i }}\"}\ndata: {text: %q}\n{{ end }}",
		chartDocuments, strings.Repeat("k", chartOutput/chartDocuments-100)))
	if err != nil {
		return err
	}
	if err := s.put(ctx, largestChart, chart); err != nil {
		return err
	}
	for _, runs := range []int{1, 2, 4, 8, 32} {
		row, largest, err := s.dryRuns(ctx, runs)
		if err != nil {
			return fmt.Errorf("cannot measure %d dry runs: %w", runs, err)
		}
		switch runs {
		case 1:
			measured.set("memory of one dry run of the largest chart", mebibytes(largest))
		case 32:
			measured.set("memory of 32 at once", mebibytes(largest))
		}
		fmt.Print(row)
		text.WriteString(row)
	}
	return writeReport(out, text.String())
}

const chartsPreamble = `# Memory of charts

Written by ` + "`make bench SCENARIO=charts`" + ` on %s: %s.

A chart that is nearly as large as the service accepts, with %d objects and %d MiB of output, is rendered and compared with its region in dry runs: one, and several
at once. The region is a light API server in the process of the benchmark ([benchmarks-stored.md](benchmarks-stored.md)). The service has no other work. The goal is that it has
at most 256 MiB of memory during one dry run, and that its memory is bounded for all together.

| dry runs at once | refused with 429 | time, s | memory before, MiB | largest memory, MiB |
|--:|--:|--:|--:|--:|
`

// dryRuns does so many dry runs at once, and returns a row with the memory of the service,
// and the largest memory.
func (s *service) dryRuns(ctx context.Context, runs int) (string, int, error) {
	before, err := s.memory(ctx)
	if err != nil {
		return "", 0, err
	}
	// The kernel counts the largest memory anew: proc(5).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0); err != nil {
		return "", 0, fmt.Errorf("cannot reset the largest memory of the service: %w", err)
	}
	var refused atomic.Int64
	took, err := each(ctx, 0, runs, runs, func(ctx context.Context, i int) error {
		body := fmt.Appendf(nil, `{"cloud_region_id":%q,"csar_id":%q,"namespace":"bench-%d","vnf_instance_name":"bench-%d"}`, regionName(0), largestChart, i, i)
		err := s.send(ctx, http.MethodPost, "/v1/vnf_instances?dry_run=true", content{mediaType: "application/json", bytes: body}, nil)
		if status, ok := errors.AsType[*statusError](err); ok && status.status == http.StatusTooManyRequests {
			refused.Add(1)
			return nil
		}
		return err
	})
	if err != nil {
		return "", 0, err
	}
	after, err := s.memory(ctx)
	if err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("| %d | %d | %.1f | %s | %s |\n", runs, refused.Load(), took.Seconds(), mib(before.resident), mib(after.largest)), after.largest, nil
}
