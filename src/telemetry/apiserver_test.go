package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestPaths(t *testing.T) {
	cases := map[string]struct {
		reason   string
		method   string
		url      string
		want     string // verb and what it is about
		template string
	}{
		"Core":            {"the core group has no name", "GET", "/api/v1/namespaces/blue/pods/web-1", "get v1/pods", "/api/v1/namespaces/{namespace}/pods/{name}"},
		"Group":           {"others have", "POST", "/apis/apps/v1/namespaces/blue/deployments", "create apps/v1/deployments", "/apis/apps/v1/namespaces/{namespace}/deployments"},
		"ClusterScoped":   {"some objects are in no namespace", "DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader", "delete rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"},
		"List":            {"without a name all are meant", "GET", "/api/v1/namespaces/blue/configmaps?limit=500&continue=watch", "list v1/configmaps", "/api/v1/namespaces/{namespace}/configmaps"},
		"ListAll":         {"of all namespaces", "GET", "/api/v1/configmaps", "list v1/configmaps", "/api/v1/configmaps"},
		"Collection":      {"or removed", "DELETE", "/api/v1/namespaces/blue/configmaps", "deletecollection v1/configmaps", "/api/v1/namespaces/{namespace}/configmaps"},
		"Status":          {"a part of an object", "PUT", "/apis/apps/v1/namespaces/blue/deployments/web/status", "update apps/v1/deployments/status", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status"},
		"Namespace":       {"a namespace is an object", "GET", "/api/v1/namespaces/blue", "get v1/namespaces", "/api/v1/namespaces/{name}"},
		"NamespaceStatus": {"with parts", "PUT", "/api/v1/namespaces/blue/finalize", "update v1/namespaces/finalize", "/api/v1/namespaces/{name}/finalize"},
		"Namespaces":      {"of which there are many", "GET", "/api/v1/namespaces", "list v1/namespaces", "/api/v1/namespaces"},
		"Watch":           {"a watch is asked for by the query", "GET", "/api/v1/pods?watch=true", "watch v1/pods", "/api/v1/pods"},
		"WatchOne":        {"in both spellings", "GET", "/api/v1/pods?fieldSelector=x&watch=1", "watch v1/pods", "/api/v1/pods"},
		"WatchNot":        {"or not", "GET", "/api/v1/pods?watch=false", "list v1/pods", "/api/v1/pods"},
		"WatchOld":        {"or by the path, as it was once", "GET", "/api/v1/watch/namespaces/blue/pods", "watch v1/pods", "/api/v1/namespaces/{namespace}/pods"},
		"Apply":           {"a patch may be an apply", "PATCH", "/api/v1/namespaces/blue/configmaps/a", "apply v1/configmaps", "/api/v1/namespaces/{namespace}/configmaps/{name}"},
		"Proxied":         {"a server may lie behind another", "GET", "/k8s/clusters/c-1/api/v1/pods", "list v1/pods", "/api/v1/pods"},
		"Version":         {"a server has a version", "GET", "/version", "get /version", "/version"},
		"Discovery":       {"and says what it serves", "GET", "/apis/apps/v1", "get /apis", "/apis"},
		"DiscoveryCore":   {"in both places", "GET", "/api", "get /api", "/api"},
		"OpenAPI":         {"and how", "GET", "/openapi/v3/apis/apps/v1", "get /openapi", "/openapi"},
		"Root":            {"the root is a path, too", "GET", "/", "get /", "/"},
		"Else":            {"nobody knows what another path may name", "GET", "/blue/secret-name", "get /", "/"},
		"Method":          {"nor another method", "BREW", "/api/v1/pods", "other v1/pods", "/api/v1/pods"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "https://east.example"+tc.url, nil)
			r.Header.Set("Content-Type", "application/apply-patch+yaml")
			p := readPath(r.URL.Path)
			if got := verbOf(r, p) + " " + p.what(); got != tc.want {
				t.Errorf("%s: it is %q, want %q", tc.reason, got, tc.want)
			}
			if got := p.template(); got != tc.template {
				t.Errorf("%s: the template is %q, want %q", tc.reason, got, tc.template)
			}
		})
	}
	if r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/api/v1/pods/a", nil); verbOf(r, readPath(r.URL.Path)) != "patch" {
		t.Error("a patch that is no apply is not called patch")
	}
}

// FuzzPath checks that no name of an object comes into a span's name.
func FuzzPath(f *testing.F) {
	f.Add("apps", "v1", "deployments", "status")
	f.Add("", "v1", "namespaces", "")
	f.Add("watch", "watch", "watch", "watch")
	f.Add("api", "apis", "openapi", "finalize")
	f.Fuzz(func(t *testing.T, group, version, resource, sub string) {
		const name = "the-name-of-an-object"
		for _, s := range []string{group, version, resource, sub} {
			if strings.Contains(s, "/") || strings.Contains(s, name) {
				return
			}
		}
		if version == "" || resource == "" || resource == "watch" || group == "api" || group == "apis" {
			return // the path says something else
		}
		root := "/api/" + version
		if group != "" {
			root = "/apis/" + group + "/" + version
		}
		for _, text := range []string{
			root + "/namespaces/" + name + "/" + resource + "/" + name + "/" + sub,
			root + "/" + resource + "/" + name + "/" + sub,
		} {
			p := readPath(text)
			if strings.Contains(p.what(), name) {
				t.Errorf("%q is called %q", text, p.what())
			}
			if strings.Contains(p.template(), name) {
				t.Errorf("%q has the template %q", text, p.template())
			}
		}
		readPath(group + version + resource + sub) // whatever it is, it is read
	})
}

