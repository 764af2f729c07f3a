package aai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// start is the simulators' time, in milliseconds since 1970.
const start = 1_700_000_000_000

// client sends requests to a simulator. In their texts, {region} and the like are
// paths, and {version PATH} is an object's present resource version.
type client struct {
	*testing.T

	simulator *aai.Simulator
	api       string // the prefix of paths
}

// newClient returns a client of a simulator that has a region with a tenant, and a
// VNF with a module.
func newClient(t *testing.T, cfg aai.Config) *client {
	t.Helper()
	cfg.Users = map[string]string{"u": "p"}
	cfg.Clock = func() time.Time { return time.UnixMilli(start) }
	s, err := aai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{T: t, simulator: s, api: "/aai/v30"}
	for _, given := range []string{
		`PUT {complex} {"physical-location-type":"","street1":"","city":"","postal-code":"","country":"","region":""}`,
		`PUT {region} {"cloud-type":"k8s","relationship-list":{"relationship":[{"related-link":"{complex}"}]}}`,
		`PUT {tenant} {"tenant-name":"default"}`,
		`PUT {vnf} {"vnf-type":"x"}`,
		`PUT {module} {}`,
	} {
		c.want("set up", given, "201")
	}
	s.Journal()
	return c
}

var (
	versionMacro = regexp.MustCompile(`\{version ([^ }]+)\}`)

	paths = strings.NewReplacer(
		"{complex}", "/cloud-infrastructure/complexes/complex/c1",
		"{region}", "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1",
		"{tenant}", "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t1",
		"{resource}", "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t1/k8s-resources/k8s-resource",
		"{vserver}", "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t1/vservers/vserver",
		"{flavor}", "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/flavors/flavor",
		"{pserver}", "/cloud-infrastructure/pservers/pserver",
		"{network}", "/network/l3-networks/l3-network",
		"{vnf}", "/network/generic-vnfs/generic-vnf/V1",
		"{module}", "/network/generic-vnfs/generic-vnf/V1/vf-modules/vf-module/M1",
		"{vnfs}", "/network/generic-vnfs/generic-vnf",
		"{edge}", "relationship-list/relationship",
		"{a}", `{"name":"a","group":"","version":"v1","kind":"Pod","namespace":"n","selflink":"x"}`,
		"{v}", `{"vserver-name":"a","vserver-selflink":"x"}`,
	)
)

// request returns a request of "METHOD PATH BODY".
func (c *client) request(text string) *http.Request {
	c.Helper()
	text = versionMacro.ReplaceAllStringFunc(paths.Replace(text), func(m string) string {
		return c.version(versionMacro.FindStringSubmatch(m)[1])
	})
	method, rest, _ := strings.Cut(text, " ")
	path, body, _ := strings.Cut(rest, " ")
	r := httptest.NewRequestWithContext(c.Context(), method, c.api+path, strings.NewReader(body))
	r.SetBasicAuth("u", "p")
	r.Header.Set("X-FromAppId", "test")
	r.Header.Set("X-TransactionId", "1")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return r
}

// version returns the resource version of an object.
func (c *client) version(path string) string {
	c.Helper()
	w := c.do(c.request("GET " + path))
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		c.Fatalf("cannot read %s: %d %v", path, w.Code, err)
	}
	return fmt.Sprint(doc["resource-version"])
}

func (c *client) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.simulator.ServeHTTP(w, r)
	return w
}

// outcome returns the status of a response, and the code of an error.
func outcome(w *httptest.ResponseRecorder) string {
	var doc struct {
		Error map[string]struct {
			Variables []string `json:"variables"`
		} `json:"requestError"`
	}
	out := fmt.Sprint(w.Code)
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		return out
	}
	for _, e := range doc.Error {
		out += " " + strings.TrimPrefix(e.Variables[len(e.Variables)-1], "ERR.")
	}
	return out
}

// want sends a request, and compares its outcome.
func (c *client) want(reason, text, want string) *httptest.ResponseRecorder {
	c.Helper()
	w := c.do(c.request(text))
	if got := outcome(w); got != want {
		c.Errorf("%s: %s: got %s, want %s: %s", reason, text, got, want, w.Body)
	}
	return w
}

// get returns an object without its resource versions.
func (c *client) get(path string) string {
	c.Helper()
	w := c.do(c.request("GET " + path))
	if w.Code != http.StatusOK {
		return outcome(w)
	}
	text := regexp.MustCompile(`"resource-version":"[0-9]+",?`).ReplaceAll(bytes.TrimSpace(w.Body.Bytes()), nil)
	return strings.ReplaceAll(string(text), ",}", "}")
}
