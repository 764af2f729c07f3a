package onap_test

import (
	"encoding/base64"
	"net/http/httptest"
	"testing"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

// TestInstanceTranscripts replays what is written down of instances, of their
// configurations, health checks and moves, and of workloads.
func TestInstanceTranscripts(t *testing.T) {
	t.Parallel()
	const kubeconfig = "apiVersion: v1\nkind: Config\n"
	for _, name := range []string{"instances", "configs", "healthchecks", "workloads", "moves"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.live.data = true
			server := httptest.NewServer(w.server)
			t.Cleanup(server.Close)
			northboundtest.Player{
				Client: northboundtest.Client(t, k8splugin.Swagger), Server: server.URL,
				Vars: map[string]string{
					"NAMESPACE": "edge", "KUBECONFIG": kubeconfig, "KUBECONFIG_BASE64": base64.StdEncoding.EncodeToString([]byte(kubeconfig)),
				},
			}.Play(t, "../../../api/onap/"+name+".txtar")
		})
	}
}
