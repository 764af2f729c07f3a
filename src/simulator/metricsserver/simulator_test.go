package metricsserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/simulator/metricsserver"
)

const pods = "/apis/metrics.k8s.io/v1beta1/namespaces/n/pods"

// TestSimulator returns the measurements of a namespace, and rejects other requests.
func TestSimulator(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, method, target, accept string
		status                         int
		want                           []string
	}{
		"All":       {"the pods of the namespace", "GET", pods, "application/json", 200, []string{"a", "b"}},
		"Selected":  {"those with the labels", "GET", pods + "?labelSelector=app%3Dx&limit=100", "application/json", 200, []string{"a"}},
		"Method":    {"measurements are not written", "POST", pods, "application/json", 405, nil},
		"Path":      {"the nodes are not simulated", "GET", "/apis/metrics.k8s.io/v1beta1/nodes", "application/json", 404, nil},
		"Version":   {"there is one version", "GET", "/apis/metrics.k8s.io/v1/namespaces/n/pods", "application/json", 404, nil},
		"Parameter": {"the parameter is unknown", "GET", pods + "?watch=true", "application/json", 400, nil},
		"Selector":  {"sets are not simulated", "GET", pods + "?labelSelector=!app", "application/json", 400, nil},
		"Media":     {"the response is JSON", "GET", pods, "text/plain", 406, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := metricsserver.New()
			for name, label := range map[string]string{"a": "x", "b": "y"} {
				s.Measure(metricsserver.Pod{Namespace: "n", Name: name, Labels: map[string]string{"app": label}})
			}
			s.Measure(metricsserver.Pod{Namespace: "other", Name: "c"})
			got, status := ask(t, s, tc.method, tc.target, tc.accept)
			if d := cmp.Diff(tc.want, got); d != "" || status != tc.status {
				t.Errorf("%s: %d, want %d: -want +got:\n%s", tc.reason, status, tc.status, d)
			}
			if wrong := s.Violations(); (len(wrong) > 0) != (tc.status != 200) || len(s.Requests()) > 0 != (tc.status == 200) {
				t.Errorf("%s: violations %q", tc.reason, wrong)
			}
		})
	}
}

// TestFaults makes requests fail.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := metricsserver.New()
	s.Script(metricsserver.Fault{Status: 503}, -1)
	if _, status := ask(t, s, "GET", pods, "application/json"); status != 503 {
		t.Errorf("the server is down: %d", status)
	}
	s.Clear()
	if _, status := ask(t, s, "GET", pods, "application/json"); status != 200 || len(s.Violations()) > 0 {
		t.Errorf("the server is up: %d", status)
	}
}

// ask sends a request, and returns the names of the pods in the response.
func ask(t *testing.T, s *metricsserver.Simulator, method, target, accept string) (names []string, status int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Items {
		names = append(names, one.Metadata.Name)
	}
	return names, w.Code
}
