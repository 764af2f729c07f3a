package main

import (
	"bytes"
	"context"
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
		"links":        {"networks are in a file", "so network --package p --links /none --region r --tenant t --service http://127.0.0.1:1 --aai http://127.0.0.1:1", "cannot read --links"},
		"no links":     {"a flow of networks has them", "so network --region r --tenant t --service http://127.0.0.1:1 --aai http://127.0.0.1:1", `"links", "package"`},
		"no package":   {"a VNF has a package", "so native --region r --tenant t --service http://127.0.0.1:1 --aai http://127.0.0.1:1", `"package"`},
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
	err := run(t.Context(), []string{"so", "native", "--service", nothing.URL, "--aai", nothing.URL, "--region", "r", "--tenant", "t", "--package", "p"}, &out, io.Discard)
	if want := "SO plans: GET /aai/v24/cloud-infrastructure/cloud-regions/cloud-region/k8s/r/tenants/tenant/t: A&AI does not have it"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestServiceThatEnds starts programs that do not listen. It must not be parallel: a file
// cannot be executed while a process that another test starts has it open for writing.
func TestServiceThatEnds(t *testing.T) {
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

// TestLinks reads files with networks.
func TestLinks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, text string
		want         string // in the error; empty: none
	}{
		"one":      {"one network is enough", `{"Network": {"Name": "lan", "Driver": "multus", "Spec": {"type": "bridge"}, "VLANs": ["7"]}}`, ""},
		"misspelt": {"a field that is not known would be without effect", `{"Network": {"Name": "lan", "Driver": "multus", "Vlan": 7}}`, `unknown field "Vlan"`},
		"empty":    {"there is nothing to create", `{}`, "no Name"},
		"driver":   {"a network has a driver", `{"Network": {"Name": "lan"}}`, "no Driver"},
		"no JSON":  {"it is JSON", "Network: x", "invalid character"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "links.json")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			links, err := readLinks(file)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || err == nil && links.Network.VLANs[0] != "7" {
				t.Errorf("%s: %+v, %v", tc.reason, links, err)
			}
		})
	}
}

// TestUp starts the simulators and a program in the place of the service, and ends as
// Ctrl-C does.
func TestUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // one is executed
			t.Fatal(err)
		}
		return file
	}
	args, ended := filepath.Join(dir, "args"), filepath.Join(dir, "ended")
	program := write("program", `#!/bin/sh
sleep 600 >/dev/null 2>&1 &
trap 'kill $!; echo drained >'`+ended+`'; exit 0' TERM
echo "$@" >`+args+`
echo '{"msg": "service listening", "address": "127.0.0.1:1"}' >&2
wait
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &watched{line: "service", seen: cancel}
	err := run(ctx, []string{"up", "--once", "--kubeconfig", write("kubeconfig", "apiVersion: v1\nkind: Config\n"), "--program", program, "--sample", "../../../deployments/samples/vfw-onap"}, out, io.Discard)
	if err != nil {
		t.Errorf("an interrupted program fails: %v", err)
	}
	for _, name := range []string{"A&AI", "SDC", "Kafka", "service"} {
		if !strings.Contains("\n"+out.text.String(), "\n"+name+" ") {
			t.Errorf("the output does not have the address of %s:\n%s", name, out.text.String())
		}
	}
	given, err := os.ReadFile(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{"serve --listen 127.0.0.1:0", "--aai-write", "--sdc-mode"} {
		if !strings.Contains(string(given), arg) {
			t.Errorf("the service is started without %s: %s", arg, given)
		}
	}
	if text, err := os.ReadFile(ended); err != nil || string(text) != "drained\n" {
		t.Errorf("the service must be able to drain: %q, %v", text, err)
	}
}

// watched is an output that calls seen after a line that begins with a text.
type watched struct {
	text bytes.Buffer
	line string
	seen func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if strings.HasPrefix(string(p), w.line) {
		w.seen()
	}
	return n, err
}
