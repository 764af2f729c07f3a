package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
)

// TestVNFNotifications subscribes to the life of VNFs as an NFVO does, creates and deletes
// a VNF, and receives the notifications in order.
func TestVNFNotifications(t *testing.T) {
	t.Parallel()
	to := subscriber.New(subscriber.Config{Version: "2.0.0", User: "nfvo", Password: "s3cret-callback", Links: "https://vnfm.example"})
	callback := httptest.NewServer(to)
	t.Cleanup(callback.Close)
	s := startBareService(t, func(c *Config) {
		c.CallbackAllow, c.VNFNotify = "127.0.0.1", vnfNotifySettings{Endpoint: "https://vnfm.example", Test: true}
	})
	ask := func(method, path string, body any) answer {
		return s.send(t.Context(), method, path, body, "Version", "2.0.0", "Content-Type", "application/json")
	}
	request := map[string]any{"callbackUri": callback.URL + subscriber.Callback, "authentication": map[string]any{
		"authType": []string{"BASIC"}, "paramsBasic": map[string]string{"userName": "nfvo", "password": "wr0ng"},
	}}
	refused := s.want(http.StatusUnprocessableEntity, ask("POST", "/vnflcm/v2/subscriptions", request))
	if strings.Contains(string(refused.body), "wr0ng") {
		t.Errorf("the password is in %s", refused.body)
	}
	request["authentication"].(map[string]any)["paramsBasic"].(map[string]string)["password"] = "s3cret-callback"
	id := s.want(http.StatusCreated, ask("POST", "/vnflcm/v2/subscriptions", request)).text(t, "id")

	pkg := s.want(http.StatusCreated, s.do("POST", "/vnfpkgm/v1/vnf_packages", map[string]any{})).text(t, "id")
	s.want(http.StatusAccepted, s.do("PUT", "/vnfpkgm/v1/vnf_packages/"+pkg+"/package_content", archive(csartest.Files(map[string]string{"Files/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}))))
	vnfd := s.want(http.StatusOK, s.do("GET", "/vnfpkgm/v1/vnf_packages/"+pkg, nil)).text(t, "vnfdId")
	made, err := s.parts.sol003.Create(t.Context(), nf.VNF{Name: "one", VNFD: nf.VNFD{ID: vnfd}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.parts.sol003.Delete(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	want := []string{made.ID + " VnfIdentifierCreationNotification " + id, made.ID + " VnfIdentifierDeletionNotification " + id}
	var got []string
	for n := 0; len(slices.Compact(slices.Clone(got))) < len(want) && n < 1000; n++ {
		for _, e := range to.Journal() {
			if e.Method == http.MethodPost && e.Status == http.StatusNoContent {
				got = append(got, fmt.Sprint(e.Document["vnfInstanceId"], " ", e.Document["notificationType"], " ", e.Document["subscriptionId"]))
			}
		}
		delay.For(t.Context(), 50*time.Millisecond, nil)
	}
	if d := cmp.Diff(want, slices.Compact(got)); d != "" {
		t.Errorf("the notifications: -want +got:\n%s", d)
	}
	if wrong := to.Violations(); len(wrong) > 0 {
		t.Errorf("violations: %q", wrong)
	}
	if metrics := s.want(http.StatusOK, s.do("GET", "/metrics", nil)); !strings.Contains(string(metrics.body), `k8splugin_notification_targets{state="closed"} 1`) {
		t.Error("the callback is not a target in the metrics")
	}
	s.want(http.StatusNoContent, ask("DELETE", "/vnflcm/v2/subscriptions/"+id, nil))
}

// TestVNFAlarmMetric counts the alarms of a service that has none.
func TestVNFAlarmMetric(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	until(t, "the alarms are counted", func() bool {
		metrics := string(s.want(http.StatusOK, s.do("GET", "/metrics", nil)).body)
		return strings.Contains(metrics, `k8splugin_vnf_alarms{acknowledged="false",severity="critical"} 0`) && strings.Count(metrics, "\nk8splugin_vnf_alarms{") == 4
	})
}

// TestVNFNotifySettings rejects settings that cannot be used.
func TestVNFNotifySettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		settings vnfNotifySettings
		wrong    string
	}{
		"None":        {"links are paths", vnfNotifySettings{}, ""},
		"Endpoint":    {"links are URLs", vnfNotifySettings{Endpoint: "https://vnfm.example:9015"}, ""},
		"Path":        {"the paths of links are those of the APIs", vnfNotifySettings{Endpoint: "https://vnfm.example/x"}, "vnf-endpoint"},
		"Password":    {"links are for every subscriber", vnfNotifySettings{Endpoint: "https://u:p@vnfm.example"}, "vnf-endpoint"},
		"Certificate": {"it needs a key", certified("cert.pem", ""), "vnf-callback-cert-file, vnf-callback-key-file"},
		"Key":         {"it needs a certificate", certified("", "key.pem"), "vnf-callback-cert-file, vnf-callback-key-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			tc.settings.validate(func(name, _ string, _ ...any) { got += name })
			if got != tc.wrong {
				t.Errorf("%s: %q is wrong, want %q", tc.reason, got, tc.wrong)
			}
		})
	}
}

func certified(certificate, key string) (out vnfNotifySettings) {
	out.Files.Certificate, out.Files.Key = certificate, key
	return out
}
