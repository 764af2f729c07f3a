// Package clustertest provides a real API server for tests: the sandbox, whose
// admin kubeconfig is named by the environment variable K8SPLUGIN_SANDBOX. It
// provides unique namespaces, and a Recorder, a proxy in front of the API
// server that records requests and injects faults.
//
// The package never skips a test: without a sandbox, the test fails with
// instructions. It does not start a sandbox, and does not wait for deletions.
package clustertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Variable is the environment variable with the path of the sandbox's admin
// kubeconfig.
const Variable = "K8SPLUGIN_SANDBOX"

// Kubeconfig returns the sandbox's admin kubeconfig, or fails the test if there
// is no sandbox.
func Kubeconfig(t testing.TB) []byte {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, or start `make sandbox` and set it to the sandbox's kubeconfig", Variable)
	}
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("cannot read the sandbox's kubeconfig, which %s names: %v", Variable, err)
	}
	return kubeconfig
}

// Namespace returns a unique namespace name. It does not create the namespace;
// if the namespace exists when the test ends, it is deleted.
func Namespace(t testing.TB) string {
	t.Helper()
	cfg := config(t)
	name := "test-" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := remove(ctx, cfg, "/api/v1/namespaces/"+name); err != nil {
			t.Errorf("cannot remove namespace %s: %v", name, err)
		}
	})
	return name
}

// config returns the sandbox's admin client configuration.
func config(t testing.TB) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(Kubeconfig(t))
	if err != nil {
		t.Fatalf("cannot use the sandbox's kubeconfig: %v", err)
	}
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg
}

func remove(ctx context.Context, cfg *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, strings.TrimSuffix(cfg.Host, "/")+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotFound {
		return fmt.Errorf("the API server answers %s", resp.Status)
	}
	return nil
}
