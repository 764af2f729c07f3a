package subscriber_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
)

const starting = `{"id":"1","notificationType":"VnfLcmOperationOccurrenceNotification","subscriptionId":"s","timeStamp":"2026-01-02T03:04:05Z",
"notificationStatus":"START","operationState":"STARTING","vnfInstanceId":"v","operation":"SCALE","isAutomaticInvocation":false,"verbosity":"FULL","vnfLcmOpOccId":"o",
"_links":{"subscription":{"href":"/vnflcm/v2/subscriptions/s"},"vnfInstance":{"href":"/vnflcm/v2/vnf_instances/v"},"vnfLcmOpOcc":{"href":"/vnflcm/v2/vnf_lcm_op_occs/o"}}}`

const (
	reported = `{"id":"1","notificationType":"PerformanceInformationAvailableNotification","timeStamp":"2026-01-02T03:04:05Z","pmJobId":"j","objectType":"Vnf",
"objectInstanceId":"v","_links":{"objectInstance":{"href":"/vnflcm/v2/vnf_instances/v"},"pmJob":{"href":"/vnfpm/v2/pm_jobs/j"},"performanceReport":{"href":"/vnfpm/v2/pm_jobs/j/reports/r"}}}`
	crossed = `{"id":"1","notificationType":"ThresholdCrossedNotification","timeStamp":"2026-01-02T03:04:05Z","thresholdId":"t","crossingDirection":"UP","objectType":"Vnf",
"objectInstanceId":"v","performanceMetric":"VCpuUsageMeanVnf.v","performanceValue":1,"_links":{"objectInstance":{"href":"/vnflcm/v2/vnf_instances/v"},"threshold":{"href":"/vnfpm/v2/thresholds/t"}}}`
)

func send(t *testing.T, s *subscriber.Simulator, method, path, body string, edit func(*http.Request)) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://nfvo.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Version", "2.0.0")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	if edit != nil {
		edit(r)
	}
	resp, err := s.RoundTrip(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestReceive rejects what a subscriber that validates notifications rejects.
func TestReceive(t *testing.T) {
	t.Parallel()
	edited := func(old, replacement string) string { return strings.Replace(starting, old, replacement, 1) }
	for name, tc := range map[string]struct {
		reason string
		before string
		body   string
		edit   func(*http.Request)
		status int
	}{
		"Valid":     {"it is valid", "", starting, nil, 204},
		"Repeated":  {"it may be repeated", starting, starting, nil, 204},
		"Changed":   {"under an id there is one notification", starting, edited("SCALE", "HEAL"), nil, 400},
		"Backwards": {"a state is entered once", starting, edited(`"id":"1"`, `"id":"2"`), nil, 400},
		"Next":      {"the next state follows", starting, strings.Replace(edited(`"id":"1"`, `"id":"2"`), "STARTING", "PROCESSING", 1), nil, 204},
		"Skipped":   {"a state is missing", "", edited("STARTING", "FAILED_TEMP"), nil, 400},
		"Result":    {"the status does not match", "", edited("START\"", "RESULT\""), nil, 400},
		"Missing":   {"an attribute is missing", "", edited(`"operation":"SCALE",`, ""), nil, 400},
		"Unknown":   {"an attribute is unknown", "", edited(`"id":"1"`, `"id":"1","secret":"x"`), nil, 400},
		"Type":      {"the type is unknown", "", edited("OccurrenceNotification", "Notification"), nil, 400},
		"Link":      {"a link leads elsewhere", "", edited("vnf_instances/v", "vnf_instances/w"), nil, 400},
		"Time":      {"it has no time", "", edited("2026-01-02T", ""), nil, 400},
		"Text":      {"it is no document", "", "hello", nil, 400},
		"Two":       {"it is two documents", "", starting + "{}", nil, 400},
		"Version":   {"another version", "", starting, func(r *http.Request) { r.Header.Set("Version", "1.3.0") }, 400},
		"Media":     {"another media type", "", starting, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400},
		"Report":    {"a report", "", reported, nil, 204},
		"Of report": {"it names no report", "", strings.Replace(reported, "/reports/r", "/reports/", 1), nil, 400},
		"Job":       {"a link leads to another job", "", strings.Replace(reported, "pm_jobs/j\"", "pm_jobs/k\"", 1), nil, 400},
		"Crossing":  {"a threshold was crossed", "", crossed, nil, 204},
		"Direction": {"there are two directions", "", strings.Replace(crossed, "UP", "LEFT", 1), nil, 400},
		"Threshold": {"a link leads to another threshold", "", strings.Replace(crossed, "thresholds/t", "thresholds/u", 1), nil, 400},
		"Password":  {"it needs no credentials", "", starting, func(r *http.Request) { r.SetBasicAuth("u", "p") }, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subscriber.New(subscriber.Config{Version: "2.0.0"})
			if tc.before != "" {
				send(t, s, "POST", subscriber.Callback, tc.before, nil)
			}
			if got := send(t, s, "POST", subscriber.Callback, tc.body, tc.edit); got != tc.status {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.status)
			}
			if wrong := s.Violations(); (len(wrong) > 0) != (tc.status == 400) {
				t.Errorf("%s: violations %q", tc.reason, wrong)
			}
		})
	}
}

// TestTokens issues tokens to its client, and revokes them.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := subscriber.New(subscriber.Config{Version: "2.0.0", User: "u", Password: "p", Tokens: true})
	form := url.Values{"grant_type": {"client_credentials"}}.Encode()
	ask := func(password string) int {
		return send(t, s, "POST", subscriber.TokenPath, form, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.SetBasicAuth("u", password)
		})
	}
	get := func() int {
		return send(t, s, "GET", subscriber.Callback, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer token-1") })
	}
	for step, got := range []int{get(), ask("x"), ask("p"), get()} {
		if want := []int{401, 401, 200, 204}[step]; got != want {
			t.Errorf("step %d: %d, want %d", step, got, want)
		}
	}
	if s.Revoke(); get() != 401 {
		t.Error("a token is valid that was revoked")
	}
	if entries := s.Journal(); len(entries) != 5 || len(s.Violations()) > 0 {
		t.Errorf("journal: %+v", entries)
	}
}

// TestFaults fails requests as scripted.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := subscriber.New(subscriber.Config{Version: "2.0.0"})
	called := false
	s.Script(subscriber.Fault{Status: 503, Before: func() { called = true }}, 1)
	s.Script(subscriber.Fault{Lost: true}, 1)
	for step, want := range []int{503, 0, 204} {
		if got := send(t, s, "POST", subscriber.Callback, starting, nil); got != want {
			t.Errorf("step %d: %d, want %d", step, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Script(subscriber.Fault{Delay: 1 << 40}, 1)
	if got := send(t, s, "GET", subscriber.Callback, "", func(r *http.Request) { *r = *r.WithContext(ctx) }); got != 0 || !called {
		t.Errorf("a client that has left got %d", got)
	}
}
