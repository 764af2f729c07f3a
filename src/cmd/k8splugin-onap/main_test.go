package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommands executes command lines that fail before they start something.
func TestCommands(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
		want   string // in the error
	}{
		"kubeconfig":   {"a cluster is required", "up", `"kubeconfig"`},
		"no file":      {"the kubeconfig must exist", "up --kubeconfig /none/at/all", "cannot read --kubeconfig"},
		"flow":         {"a flow has a service and an A&AI", "so heat --region r --tenant t", `"aai", "service"`},
		"URL":          {"a service has a URL", "so heat --region r --tenant t --service a --aai http://b", "the URL of the service"},
		"unknown flow": {"a flow is one of four", "so cloud --region r", "unknown flag"},
		"links":        {"networks are in a file", "so network --region r --tenant t --service http://127.0.0.1:1 --aai http://127.0.0.1:1", "cannot read --links"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), strings.Fields(tc.args), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestFlowNamesTheRequest runs a flow against servers that have nothing.
func TestFlowNamesTheRequest(t *testing.T) {
	t.Parallel()
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	var out bytes.Buffer
	err := run(t.Context(), []string{"so", "native", "--service", nothing.URL, "--aai", nothing.URL, "--region", "r", "--tenant", "t"}, &out, io.Discard)
	if want := "SO plans: GET /aai/v24/cloud-infrastructure/cloud-regions/cloud-region/k8s/r/tenants/tenant/t: A&AI does not have it"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestServiceThatEnds starts programs that do not listen.
func TestServiceThatEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho 'cannot open the store' >&2\nexit 4\n"), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	if _, err := startService(t.Context(), program, dir, nil); err == nil || !strings.Contains(err.Error(), "cannot open the store") {
		t.Errorf("a program that fails: %v", err)
	}
	if _, err := startService(t.Context(), filepath.Join(dir, "none"), dir, nil); err == nil {
		t.Error("a program that does not exist")
	}
}
