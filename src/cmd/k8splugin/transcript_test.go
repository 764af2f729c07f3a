package main

import (
	"encoding/base64"
	"path/filepath"
	"testing"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

// TestTranscripts replays the transcripts of every API against the whole service
// and the sandbox; every answer is held against swagger.yaml, too.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	kubeconfig := clustertest.Kubeconfig(t)
	for _, file := range transcripts(t) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s := startBareService(t, func(c *Config) { c.CallbackAllow = "127.0.0.1" })
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

func transcripts(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, api := range []string{"native", "onap"} {
		files, err := filepath.Glob("../../../api/" + api + "/*.txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("no transcripts of the %s API: %v", api, err)
		}
		all = append(all, files...)
	}
	return all
}
