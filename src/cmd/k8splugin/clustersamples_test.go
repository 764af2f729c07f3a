package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestClusterSamples has the API server check the objects of the samples, with the
// definitions of their providers.
func TestClusterSamples(t *testing.T) {
	t.Parallel()
	clustertest.ClusterAPI(t, filepath.Join("..", "..", "..", "tools", "clusterapi"))
	s := startService(t)
	for name, parameters := range map[string]map[string]any{
		"docker":    {},
		"openstack": {"clouds_yaml": "clouds: {}", "external_network": "6c1b3b4e-0a0c-4c53-9a0c-0a3f6c0e6b51", "image": "ubuntu", "ssh_key": "operator"},
	} {
		files := map[string]string{}
		folder := filepath.Join("..", "..", "..", "deployments", "samples", "clusters", name)
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[entry.Name()] = string(text)
		}
		s.upload("cluster-"+name, files)
		preview := s.want(http.StatusOK, s.do("POST", "/v1/vnf_instances?dry_run=true", map[string]any{
			"cloud_region_id": "sandbox", "csar_id": "cluster-" + name, "namespace": "default", "parameters": parameters, "validate": "server",
			"workload_clusters": []any{map[string]any{"cluster": "edge", "cloud_region_id": "edge"}},
		}))
		changes, _ := preview.field(t, "changes").([]any)
		if len(changes) < 6 {
			t.Errorf("the sample %s has only %d objects", name, len(changes))
		}
	}
}

// TestReceiverSample hands a kubeconfig over to the sample of a receiver.
func TestReceiverSample(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	url, _ := startReceiver(t, "clusters", "--folder", folder)
	for body, want := range map[string]int{
		`{"cloud_region_id": "edge-1", "kubeconfig": "a3ViZQ=="}`:    http.StatusNoContent,
		`{"cloud_region_id": "../edge-1", "kubeconfig": "a3ViZQ=="}`: http.StatusBadRequest,
		`{"cloud_region_id": "edge-2"}`:                              http.StatusBadRequest,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: status %d, want %d", body, answer.StatusCode, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(folder, "edge-1.kubeconfig")); err != nil || string(got) != "kube" {
		t.Errorf("the receiver has written %q: %v", got, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the receiver has written %v: %v", entries, err)
	}
}

// startReceiver starts the sample receiver in a folder of the samples, and returns its URL and
// what it prints.
func startReceiver(t *testing.T, folder string, args ...string) (url string, printed *bufio.Reader) {
	t.Helper()
	program := filepath.Join("..", "..", "..", "deployments", "samples", folder, "receiver.py")
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{program, "--listen", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test kills it
	printed = bufio.NewReader(out)
	line, err := printed.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(strings.TrimPrefix(line, "listening on port ")), printed
}