func TestTransportTells(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		ctx    func(context.Context) context.Context
		code   int // of the answer; 0: there is none
		status codes.Code
		words  string // of the failure
		spans  int
		event  string
	}{
		"Granted":   {"what was granted is well", "/api/v1/pods", live, 200, codes.Unset, "", 1, ""},
		"NotFound":  {"so is the answer that something is not there", "/api/v1/pods/a", live, 404, codes.Unset, "", 1, ""},
		"Broken":    {"a server that fails has failed", "/api/v1/pods", live, 500, codes.Error, "Internal Server Error", 1, ""},
		"Gone":      {"one that does not answer has failed, too, and says nothing", "/api/v1/pods", live, 0, codes.Error, "connection", 1, ""},
		"Late":      {"one may answer too late", "/api/v1/pods", expired, 0, codes.Error, "timeout", 1, ""},
		"Abandoned": {"or nobody waits any more", "/api/v1/pods", over, 0, codes.Error, "abandoned", 1, ""},
		"Watch":     {"a watch is an event", "/api/v1/pods?watch=true", live, 200, codes.Unset, "", 0, "watch v1/pods"},
		"Log":       {"so is a log that goes on", "/api/v1/namespaces/b/pods/a/log?follow=true", live, 200, codes.Unset, "", 0, "get v1/pods/log"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
			tracing := &Tracing{provider: provider, tracer: provider.Tracer("test")}
			client := tracing.Wrap("east", server(tc.code))
			ctx, parent := tracing.tracer.Start(t.Context(), "parent")
			r := httptest.NewRequestWithContext(tc.ctx(ctx), http.MethodGet, "https://east.example"+tc.path, nil)
			answer, err := client.RoundTrip(r)
			if err == nil {
				answer.Body.Close()
			}
			parent.End()
			spans := recorder.Ended()
			if len(spans) != tc.spans+1 {
				t.Fatalf("%s: there are %d spans besides the parent, want %d", tc.reason, len(spans)-1, tc.spans)
			}
			if tc.spans == 1 {
				wantSpan(t, tc.reason, spans[0], tc.status, tc.words)
				return
			}
			if events := spans[0].Events(); len(events) != 1 || events[0].Name != tc.event {
				t.Errorf("%s: the events are %v, want %q", tc.reason, events, tc.event)
			}
		})
	}
}

func wantSpan(t *testing.T, reason string, s sdktrace.ReadOnlySpan, status codes.Code, words string) {
	t.Helper()
	if got := s.Status(); got.Code != status || got.Description != words {
		t.Errorf("%s: the status is %v, want %v %q", reason, got, status, words)
	}
	for _, a := range s.Attributes() {
		if a.Key == "error.type" && a.Value != attribute.StringValue(words) {
			t.Errorf("%s: error.type is %v, want %q", reason, a.Value, words)
		}
	}
}

// server is a transport to an API server that answers with a status; 0 does not
// answer, and says more than it should.
type server int

// RoundTrip implements http.RoundTripper.
func (s server) RoundTrip(*http.Request) (*http.Response, error) {
	if s == 0 {
		return nil, errors.New("Get \"https://east.example/?token=hush\": connection refused")
	}
	return &http.Response{StatusCode: int(s), Body: io.NopCloser(strings.NewReader(""))}, nil
}

func live(ctx context.Context) context.Context { return ctx }

func expired(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 0)
	cancel() // the deadline has passed already
	return ctx
}

func over(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// idle is a transport that can close its idle connections.
type idle struct {
	server
	told int
}

func (i *idle) CloseIdleConnections() { i.told++ }

func TestTransportIsTransparent(t *testing.T) {
	tracing := &Tracing{tracer: sdktrace.NewTracerProvider().Tracer("test")}
	next := &idle{}
	wrapped := tracing.Wrap("east", next)
	(&http.Client{Transport: wrapped}).CloseIdleConnections()
	if next.told != 1 {
		t.Error("the connections are not let go of: a region that is removed would keep them")
	}
	(&http.Client{Transport: tracing.Wrap("east", server(0))}).CloseIdleConnections() // which has none
	if got := wrapped.(interface{ WrappedRoundTripper() http.RoundTripper }).WrappedRoundTripper(); got != next {
		t.Errorf("beneath is %v, want the transport", got)
	}
}

func BenchmarkWrap(b *testing.B) {
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "https://east.example/apis/apps/v1/namespaces/blue/deployments/web", nil)
	for name, tracing := range map[string]*Tracing{
		"off": {}, "on": {tracer: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample())).Tracer("test")},
	} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			if tracing.tracer != nil {
				ctx, _ = tracing.tracer.Start(ctx, "parent")
			}
			client, r := tracing.Wrap("east", server(200)), r.WithContext(ctx)
			b.ReportAllocs()
			for b.Loop() {
				answer, err := client.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				answer.Body.Close()
			}
		})
	}
}
