package main

import (
	"encoding/base64"
	"path/filepath"
	"testing"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

// TestTranscripts replays api/native against the whole service and the sandbox;
// every answer is held against swagger.yaml, too.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	files, err := filepath.Glob("../../../api/native/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	kubeconfig := clustertest.Kubeconfig(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			northboundtest.Player{
				Client: northboundtest.Client(t, k8splugin.Swagger), Server: s.url,
				Vars: map[string]string{
					"KUBECONFIG": string(kubeconfig), "KUBECONFIG_BASE64": base64.StdEncoding.EncodeToString(kubeconfig),
					"NAMESPACE": clustertest.Namespace(t),
				},
			}.Play(t, file)
		})
	}
}
