package onap_test

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// TestHooksAreMasked plants secrets of an instance in its hooks, and looks for
// them wherever hooks are shown.
func TestHooksAreMasked(t *testing.T) {
	t.Parallel()
	const made = "generated-by-the-chart"
	job := func(env string) map[string]any { return map[string]any{"kind": "Job", "env": env} }
	cases := map[string]struct {
		reason string
		hook   onap.PlannedHook
		shows  string
	}{
		"Input":  {"a sensitive input is masked", onap.PlannedHook{Name: "h", Kind: "Job", Object: job("pw=" + planted + "-a")}, `"manifest":"env: '********'\nkind: Job\n"`},
		"Hidden": {"so is a value that the package made", onap.PlannedHook{Name: "h", Kind: "Job", Object: job(made)}, `"manifest":"env: '********'\nkind: Job\n"`},
		"Secret": {"a Secret is not shown at all", onap.PlannedHook{Name: "h", Kind: "Secret", Object: map[string]any{"data": "anything"}}, `"manifest":""`},
		"Plain":  {"the rest is shown", onap.PlannedHook{Name: "h", Kind: "Job", Object: job("level=info")}, `"manifest":"env: level=info\nkind: Job\n"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.sensitive = []string{"password"}
			if got := w.ask(t, "POST /v1/instance", secretive); got.status != 201 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			w.edit(func(e *engine) {
				in := e.instances["id1"]
				in.Hidden = []string{made}
				e.instances["id1"] = in
			})
			w.live.hooks = []onap.PlannedHook{tc.hook}
			for _, request := range []string{"GET /v1/instance/id1?full=true", "GET /v1/instance/id1/healthcheck"} {
				got := w.ask(t, request, "")
				if got.status != 200 || !strings.Contains(got.body, tc.shows) || strings.Contains(got.body, planted) || strings.Contains(got.body, made) {
					t.Errorf("%s: %s answers %d, want %s: %s", tc.reason, request, got.status, tc.shows, got.body)
				}
			}
		})
	}
}
