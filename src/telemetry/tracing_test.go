package telemetry_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
	"github.com/multicloud-k8s/k8splugin/src/telemetry/telemetrytest"
)

// The secrets that are planted wherever spans might find them.
const (
	bearer    = "hush-bearer-of-the-client"
	parameter = "hush-parameter-of-the-request"
	clusters  = "hush-token-of-the-region"
	manifest  = "hush-password-in-a-manifest"
	query     = "hush-value-of-a-selector"
	said      = "hush-text-of-an-error"
)

// TestTrace follows a request into the operation that it begins, through that
// operation's death with its replica, to its end with another.
func TestTrace(t *testing.T) {
	collector, api := telemetrytest.New(t), newAPIServer(t)
	tracing := traceTo(t, collector)

	op := nf.Operation{
		ID: "op-1", Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}, Region: "east", Project: "blue", Verb: nf.Upgrade, State: nf.Running,
		Instance: nf.InstanceTask{Target: nf.Revision{Inputs: nf.Inputs{Parameters: map[string]any{"db_password": parameter}}}}, Attempts: 1,
	}
	handler := tracing.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		telemetry.Route(r, "/v1/vnf_instances/{id}")
		_, _ = io.Copy(io.Discard, r.Body)
		op.Trace = telemetry.Traceparent(r.Context())
		w.WriteHeader(http.StatusAccepted)
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/v1/vnf_instances/vnf-1?token="+query, strings.NewReader(parameter))
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Cookie", "session="+bearer)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	handler.ServeHTTP(httptest.NewRecorder(), r)

	// The first replica applies a stage and dies in the second step.
	region := &http.Client{Transport: tracing.Wrap("east", api)}
	ctx, end := tracing.Operation(t.Context(), op)
	step, endStep := tracing.Step(ctx, nf.Step{StepID: nf.StepID{Phase: nf.PhaseApply, Stage: 1}, Of: 2, StageName: "shop"})
	request(step, t, region, http.MethodPatch, "/apis/apps/v1/namespaces/blue/deployments/web?fieldManager="+query)
	endStep(nil)
	step, endStep = tracing.Step(ctx, nf.Step{StepID: nf.StepID{Phase: nf.PhaseWait, Stage: 1}, Of: 2, StageName: "shop"})
	request(step, t, region, http.MethodGet, "/api/v1/namespaces/blue/pods?watch=true&labelSelector="+query)
	endStep(errors.New(said))
	end(op, errors.New(said))

	// The second one fails.
	op.Attempts = 2
	ctx, end = tracing.Operation(t.Context(), op)
	step, endStep = tracing.Step(ctx, nf.Step{StepID: nf.StepID{Phase: nf.PhaseApply, Undo: true, Stage: 1}, Of: 1, StageName: "shop"})
	request(step, t, region, http.MethodPost, "/api/v1/namespaces/blue/secrets")
	failure := &nf.Error{Kind: nf.Unreachable, Reason: "unavailable", Op: "apply", Subject: said, Err: errors.New(manifest)}
	endStep(failure)
	op.State, op.Failure = nf.OperationFailed, nf.FailureOf("undo: apply 1/1 shop", failure)
	end(op, nil)
	flush(t, tracing)

	wantTree(t, collector)
	wantNoSecrets(t, collector)
}

func wantTree(t *testing.T, collector *telemetrytest.Collector) {
	t.Helper()
	spans := named(t, collector)
	want := `PATCH /v1/vnf_instances/{id}
  operation upgrade#1
    apply
      apply apps/v1/deployments
    wait !internal *watch v1/pods
  operation upgrade#2 !unreachable: unavailable
    undo: apply !unreachable: unavailable
      create v1/secrets !Service Unavailable
`
	root := spans["PATCH /v1/vnf_instances/{id}"]
	if root == nil {
		t.Fatal("the request has no span")
	}
	if diff := cmp.Diff(want, root.Tree()); diff != "" {
		t.Errorf("the spans do not hang together (-want +got):\n%s", diff)
	}
	if got := hex.EncodeToString(root.GetTraceId()); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the trace is %s, want the client's", got)
	}
	if got := hex.EncodeToString(root.GetParentSpanId()); got != "b7ad6b7169203331" {
		t.Errorf("the request is the child of %s, want the client's span", got)
	}
	for name, tc := range map[string]struct {
		reason string
		want   map[string]string
	}{
		"operation upgrade#1": {"an interrupted operation has not failed", map[string]string{
			"k8splugin.operation.id": "op-1", "k8splugin.operation.verb": "upgrade", "k8splugin.operation.attempt": "1",
			"k8splugin.instance.id": "vnf-1", "k8splugin.region": "east", "k8splugin.project": "blue", "k8splugin.operation.state": "running",
		}},
		"operation upgrade#2": {"a resumed one says which attempt it is, and a failed one where it failed", map[string]string{
			"k8splugin.operation.id": "op-1", "k8splugin.operation.verb": "upgrade", "k8splugin.operation.attempt": "2",
			"k8splugin.instance.id": "vnf-1", "k8splugin.region": "east", "k8splugin.project": "blue", "k8splugin.operation.state": "failed",
			"k8splugin.step": "undo: apply 1/1 shop", "error.type": "unreachable",
		}},
		"apply": {"a step has its whole name", map[string]string{"k8splugin.step": "apply 1/2 shop"}},
		"apply apps/v1/deployments": {"a request says which object it is about, and nothing else", map[string]string{
			"k8splugin.region": "east", "k8s.request.verb": "apply", "http.request.method": "PATCH", "http.response.status_code": "200",
			"url.path": "/apis/apps/v1/namespaces/blue/deployments/web", "url.template": "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
		}},
	} {
		if diff := cmp.Diff(tc.want, spans[name].Attributes); diff != "" {
			t.Errorf("%s: the attributes of %q differ (-want +got):\n%s", tc.reason, name, diff)
		}
	}
	if got := root.Attributes["http.route"] + " " + root.Attributes["http.response.status_code"]; got != "/v1/vnf_instances/{id} 202" {
		t.Errorf("the request's route and status are %q", got)
	}
}

