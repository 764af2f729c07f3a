package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rechecks are the times until a service has checked all instances again.
type rechecks struct {
	Restart time.Duration // from the start of the process until the health of each instance is known
	Reapply time.Duration // of updates of all instances to the package that they have
}

// recheck restarts the service and waits until it knows the health of each instance. Then
// it updates all instances to the package that they have.
func (s *service) recheck(ctx context.Context, instances []string, clients int) (rechecks, error) {
	var r rechecks
	s.end()
	began := time.Now()
	if _, err := s.start(ctx); err != nil {
		return r, err
	}
	for known := false; !known; {
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return r, err
		}
		n, err := s.sum(ctx, "k8splugin_instances{", `health="unknown"`)
		if err != nil {
			return r, err
		}
		known = n == len(instances)
	}
	r.Restart = time.Since(began)
	var err error
	r.Reapply, err = each(ctx, 0, len(instances), clients, func(ctx context.Context, i int) error {
		operation, err := s.update(ctx, instances[i], loadPackageID)
		if err != nil {
			return err
		}
		return s.ended(ctx, operation)
	})
	return r, err
}

// sum returns the sum of a metric of the service, except of the lines with a label, if that is
// not empty.
func (s *service) sum(ctx context.Context, metric, except string) (int, error) {
	var metrics []byte
	if err := s.send(ctx, http.MethodGet, "/metrics", content{}, &metrics); err != nil {
		return 0, err
	}
	n := 0
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, metric) && (except == "" || !strings.Contains(line, except)) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read the metric %s: %w", metric, err)
			}
			n += int(value)
		}
	}
	return n, nil
}

func (r rechecks) row(count int) string {
	return fmt.Sprintf("| %d | **the service checks all again: %.1f s after its restart; it updates all in %.1f s** | | | | | | |\n", count, r.Restart.Seconds(), r.Reapply.Seconds())
}
