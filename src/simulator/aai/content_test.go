package aai_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// TestContent reads the objects that changes have made.
func TestContent(t *testing.T) {
	t.Parallel()
	const interfaces = `PUT {vserver}/a {"vserver-name":"a","vserver-selflink":"x","l-interfaces":{"l-interface":[{"interface-name":"e","l3-interface-ipv4-address-list":[{"l3-interface-ipv4-address":"10.0.0.1","l3-interface-ipv4-prefix-length":24}]}]}} 201`
	const vserver = `"in-maint":false,"is-closed-loop-disabled":false,`
	const linkDefaults = `{"in-maint":false,"interface-name":"e","is-ip-unnumbered":false,"is-port-mirrored":false,"l2-multicasting":false`
	const edgeToVNF = `{"related-link":"/aai/v30/network/generic-vnfs/generic-vnf/V1","related-to":"generic-vnf","relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"V1"}],"relationship-label":"tosca.relationships.HostedOn"}`
	cases := map[string]struct {
		reason string
		steps  []string
		path   string
		want   string
	}{
		"defaults":     {"booleans are filled in", nil, "{vnf}", `{"in-maint":false,"is-closed-loop-disabled":false,"vnf-id":"V1","vnf-type":"x"}`},
		"removed":      {"an absent scalar is removed", []string{`PUT {tenant} {"tenant-name":"x","tenant-context":"c","resource-version":"{version {tenant}}"} 200`, `PUT {tenant} {"tenant-name":"x","resource-version":"{version {tenant}}"} 200`}, "{tenant}", `{"tenant-id":"t1","tenant-name":"x"}`},
		"patched":      {"a patch keeps the others", []string{`PATCH {tenant} {"tenant-context":"c","parent-id":null} 200`}, "{tenant}", `{"tenant-context":"c","tenant-id":"t1","tenant-name":"default"}`},
		"flat":         {"an object is alone by default", []string{interfaces}, "{vserver}/a", `{` + vserver + `"vserver-id":"a","vserver-name":"a","vserver-selflink":"x"}`},
		"one deep":     {"a depth adds children", []string{interfaces}, "{vserver}/a?depth=1", `{` + vserver + `"l-interfaces":{"l-interface":[` + linkDefaults + `}]},"vserver-id":"a","vserver-name":"a","vserver-selflink":"x"}`},
		"all":          {"and their children", []string{interfaces}, "{vserver}/a?depth=all", `{` + vserver + `"l-interfaces":{"l-interface":[` + linkDefaults + `,"l3-interface-ipv4-address-list":[{"l3-interface-ipv4-address":"10.0.0.1","l3-interface-ipv4-prefix-length":24}]}]},"vserver-id":"a","vserver-name":"a","vserver-selflink":"x"}`},
		"children":     {"absent containers stay", []string{interfaces, `PUT {vserver}/a {"vserver-name":"b","vserver-selflink":"x","resource-version":"{version {vserver}/a}"} 200`}, "{vserver}/a/l-interfaces/l-interface/e", linkDefaults + `}`},
		"edge":         {"an object has its edges", []string{`PUT {resource}/a {a} 201`, `PUT {vnf}/{edge} {"related-link":"{resource}/a"} 200`}, "{resource}/a/relationship-list", `{"relationship":[` + edgeToVNF + `]}`},
		"without":      {"unless only nodes are wanted", []string{`PUT {resource}/a {a} 201`, `PUT {vnf}/{edge} {"related-link":"{resource}/a"} 200`}, "{resource}/a?nodes-only=true", `{"group":"","id":"a","kind":"Pod","name":"a","namespace":"n","selflink":"x","version":"v1"}`},
		"collection":   {"a collection has the type's name", nil, "{region}/tenants", `{"tenant":[{"tenant-id":"t1","tenant-name":"default"}]}`},
		"filter":       {"a filter compares an attribute", []string{`PUT {tenant}2 {"tenant-name":"x"} 201`}, "{region}/tenants?tenant-name=x", `{"tenant":[{"tenant-id":"t12","tenant-name":"x"}]}`},
		"second page":  {"pages are in the order of creation", []string{`PUT {tenant}2 {"tenant-name":"x"} 201`, `PUT {tenant}3 {"tenant-name":"x"} 201`}, "{region}/tenants?resultIndex=2&resultSize=2", `{"tenant":[{"tenant-id":"t13","tenant-name":"x"}]}`},
		"limit":        {"a limit cuts", []string{`PUT {tenant}2 {"tenant-name":"x"} 201`}, "{region}/tenants?limit=1", `{"tenant":[{"tenant-id":"t1","tenant-name":"default"}]}`},
		"two parents":  {"an HPA capability can be a flavor's", []string{`PUT {flavor}/f {"flavor-name":"f","flavor-selflink":"x","hpa-capabilities":{"hpa-capability":[{"hpa-capability-id":"h","hpa-feature":"numa","hpa-feature-attributes":[{"hpa-attribute-key":"numaNodes","hpa-attribute-value":"1"}]}]}} 201`}, "{flavor}/f/hpa-capabilities/hpa-capability/h?depth=all", `{"hpa-capability-id":"h","hpa-feature":"numa","hpa-feature-attributes":[{"hpa-attribute-key":"numaNodes","hpa-attribute-value":"1"}]}`},
		"encoded link": {"links are encoded", []string{`PUT {tenant}%2F2 {"tenant-name":""} 201`, `PUT {vnf}/{edge} {"related-link":"{tenant}%2F2"} 200`}, "{vnf}/relationship-list", `{"relationship":[{"related-link":"/aai/v30/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t1%2F2","related-to":"tenant","relationship-data":[{"relationship-key":"cloud-region.cloud-owner","relationship-value":"k8s"},{"relationship-key":"cloud-region.cloud-region-id","relationship-value":"r1"},{"relationship-key":"tenant.tenant-id","relationship-value":"t1/2"}],"relationship-label":"org.onap.relationships.inventory.BelongsTo"}]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			for _, step := range tc.steps {
				text, want := splitStep(step)
				c.want(tc.reason, text, want)
			}
			if diff := cmp.Diff(tc.want, c.get(tc.path)); diff != "" {
				t.Errorf("%s: the document differs (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPagesAreCounted(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	c.want("a second tenant", `PUT {tenant}2 {"tenant-name":"x"}`, "201")
	c.want("a third tenant", `PUT {tenant}3 {"tenant-name":"x"}`, "201")
	w := c.want("a page", "GET {region}/tenants?resultIndex=1&resultSize=2&includeTotalCount=true", "200")
	if results, pages := w.Header().Get("total-results"), w.Header().Get("total-pages"); results != "3" || pages != "2" {
		t.Errorf("got %s results on %s pages, want 3 on 2", results, pages)
	}
}

// TestResourceVersions changes one object, and names those whose versions change.
func TestResourceVersions(t *testing.T) {
	t.Parallel()
	watched := []string{"{resource}/a", "{tenant}", "{vnf}", "{module}"}
	cases := map[string]struct {
		reason string
		steps  []string
		want   []string
	}{
		"nothing":     {"reading changes none", []string{`GET {resource}/a 200`}, nil},
		"same":        {"a PUT changes the version even if it changes nothing else", []string{`PUT {tenant} {"tenant-name":"default","resource-version":"{version {tenant}}"} 200`}, []string{"{tenant}"}},
		"patch":       {"so does a patch", []string{`PATCH {tenant} {} 200`}, []string{"{tenant}"}},
		"child":       {"a new child changes no other object", []string{`PUT {resource}/b {a} 201`}, nil},
		"edge":        {"an edge changes both ends", []string{`PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`}, []string{"{resource}/a", "{vnf}"}},
		"edge in PUT": {"also if it comes with a new object", []string{`PUT {resource}/b {"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","relationship-list":{"relationship":[{"related-link":"{vnf}"}]}} 201`}, []string{"{vnf}"}},
		"rejected":    {"a rejected request changes none", []string{`PUT {resource}/b {"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","relationship-list":{"relationship":[{"related-link":"{vnf}"},{"related-link":"{module}9"}]}} 404 5.4.6129`}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			c.want("set up", `PUT {resource}/a {a}`, "201")
			before := make(map[string]string)
			for _, path := range watched {
				before[path] = c.version(path)
			}
			for _, step := range tc.steps {
				text, want := splitStep(step)
				c.want(tc.reason, text, want)
			}
			var got []string
			for _, path := range watched {
				if c.version(path) != before[path] {
					got = append(got, path)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: other versions change (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNeighborsOfADeletedObjectChange(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	c.want("set up", `PUT {resource}/a {a}`, "201")
	c.want("set up", `PUT {resource}/a/{edge} {"related-link":"{vnf}"}`, "200")
	before := c.version("{vnf}")
	c.want("the object is deleted", `DELETE {resource}/a?resource-version={version {resource}/a}`, "204")
	if c.version("{vnf}") == before {
		t.Error("SO would delete the VNF with a stale version unnoticed")
	}
}

func TestVersionsAreTimes(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	// The clock stands still. The edge of the region, which comes second, has changed the complex.
	if got, want := c.version("{complex}"), strconv.Itoa(start+1); got != want {
		t.Errorf("got version %s, want %s: the clock's milliseconds, or the next number that no object has", got, want)
	}
}

// TestTransactions sends several changes in one request.
func TestTransactions(t *testing.T) {
	t.Parallel()
	put := func(uri, body string) string { return `{"action":"put","uri":"` + uri + `","body":` + body + `}` }
	many := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, put("{resource}/"+strconv.Itoa(i), "{a}"))
		}
		return strings.Join(out, ",")
	}
	cases := map[string]struct {
		reason     string
		operations string
		want       string
		resources  int // afterwards
	}{
		"all":           {"all changes are made", put("{resource}/a", "{a}") + "," + put("/aai/v30{resource}/b", "{a}"), "201", 2},
		"none":          {"one failure undoes all of them", put("{resource}/a", "{a}") + "," + put("{resource}/b", "{}"), "400 5.2.3000", 0},
		"in order":      {"a change may depend on one before", put("{resource}/a", "{a}") + "," + put("{resource}/a/{edge}", `{"related-link":"{vnf}"}`), "201", 1},
		"out of order":  {"but not on one after", put("{resource}/a/{edge}", `{"related-link":"{vnf}"}`) + "," + put("{resource}/a", "{a}"), "404 5.4.6114", 0},
		"delete":        {"a deletion has its version in the URI", put("{resource}/a", "{a}") + `,{"action":"delete","uri":"{vnf}?resource-version={version {vnf}}","body":{}}`, "201", 1},
		"edge":          {"an edge is deleted by its body", `{"action":"delete","uri":"{region}/{edge}","body":{"related-link":"{complex}"}}`, "201", 0},
		"no body":       {"the body is mandatory, also of a deletion", `{"action":"delete","uri":"{vnf}?resource-version={version {vnf}}"}`, "400 5.4.6111", 0},
		"undone":        {"a failure undoes deletions, too", put("{resource}/a", "{a}") + `,{"action":"delete","uri":"{vnf}?resource-version={version {vnf}}","body":{}},` + put("{vnf}/{edge}", `{"related-link":"{tenant}"}`), "404 5.4.6114", 0},
		"unknown":       {"there are three actions", `{"action":"get","uri":"{vnf}","body":{}}`, "400 5.4.6111", 0},
		"patch":         {"a patch is one of them", `{"action":"patch","uri":"{vnf}","body":{"vnf-name":"x"}}`, "201", 0},
		"empty":         {"there is an operation", ``, "400 5.4.6111", 0},
		"unknown field": {"an operation has three fields", `{"action":"put","uri":"{tenant}2","body":{"tenant-name":""},"x":1}`, "400 5.4.6111", 0},
		"most":          {"30 changes are permitted", many(30), "201", 30},
		"too many":      {"more are not", many(31), "400 5.4.6147", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			c.want(tc.reason, `POST /bulk/single-transaction {"operations":[`+tc.operations+`]}`, tc.want)
			if tc.want != "201" {
				c.want("a failure changes nothing", "GET {module}", "200")
			}
			if got := strings.Count(c.get("{tenant}/k8s-resources"), `"id"`); got != tc.resources {
				t.Errorf("%s: got %d resources, want %d", tc.reason, got, tc.resources)
			}
		})
	}
	c := newClient(t, aai.Config{})
	got := c.want("the response names each change", `POST /bulk/single-transaction {"operations":[`+put("{tenant}2", `{"tenant-name":""}`)+`]}`, "201").Body.String()
	want := `{"operation-responses":[{"action":"put","uri":"/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t12","response-status-code":201,"response-body":null}]}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.want("it is posted", `PUT /bulk/single-transaction {}`, "400 5.6.3012")
}

func TestBulkProcess(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	got := c.want("the status is always 201", `PUT /bulkprocess {"transactions":[`+
		`{"put":[{"uri":"{tenant}2","body":{"tenant-name":""}},{"uri":"{tenant}3","body":{}}]},`+
		`{"put":[{"uri":"{tenant}4","body":{"tenant-name":""}}]}]}`, "201").Body.String()
	if !strings.HasPrefix(got, `{"transaction":[{"put":[{"body":{"400":{`) || !strings.HasSuffix(got, `{"put":[{"body":{"201":null},"uri":"/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t14"}]}]}`+"\n") {
		t.Errorf("the statuses are not inside: %s", got)
	}
	c.want("a transaction fails as a whole", `GET {tenant}2`, "404 5.4.6114")
	c.want("the others continue", `GET {tenant}4`, "200")
	c.want("it is put", `POST /bulkprocess {}`, "400 5.6.3012")
	c.want("it has transactions", `PUT /bulkprocess {}`, "400 5.4.6111")
}

// TestFaults uses a real server, because a fault can cut the connection.
func TestFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		fault  aai.Fault
		status int // 0: no response
		exists bool
	}{
		"none":   {"a fault of other requests does not apply", aai.Fault{Method: http.MethodDelete, Status: 500}, 201, true},
		"status": {"a request is not executed", aai.Fault{Status: 503}, 503, false},
		"cut":    {"a change whose response is lost is made", aai.Fault{Path: "/tenants/", Cut: true}, 0, true},
		"lost":   {"a request that is lost makes none", aai.Fault{Status: 503, Cut: true}, 0, false},
		"slow":   {"a delay changes nothing", aai.Fault{Delay: time.Nanosecond}, 201, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			server := httptest.NewServer(c.simulator)
			t.Cleanup(server.Close)
			c.simulator.Script(tc.fault)
			r := c.request(`PUT {tenant}2 {"tenant-name":""}`)
			r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", strings.TrimPrefix(server.URL, "http://")
			status := 0
			if resp, err := server.Client().Do(r); err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			if status != tc.status {
				t.Errorf("%s: got status %d, want %d", tc.reason, status, tc.status)
			}
			c.simulator.Repair()
			if got := c.do(c.request("GET {tenant}2")).Code == http.StatusOK; got != tc.exists {
				t.Errorf("%s: the object exists: %t, want %t", tc.reason, got, tc.exists)
			}
		})
	}
}

func TestFaultsEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	c.simulator.Script(aai.Fault{Status: 500}, aai.Fault{Code: 7406}, aai.Fault{Status: 502}, aai.Fault{Method: http.MethodGet, Status: 503, Times: -1})
	for i, want := range []string{"500", "400 5.4.7406", "502", "503", "503"} {
		c.want("faults apply in order, request "+strconv.Itoa(i), "GET {tenant}", want)
	}
	c.simulator.Repair()
	c.want("the peer is repaired", "GET {tenant}", "200")
}

// TestAnotherClient changes an object between another client's GET and PUT.
func TestAnotherClient(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	c.simulator.Script(aai.Fault{Method: http.MethodPut, Path: "/tenants/", Before: func() {
		c.want("the other client is first", `PATCH {tenant} {"tenant-context":"c"}`, "200")
	}})
	c.want("the version is stale", `PUT {tenant} {"tenant-name":"x","resource-version":"{version {tenant}}"}`, "412 5.4.6131")
}

func TestConcurrentClients(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	var group sync.WaitGroup
	for i := range 20 {
		r := c.request(`PUT {tenant}` + strconv.Itoa(i) + ` {"tenant-name":""}`)
		group.Go(func() {
			if w := c.do(r); w.Code != http.StatusCreated {
				t.Errorf("got %d: %s", w.Code, w.Body)
			}
		})
	}
	group.Wait()
	if got := strings.Count(c.get("{region}/tenants"), `"tenant-id"`); got != 21 {
		t.Errorf("got %d tenants, want 21", got)
	}
}