func wantNoSecrets(t *testing.T, collector *telemetrytest.Collector) {
	t.Helper()
	sent := collector.Sent()
	for _, known := range []string{"replica-a", "v1.2.3", "op-1"} {
		if !strings.Contains(sent, known) {
			t.Errorf("%q was not exported: the test looks in the wrong place", known)
		}
	}
	for _, secret := range []string{bearer, parameter, clusters, manifest, query, said, "hush"} {
		if i := strings.Index(sent, secret); i >= 0 {
			t.Errorf("%q was exported: …%q…", secret, sent[max(0, i-80):min(len(sent), i+80)])
		}
	}
}

// newAPIServer returns a transport to a region that says more than it should,
// and fails for Secrets.
func newAPIServer(t *testing.T) http.RoundTripper {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Secret", clusters)
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, manifest)
	}))
	t.Cleanup(server.Close)
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Traceparent") != "" {
			t.Error("the region is told of the trace")
		}
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
		return server.Client().Transport.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// request sends a request with secrets all over it.
func request(ctx context.Context, t *testing.T, client *http.Client, method, path string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "https://east.example"+path, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+clusters)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}

func TestMiddleware(t *testing.T) {
	cases := map[string]struct {
		reason string
		method string
		path   string
		route  string // that the router finds; empty: none
		want   string // the span's name; empty: there is none
	}{
		"Routed":   {"a request is called by its route", "GET", "/v1/vnf_instances/x", "/v1/vnf_instances/{id}", "GET /v1/vnf_instances/{id}"},
		"Unrouted": {"a path that leads nowhere names nothing", "GET", "/wp-login.php", "", "GET"},
		"Invented": {"nor does a method that nobody knows", "BREW", "/coffee", "", "HTTP"},
		"Alive":    {"machines ask this all the time", "GET", "/healthz", "/healthz", ""},
		"Ready":    {"machines ask this all the time", "GET", "/readyz", "/readyz", ""},
		"Metrics":  {"machines ask this all the time", "GET", "/metrics", "/metrics", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			collector := telemetrytest.New(t)
			tracing := traceTo(t, collector)
			var parent string
			tracing.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if tc.route != "" {
					telemetry.Route(r, tc.route)
				}
				parent = telemetry.Traceparent(r.Context())
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil))
			flush(t, tracing)
			spans := named(t, collector)
			if tc.want == "" {
				if len(spans) > 0 || parent != "" {
					t.Errorf("%s: it has %d spans and traceparent %q, want none", tc.reason, len(spans), parent)
				}
				return
			}
			if len(spans) != 1 || spans[tc.want] == nil {
				t.Errorf("%s: the spans are %v, want %q", tc.reason, spans, tc.want)
			}
		})
	}
}

