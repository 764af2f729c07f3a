package northbound_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

func TestService(t *testing.T) {
	t.Parallel()
	up := func(context.Context) error { return nil }
	down := func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			return errors.New("a check without a deadline")
		}
		return errors.New("no leader")
	}
	cases := map[string]struct {
		reason string
		checks map[string]northbound.Check
		path   string
		status int
		media  string
		want   string
	}{
		"Healthz":     {"the process is alive whatever it depends on", map[string]northbound.Check{"store": down}, "/healthz", 200, "text/plain; charset=utf-8", "ok\n"},
		"Ready":       {"every check is well", map[string]northbound.Check{"store": up}, "/readyz", 200, "application/json", `{"ready":true,"checks":{"store":"ok"}}`},
		"NotReady":    {"the failing check is named", map[string]northbound.Check{"store": down, "engine": up}, "/readyz", 503, "application/json", `{"ready":false,"checks":{"engine":"ok","store":"no leader"}}`},
		"Metrics":     {"the request itself is in flight", nil, "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "k8splugin_http_requests_in_flight 1"},
		"OpenAPIYAML": {"the file as it is", nil, "/openapi.yaml", 200, "application/yaml", string(k8splugin.Swagger)},
		"OpenAPIJSON": {"the same as JSON", nil, "/openapi.json", 200, "application/json", `"openapi":"3.0.3"`},
		"SwaggerYAML": {"its earlier name", nil, "/swagger.yaml", 200, "application/yaml", string(k8splugin.Swagger)},
		"SwaggerJSON": {"its earlier name", nil, "/swagger.json", 200, "application/json", `"openapi":"3.0.3"`},
		"Docs":        {"one page", nil, "/docs", 200, "text/html; charset=utf-8", "<!doctype html>"},
	}
	server := func(checks map[string]northbound.Check) string {
		s := httptest.NewServer(handler(t, northbound.Config{Checks: checks, Registry: prometheus.NewRegistry()}))
		t.Cleanup(s.Close)
		return s.URL
	}
	client := northboundtest.Client(t, k8splugin.Swagger)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			res, err := client.Get(server(c.checks) + c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != c.media || !strings.Contains(string(body), c.want) {
				t.Errorf("%s: %s is %s %s\n%s", c.reason, c.path, res.Status, res.Header.Get("Content-Type"), body)
			}
		})
	}
}

func TestDocsIsOneDocument(t *testing.T) {
	t.Parallel()
	w := serve(handler(t, northbound.Config{}), get("/docs"))
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Count(policy, "'sha256-") != 2 {
		t.Errorf("the policy lets more in than the page's own style and script: %s", policy)
	}
	page := w.Body.String()
	for _, foreign := range []string{"https://", "http://", "src=", "@import", "/*docs."} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page holds %q: it must need nothing but itself and /openapi.json", foreign)
		}
	}
	if !strings.Contains(page, "/openapi.json") || !strings.Contains(page, "<main") {
		t.Error("the page is not the page")
	}
	named := regexp.MustCompile(`byID\("(\w+)"\)`).FindAllStringSubmatch(page, -1)
	for _, name := range named {
		if !strings.Contains(page, ` id="`+name[1]+`"`) {
			t.Errorf("the script needs an element %q", name[1])
		}
	}
	if len(named) == 0 {
		t.Error("the script needs no elements")
	}
}

func TestDocsShowsTheVersion(t *testing.T) {
	t.Parallel()
	page := serve(handler(t, northbound.Config{Version: "v1.2.3<x"}), get("/docs")).Body.String()
	if !strings.Contains(page, "<h1>k8splugin <small>v1.2.3&lt;x ") {
		t.Errorf("the page does not show the version of the program:\n%.1000s", page)
	}
}

func TestRootLeadsToDocs(t *testing.T) {
	t.Parallel()
	h := handler(t, northbound.Config{})
	if w := serve(h, get("/")); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/docs" {
		t.Errorf("the root: %d to %q", w.Code, w.Header().Get("Location"))
	}
	for _, path := range []string{"//", "/docs/", "/index.html"} {
		if w := serve(h, get(path)); w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d, %s", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
}
