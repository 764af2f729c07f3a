package onap_test

import (
	"encoding/base64"
	"net/http/httptest"
	"testing"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

// TestSubscriptionTranscript replays what is written down of subscriptions.
func TestSubscriptionTranscript(t *testing.T) {
	t.Parallel()
	const file, kubeconfig = "../../../api/onap/subscriptions.txtar", "apiVersion: v1\nkind: Config\n"
	server := httptest.NewServer(subscribing(t, false).server)
	t.Cleanup(server.Close)
	northboundtest.Player{
		Client: northboundtest.Client(t, k8splugin.Swagger), Server: server.URL,
		Vars: map[string]string{"NAMESPACE": "edge", "KUBECONFIG_BASE64": base64.StdEncoding.EncodeToString([]byte(kubeconfig))},
	}.Play(t, file)
}