// FuzzRequest sends any path and body. A rejected request changes nothing.
func FuzzRequest(f *testing.F) {
	f.Add("PUT", "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/x", `{"tenant-name":""}`)
	f.Add("PUT", "/network/generic-vnfs/generic-vnf/V1/relationship-list/relationship", `{"related-to":"tenant","relationship-data":[{}]}`)
	f.Add("POST", "/bulk/single-transaction", `{"operations":[{"action":"put","uri":"//x?%","body":null}]}`)
	f.Add("PUT", "/bulkprocess", `{"transactions":[null,{"put":[{"uri":"/network/generic-vnfs/generic-vnf/V1","body":{}}]}]}`)
	f.Add("GET", "/cloud-infrastructure/cloud-regions?resultIndex=9999999999&resultSize=1", ``)
	f.Add("PATCH", "/network/generic-vnfs/generic-vnf/V1", `{"relationship-list":{"relationship":[1]}}`)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		if strings.ContainsAny(path, " \x7f") || !strings.HasPrefix(path, "/") {
			return
		}
		if _, err := http.NewRequest(method, "http://aai/aai/v30"+path, nil); err != nil || method == "" {
			return
		}
		c := newClient(t, aai.Config{})
		before := c.get("/cloud-infrastructure/cloud-regions?depth=all") + c.get("/network/generic-vnfs?depth=all")
		r := c.request(method + " /")
		next, err := http.NewRequestWithContext(t.Context(), method, "http://aai/aai/v30"+path, strings.NewReader(body))
		if err != nil {
			return
		}
		next.Header = r.Header
		if w := c.do(next); w.Code < 400 {
			return
		}
		after := c.get("/cloud-infrastructure/cloud-regions?depth=all") + c.get("/network/generic-vnfs?depth=all")
		if before != after {
			t.Errorf("a rejected request changes objects (-before +after):\n%s", cmp.Diff(before, after))
		}
	})
}
