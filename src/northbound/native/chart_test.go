package native_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

func TestPackagesFromCharts(t *testing.T) {
	t.Parallel()
	const web = `{"chart": {"url": "oci://registry.example.com/charts/web"}}`
	const kept = `{"csar_id": "<<>>", "source": "oci://registry.example.com/charts/web:1.4.2", "...": ""}`
	const from = "oci://registry.example.com/charts/web:1.4.2"
	// A stand-in whose fetch fails still records the last request.
	asked := failing("Fetch", errDisk)
	runAll(t, map[string]exchange{
		"Create": {
			reason: "the chart is fetched, and uploaded as an archive would be", request: "POST /v1/packages", header: []string{asJSON}, body: web,
			status: 201, want: kept, headers: []string{"Location: /v1/packages/new-1"}, asked: upload{nf.Package{Source: from}, "chart"},
		},
		"CreateAll": {
			reason: "every field is handed on", arrange: asked, request: "POST /v1/packages", header: []string{asJSON},
			body: `{"csar_id": "web", "project": "blue", "chart": {"url": "https://charts.example.com", "name": "web", "version": "^1", "digest": "sha256:abc",
				"username": "ann", "password": "s3cret"}}`,
			status: 500, want: problem("internal"),
			asked: fetch{"blue", native.ChartRef{URL: "https://charts.example.com", Name: "web", Version: "^1", Digest: "sha256:abc", Username: "ann", Password: nf.Secret("s3cret")}},
		},
		"CreateUnder": {
			reason: "the package gets id and project", request: "POST /v1/packages?project=blue", header: []string{asJSON},
			body: `{"csar_id": "web", "chart": {"url": "oci://r/web"}}`, status: 201, want: kept, asked: upload{nf.Package{ID: "web", Project: "blue", Source: from}, "chart"},
		},
		"CreateProject": {
			reason: "it is fetched for the project", arrange: asked, request: "POST /v1/packages", header: []string{asJSON}, body: web, status: 500, want: problem("internal"),
			asked: fetch{"default", native.ChartRef{URL: "oci://registry.example.com/charts/web", Password: nf.Secret{}}},
		},
		"CreateTwoProjects": {
			reason: "two projects are one too many", request: "POST /v1/packages?project=blue", header: []string{asJSON},
			body: `{"project": "red", "chart": {"url": "oci://r/web"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "project", "message": "differs from the query"}]`),
		},
		"CreateTaken": {
			reason: "creating never replaces, and then nothing is fetched", arrange: asked, request: "POST /v1/packages", header: []string{asJSON},
			body: `{"csar_id": "firewall", "chart": {"url": "oci://r/web"}}`, status: 409, want: problem("already-exists"),
		},
		"CreateNotAllowed": {
			reason: "a host that is not allowed", arrange: failing("Fetch", nf.E(nf.Forbidden, "fetch", "chart oci://r/web", errors.New("its host is not among --allowed-chart-hosts"))),
			request: "POST /v1/packages", header: []string{asJSON}, body: web, status: 403, want: problem("forbidden"),
		},
		"CreateUnauthorized": {
			reason: "the source's refusal is not ours", arrange: failing("Fetch", &nf.Error{Kind: nf.Unreachable, Op: "fetch", Subject: "chart", Reason: "unauthorized"}),
			request: "POST /v1/packages", header: []string{asJSON}, body: web, status: 502, want: problem("unreachable", `"reason": "unauthorized"`),
		},
		"CreateMissing": {
			reason: "no such chart", arrange: failing("Fetch", nf.E(nf.NotFound, "fetch", "chart oci://r/web", nil)),
			request: "POST /v1/packages", header: []string{asJSON}, body: web, status: 404, want: problem("not-found"),
		},
		"CreateBadChart": {
			reason: "what was fetched is checked", arrange: failing("Upload", nf.E(nf.Invalid, "upload", "package", nf.Violations{{File: "Chart.yaml", Line: 2, Message: "is wrong"}})),
			request: "POST /v1/packages", header: []string{asJSON}, body: web, status: 400, want: problem("invalid", `"errors": [{"file": "Chart.yaml", "line": 2, "message": "is wrong"}]`),
		},
		"CreateSDC": {
			reason: "a chart of SDC is fetched likewise", arrange: asked, request: "POST /v1/packages", header: []string{asJSON},
			body:   `{"csar_id": "web", "source": {"sdc": {"service_uuid": "s-1", "resource_instance": "vf 0", "artifact": "a.tgz"}}}`,
			status: 500, want: problem("internal"), asked: fetch{"default", native.ChartRef{SDC: native.SDCRef{Service: "s-1", Instance: "vf 0", Artifact: "a.tgz"}}},
		},
		"PutSDC": {
			reason: "so is the chart of a resource", arrange: asked, request: "PUT /v1/packages/web", header: []string{asJSON},
			body: `{"source": {"sdc": {"resource_uuid": "r-1"}}}`, status: 500, want: problem("internal"), asked: fetch{"default", native.ChartRef{SDC: native.SDCRef{Resource: "r-1"}}},
		},
		"CreateSDCBoth":     {reason: "a chart has one place", request: "POST /v1/packages", header: []string{asJSON}, body: `{"chart": {"url": "oci://r/web"}, "source": {"sdc": {"service_uuid": "s"}}}`, status: 400, want: problem("invalid", `"errors": [{"field": "source", "message": "<<>>"}]`)},
		"CreateSDCNone":     {reason: "of what?", request: "POST /v1/packages", header: []string{asJSON}, body: `{"source": {"sdc": {}}}`, status: 400, want: problem("invalid", `"errors": [{"field": "source.sdc", "message": "<<>>"}]`)},
		"CreateSDCTwo":      {reason: "of which of the two?", request: "POST /v1/packages", header: []string{asJSON}, body: `{"source": {"sdc": {"service_uuid": "s", "resource_uuid": "r"}}}`, status: 400, want: problem("invalid", `"errors": [{"field": "source.sdc", "message": "<<>>"}]`)},
		"CreateSDCInstance": {reason: "only services have instances", request: "POST /v1/packages", header: []string{asJSON}, body: `{"source": {"sdc": {"resource_uuid": "r", "resource_instance": "vf 0"}}}`, status: 400, want: problem("invalid", `"errors": [{"field": "source.sdc.resource_instance", "message": "<<>>"}]`)},
		"CreateSDCNamed":    {reason: "a chart of SDC has a name, too", request: "POST /v1/packages", header: []string{asJSON}, body: `{"name": "x", "source": {"sdc": {"service_uuid": "s"}}}`, status: 400, want: problem("invalid", `"errors": [{"field": "name", "message": "<<>>"}]`)},
		"CreateNamed":       {reason: "a chart has a name", request: "POST /v1/packages", header: []string{asJSON}, body: `{"name": "x", "chart": {"url": "oci://r/web"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "name", "message": "<<>>"}]`)},
		"CreateData":        {reason: "user data would be lost", request: "POST /v1/packages", header: []string{asJSON}, body: `{"user_data": {}, "chart": {"url": "oci://r/web"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "user_data", "message": "<<>>"}]`)},
		"PutNothing":        {reason: "which chart?", request: "PUT /v1/packages/mine", header: []string{asJSON}, body: `{}`, status: 400, want: problem("invalid", `"errors": [{"field": "chart", "message": "is missing"}]`)},
		"CreateNoURL":       {reason: "and where?", request: "POST /v1/packages", header: []string{asJSON}, body: `{"chart": {"name": "web"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "chart.url", "message": "is missing"}]`)},
		"CreateUnknown":     {reason: "unknown fields are refused", request: "POST /v1/packages", header: []string{asJSON}, body: `{"chart": {"url": "oci://r/web", "colour": "red"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "chart.colour", "message": "is not a known field"}]`)},
		"CreateBadID":       {reason: "an id is a path segment", request: "POST /v1/packages", header: []string{asJSON}, body: `{"csar_id": "../x", "chart": {"url": "oci://r/web"}}`, status: 400, want: problem("invalid")},
		"CreateMask":        {reason: "a mask is no password", request: "POST /v1/packages", header: []string{asJSON}, body: `{"chart": {"url": "oci://r/web", "password": "********"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "chart.password", "message": "<<>>"}]`)},
		"CreateTooLarge":    {reason: "a document is no archive", request: "POST /v1/packages", header: []string{asJSON}, body: `{"chart": {"url": "` + strings.Repeat("x", northbound.MaxDocument) + `"}}`, status: 413, want: problem("too-large")},
		"Put": {
			reason: "a package gets the id of its path", request: "PUT /v1/packages/mine", header: []string{asJSON}, body: web,
			status: 201, want: kept, headers: []string{"Location: /v1/packages/mine"}, asked: upload{nf.Package{ID: "mine", Source: from}, "chart"},
		},
		"PutReplaces": {
			reason: "and replaces what is there", arrange: func(s *standIn) { s.created = false }, request: "PUT /v1/packages/firewall", header: []string{asJSON}, body: web,
			status: 200, want: kept, headers: []string{"Location: "},
		},
		"PutOther": {
			reason: "not two ids", request: "PUT /v1/packages/mine", header: []string{asJSON}, body: `{"csar_id": "other", "chart": {"url": "oci://r/web"}}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "csar_id", "message": "differs from the path"}]`),
		},
	})
}

