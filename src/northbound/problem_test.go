package northbound_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// TestProblemDetail checks that a client that prints the detail prints every
// error.
func TestProblemDetail(t *testing.T) {
	t.Parallel()
	found := nf.Violations{
		{Field: "csar_id", Message: "is missing"},
		{Object: nf.Ref{Kind: "Deployment", Namespace: "edge", Name: "web"}, Field: "spec.replicas", File: "web.yaml", Line: 3, Message: "must be at least 0, got -1"},
	}
	cases := map[string]struct {
		reason string
		err    error
		errors int
	}{
		"Alone":       {"violations are an error by themselves", found, 2},
		"Caused":      {"they are the cause of a failure", nf.E(nf.Invalid, "create", "VNF instance x", found), 2},
		"Nested":      {"also of the cause of one", nf.E(nf.Invalid, "create", "VNF instance x", fmt.Errorf("cannot render the chart: %w", found)), 2},
		"Retry":       {"the detail may continue after them", &nf.Error{Kind: nf.Unreachable, Op: "create", Subject: "VNF instance x", Err: found, RetryAfter: time.Second}, 2},
		"Unexplained": {"an internal error does not show its cause, in any form", nf.E(nf.Internal, "create", "VNF instance x", found), 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := handler(t, northbound.Config{APIs: []northbound.API{routes{"GET /x": func(http.ResponseWriter, *http.Request) error { return c.err }}}})
			p := problemOf(t, serve(h, httptest.NewRequest(http.MethodGet, "/x", nil)))
			if len(p.Errors) != c.errors {
				t.Errorf("%s: got %d errors, want %d", c.reason, len(p.Errors), c.errors)
			}
			for _, e := range p.Errors {
				if text := (nf.Violation{Field: e.Field, File: e.File, Line: e.Line, Message: e.Message}).String(); !strings.Contains(p.Detail, text) {
					t.Errorf("%s: the detail %q does not include %q", c.reason, p.Detail, text)
				}
			}
		})
	}
}
