package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFaults has a region with each fault but slowness.
func TestFaults(t *testing.T) {
	t.Parallel()
	l := newLightServer()
	t.Cleanup(l.close)
	for _, name := range faultNames {
		l.fault(name, l.faultOf(name))
	}
	get := func(ctx context.Context, path string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server.URL+path, nil)
		if err != nil {
			return "", err
		}
		resp, err := l.server.Client().Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		return bufio.NewReader(resp.Body).ReadString('\n')
	}
	if event, err := get(t.Context(), "/flooding/apis/apps/v1/deployments?watch=true"); err != nil || len(event) < 1000 || !strings.Contains(event, `"kind":"Deployment"`) {
		t.Errorf("a flooding region sends %q, %v; want an event", event, err)
	}
	if list, _ := get(t.Context(), "/flooding/api/v1/secrets"); !strings.Contains(list, "SecretList") {
		t.Errorf("a flooding region answers a list by %q", list)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if answer, err := get(ctx, "/black-holed/version"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a black-holed region answers %q, %v", answer, err)
	}
}

func TestRegionRows(t *testing.T) {
	t.Parallel()
	phase := func(create time.Duration) *latencies {
		var l latencies
		l.add(createRequest, create*time.Millisecond)
		l.add(readRequest, time.Millisecond)
		return &l
	}
	got := regionRows([2][]*latencies{{phase(10), phase(20), phase(20), phase(20)}, {phase(15), phase(25), phase(25), phase(200)}})
	want := "| create an instance | 20.0 | 25.0 | 20.0 | 200.0 | +38 % | +50 % |\n| read an instance | 1.0 | 1.0 | 1.0 | 1.0 | +0 % | +0 % |\n"
	if got != want {
		t.Errorf("the rows are %q, want %q", got, want)
	}
}