// TestRepeatedFetch checks that a request which is repeated fetches nothing: what
// was there may be gone.
func TestRepeatedFetch(t *testing.T) {
	t.Parallel()
	const body = `{"chart": {"url": "oci://r/web"}}`
	s := newStandIn()
	site := serve(t, s)
	header := []string{asJSON, "Idempotency-Key: k"}
	if got := site.ask(t, "POST /v1/packages", body, header...); got.StatusCode != 201 {
		t.Fatalf("the first answer is %s %s", got.Status, got.body)
	}
	s.pkg.Request = keyOf(t, s)
	s.pkg.Request.Client = nf.Anonymous().String() // as the guard writes it
	s.fail["Fetch"] = nf.E(nf.NotFound, "fetch", "chart", nil)
	if got := site.ask(t, "POST /v1/packages", body, header...); got.StatusCode != 201 || got.Header.Get("Location") != "/v1/packages/firewall" {
		t.Errorf("the second answer is %s %s", got.Status, got.body)
	}
	if got := site.ask(t, "POST /v1/packages", `{"chart": {"url": "oci://r/other"}}`, header...); got.StatusCode != 409 || !strings.Contains(string(got.body), `"idempotency-key-reused"`) {
		t.Errorf("another request under the key: %s %s", got.Status, got.body)
	}
	s.fail["Packages"] = nf.E(nf.Unreachable, "list", "packages", errDisk)
	if got := site.ask(t, "POST /v1/packages", body, header...); got.StatusCode != 502 {
		t.Errorf("a store that cannot be asked: %s %s", got.Status, got.body)
	}
}

// TestBareService asks for what this service does not have.
func TestBareService(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	site := serve(t, s, func(c *native.Config) { c.Configurer, c.Charts = nil, nil })
	for name, e := range map[string]exchange{
		"Fetch": {reason: "no source, no chart", request: "POST /v1/packages", header: []string{asJSON}, body: `{"chart": {"url": "oci://r/web"}}`, status: 422, want: problem("unsupported")},
		"Amend": {reason: "nothing to amend with", request: "PUT /v1/vnf_instances/vnf-1/amendments/rules", header: []string{asJSON}, body: `{"csar_id": "rules"}`, status: 422, want: problem("unsupported")},
		"Test":  {reason: "nothing to test with", request: "POST /v1/vnf_instances/vnf-1/tests", status: 422, want: problem("unsupported")},
	} {
		t.Run(name, func(t *testing.T) { e.run(t, s, site) })
	}
}