func TestOperationSpans(t *testing.T) {
	cases := map[string]struct {
		reason string
		op     nf.Operation // as it begins
		ended  nf.Operation
		err    error
		want   string
		rooted bool // in its own trace
	}{
		"Untraced": {"an operation that no trace began has its own", nf.Operation{Verb: nf.Terminate}, nf.Operation{State: nf.Succeeded}, nil, "operation terminate#1\n", true},
		"Garbled":  {"a record that nobody can read is no trace", nf.Operation{Verb: nf.Terminate, Trace: "00-xyz"}, nf.Operation{State: nf.Succeeded}, nil, "operation terminate#1\n", true},
		"Traced": {"one that a request began goes on with its trace", nf.Operation{Verb: nf.Terminate, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
			nf.Operation{State: nf.Succeeded}, nil, "operation terminate#1\n", false},
		"Failed": {"a failure is told by its kind", nf.Operation{Verb: nf.Rollback},
			nf.Operation{State: nf.OperationFailed, Failure: &nf.Failure{Kind: nf.Timeout, Message: said}}, nil, "operation rollback#1 !timeout\n", true},
		"Cancelled": {"what somebody wished is no error", nf.Operation{Verb: nf.Rollback},
			nf.Operation{State: nf.OperationCancelled, Failure: &nf.Failure{Kind: nf.Cancelled, Message: said}}, nil, "operation rollback#1\n", true},
		"Interrupted": {"what will be resumed has not failed", nf.Operation{Verb: nf.Rollback}, nf.Operation{State: nf.Running}, errors.New(said), "operation rollback#1\n", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			collector := telemetrytest.New(t)
			tracing := traceTo(t, collector)
			_, end := tracing.Operation(t.Context(), tc.op)
			end(tc.ended, tc.err)
			flush(t, tracing)
			for _, s := range named(t, collector) {
				if got := s.Tree(); got != tc.want {
					t.Errorf("%s: the span is %q, want %q", tc.reason, got, tc.want)
				}
				if rooted := len(s.GetParentSpanId()) == 0; rooted != tc.rooted {
					t.Errorf("%s: rooted is %v, want %v", tc.reason, rooted, tc.rooted)
				}
			}
			if sent := collector.Sent(); strings.Contains(sent, said) || !strings.Contains(sent, "operation") {
				t.Errorf("%s: exported was %q", tc.reason, sent)
			}
		})
	}
}

// TestSiteOperationSpan checks that operations of sites are reported as those of
// instances are.
func TestSiteOperationSpan(t *testing.T) {
	collector := telemetrytest.New(t)
	tracing := traceTo(t, collector)
	op := nf.Operation{
		ID: "op-1", Subject: nf.Subject{Kind: nf.SiteSubject, ID: "edge"}, Region: "east", Project: "blue", Verb: nf.SiteBuild, State: nf.Running, Attempts: 2,
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	ctx, end := tracing.Operation(t.Context(), op)
	_, endStep := tracing.Step(ctx, nf.Step{StepID: nf.StepID{Phase: nf.PhaseBuild}})
	failure := &nf.Error{Kind: nf.Failed, Reason: "task", Op: "build", Subject: said}
	endStep(failure)
	op.State, op.Failure = nf.OperationFailed, nf.FailureOf("build cluster", failure)
	end(op, nil)
	flush(t, tracing)

	const name = "operation site_build#2"
	span := named(t, collector)[name]
	if span == nil {
		t.Fatalf("there is no span %q: %v", name, named(t, collector))
	}
	if diff := cmp.Diff(name+" !failed: task\n  build !failed: task\n", span.Tree()); diff != "" {
		t.Errorf("the spans do not hang together (-want +got):\n%s", diff)
	}
	if got := hex.EncodeToString(span.GetTraceId()); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the trace is %s, want that of the request", got)
	}
	if diff := cmp.Diff(map[string]string{
		"k8splugin.operation.id": "op-1", "k8splugin.operation.verb": "site_build", "k8splugin.operation.attempt": "2", "k8splugin.site.id": "edge",
		"k8splugin.region": "east", "k8splugin.project": "blue", "k8splugin.operation.state": "failed", "k8splugin.step": "build cluster", "error.type": "failed",
	}, span.Attributes); diff != "" {
		t.Errorf("the attributes differ (-want +got):\n%s", diff)
	}
	if strings.Contains(collector.Sent(), said) {
		t.Error("the text of an error was exported")
	}
}

// TestSpansOnBehalf checks that an operation without a trace creates no trace.
func TestSpansOnBehalf(t *testing.T) {
	collector, api := telemetrytest.New(t), newAPIServer(t)
	tracing := traceTo(t, collector)
	request(t.Context(), t, &http.Client{Transport: tracing.Wrap("east", api)}, http.MethodGet, "/version")
	_, end := tracing.Step(t.Context(), nf.Step{StepID: nf.StepID{Phase: nf.PhaseApply}})
	end(nil)
	// A client has decided that its trace is not kept.
	ctx, endOperation := tracing.Operation(t.Context(), nf.Operation{ID: "op-1", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"})
	if got := telemetry.Traceparent(ctx); !strings.HasSuffix(got, "-00") || !strings.Contains(got, "0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("the traceparent is %q, want the client's trace, not kept", got)
	}
	request(ctx, t, &http.Client{Transport: tracing.Wrap("east", api)}, http.MethodGet, "/version")
	endOperation(nf.Operation{}, nil)
	flush(t, tracing)
	if spans := named(t, collector); len(spans) > 0 {
		t.Errorf("the spans are %v, want none", spans)
	}
}
