package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestStrayRequests asks for paths and methods that there are not. Below ONAP's
// paths they are answered as ONAP's router does, in both styles of errors.
func TestStrayRequests(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, request string
		status          int
		onap            bool
	}{
		"Instance":    {"an instance has no such part", "GET /v1/instance/x/nothing", 404, true},
		"Slash":       {"a slash at the end is another path", "GET /v1/instance/", 404, true},
		"Bundle":      {"a bundle has no such part", "POST /v1/rb/definition/a/b/nothing", 404, true},
		"RB":          {"nor is there anything but definitions", "GET /v1/rb", 404, true},
		"Retired":     {"SO's adapter has paths that ONAP has given up", "POST /v1/rb/definition/a/b/profile/c/config", 404, true},
		"Connection":  {"regions have no parts", "GET /v1/connectivity-info/x/y", 404, true},
		"Connections": {"there is no list of them", "GET /v1/connectivity-info", 405, true},
		"Query":       {"a query has no parts", "GET /v1/query/x", 404, true},
		"QueryPost":   {"a query is read", "POST /v1/query", 405, true},
		"Health":      {"the service's health has no parts", "GET /v1/healthcheck/x", 404, true},
		"Workload":    {"nor has a workload", "GET /acme/east/infra_workload/x/y", 404, true},
		"WorkloadPut": {"a workload is not changed", "PUT /acme/east/infra_workload/x", 405, true},
		"Patch":       {"ONAP knows no PATCH", "PATCH /v1/instance/x", 405, true},
		"Head":        {"HEAD is GET without its body", "HEAD /v1/instance/x/nothing", 404, true},
		"Neighbour":   {"a path that only begins alike is not ONAP's", "GET /v1/instances", 404, false},
		"Definition":  {"SO's adapter has this path, too, and it was never ONAP's", "GET /v1/definition/a/b", 404, false},
		"Native":      {"the native API answers with problems", "GET /v1/vnf_instances/a/b/c/d", 404, false},
		"NativePut":   {"for methods, too", "PUT /v1/vnf_instances/a", 405, false},
		"Nothing":     {"and so does what belongs to neither", "GET /nothing", 404, false},
		"Broker":      {"two names alone are not the broker's", "GET /acme/east", 404, false},
		"VIMs":        {"Tacker's API has only VIMs", "GET /v1.0/vnfs", 404, false},
		"VIMPatch":    {"VIMs are changed by PUT", "PATCH /v1.0/vims/x.json", 405, false},
		"Root":        {"the root only leads to the documentation", "POST /", 405, false},
	}
	for _, style := range []string{"legacy", "strict"} {
		s := startBareService(t, func(c *Config) { c.ONAPErrors = style })
		for name, tc := range cases {
			t.Run(style+"/"+name, func(t *testing.T) {
				t.Parallel()
				method, path, _ := strings.Cut(tc.request, " ")
				got := s.do(method, path, nil)
				text := map[int]string{404: "404 page not found\n"}[tc.status]
				if method == http.MethodHead {
					text = ""
				}
				switch {
				case got.status != tc.status:
					t.Errorf("%s: status %d, want %d: %s", tc.reason, got.status, tc.status, got.body)
				case tc.onap && string(got.body) != text, !tc.onap && !json.Valid(got.body):
					t.Errorf("%s: %q", tc.reason, got.body)
				case tc.status == 404 && tc.onap && got.header.Get("Content-Type") != "text/plain; charset=utf-8":
					t.Errorf("%s: the media type is %q", tc.reason, got.header.Get("Content-Type"))
				case tc.status == 405 && got.header.Get("Allow") == "":
					t.Errorf("%s: the methods that there are are not named", tc.reason)
				}
			})
		}
	}
}
