package aai_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// TestRequests sends requests in order. All but the last prepare the last one.
func TestRequests(t *testing.T) {
	t.Parallel()
	const resourceA = `PUT {resource}/a {a} 201`
	const vserverA = `PUT {vserver}/a {v} 201`
	cases := map[string]struct {
		reason string
		steps  []string // "METHOD PATH BODY STATUS", and the code of an error
	}{
		"create":             {"an object that is absent is created", []string{resourceA}},
		"replace":            {"an object is replaced under its resource version", []string{resourceA, `PUT {resource}/a {"name":"b","group":"","version":"","kind":"","namespace":"","selflink":"","resource-version":"{version {resource}/a}"} 200`}},
		"replace unread":     {"a version is required", []string{resourceA, `PUT {resource}/a {a} 412 5.4.6130`}},
		"replace stale":      {"another version is a conflict", []string{resourceA, `PUT {resource}/a {"name":"a","group":"","version":"","kind":"","namespace":"","selflink":"","resource-version":"1"} 412 5.4.6131`}},
		"create with":        {"an object that is absent has no version", []string{`PUT {tenant}2 {"tenant-name":"x","resource-version":"1"} 412 5.4.6135`}},
		"no parent":          {"a parent must exist", []string{`PUT {region}/tenants/tenant/t9/k8s-resources/k8s-resource/a {a} 404 5.4.6114`}},
		"key differs":        {"the keys of the path and the body are the same", []string{`PUT {resource}/a {"id":"b","name":"","group":"","version":"","kind":"","namespace":"","selflink":""} 400 5.2.3000`}},
		"key equal":          {"a key may be in both", []string{`PUT {resource}/a {"id":"a","name":"","group":"","version":"","kind":"","namespace":"","selflink":""} 201`}},
		"required":           {"a mandatory attribute is there", []string{`PUT {resource}/a {"name":"a"} 400 5.2.3000`}},
		"empty":              {"its presence is enough", []string{`PUT {tenant}2 {"tenant-name":""} 201`}},
		"together":           {"two attributes need each other", []string{`PUT {vnfs}/V2 {"vnf-type":"x","model-version-id":"1"} 400 5.2.3000`}},
		"boolean":            {"a value has its type", []string{`PUT {vserver}/a {"vserver-name":"a","vserver-selflink":"x","in-maint":"false"} 400 5.2.3000`}},
		"integer":            {"likewise", []string{`PUT {flavor}/a {"flavor-name":"a","flavor-selflink":"x","flavor-ram":1.5} 400 5.2.3000`}},
		"list":               {"likewise", []string{`PUT {resource}/a {"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","labels":[1]} 400 5.2.3000`}},
		"null":               {"likewise", []string{`PUT {tenant}2 {"tenant-name":null} 400 5.2.3000`}},
		"no object":          {"a body is an object", []string{`PUT {tenant}2 [] 400 5.2.3000`}},
		"null object":        {"likewise", []string{`PUT {tenant}2 null 400 5.2.3000`}},
		"two objects":        {"and nothing else", []string{`PUT {tenant}2 {"tenant-name":""}{} 400 5.2.3000`}},
		"unknown path":       {"the grammar of paths is the schema's", []string{`GET /cloud-infrastructure/clouds/cloud/x 400 5.2.3000`}},
		"no key":             {"an object has all its keys", []string{`GET /cloud-infrastructure/cloud-regions/cloud-region/k8s 400 5.2.3000`}},
		"empty key":          {"a key has text", []string{`GET /cloud-infrastructure/cloud-regions/cloud-region//r1 400 5.2.3000`}},
		"encoding":           {"a key is UTF-8", []string{`GET {tenant}%ff 400 5.6.3008`}},
		"slash":              {"a key may have an encoded slash", []string{`PUT {tenant}%2F2 {"tenant-name":""} 201`, `GET {tenant}%2f2 200`}},
		"method":             {"an object cannot be posted", []string{`POST {tenant} {} 400 5.6.3012`}},
		"method of list":     {"a collection is only read", []string{`DELETE {region}/tenants 400 5.6.3012`}},
		"method of edges":    {"likewise", []string{`PUT {tenant}/relationship-list {} 400 5.6.3012`}},
		"read edge":          {"a single edge is not read", []string{`GET {tenant}/{edge} 400 5.6.3012`}},
		"absent":             {"an object that is absent is not found", []string{`GET {tenant}2 404 5.4.6114`}},
		"empty list":         {"nor is an empty collection", []string{`GET {resource}s 400 5.2.3000`, `GET {tenant}/k8s-resources 404 5.4.6114`}},
		"list of none":       {"nor a collection without a match", []string{resourceA, `GET {tenant}/k8s-resources?data-owner=k8splugin 404 5.4.6114`}},
		"filter unknown":     {"a filter is an attribute", []string{resourceA, `GET {tenant}/k8s-resources?owner=x 400 5.2.3000`}},
		"filter one":         {"a single object has no filter", []string{`GET {tenant}?tenant-name=x 400 5.2.3000`}},
		"depth":              {"a depth is a number, or all", []string{`GET {tenant}?depth=deep 400 4.0.4016`}},
		"page":               {"pages begin with 1", []string{resourceA, `GET {tenant}/k8s-resources?resultIndex=0&resultSize=1 400 5.2.3000`}},
		"half a page":        {"a page has a size", []string{resourceA, `GET {tenant}/k8s-resources?resultIndex=1 400 5.2.3000`}},
		"past the end":       {"a page past the end is empty", []string{resourceA, `GET {tenant}/k8s-resources?resultIndex=2&resultSize=1 404 5.4.6114`}},
		"delete":             {"an object is deleted under its version", []string{resourceA, `DELETE {resource}/a?resource-version={version {resource}/a} 204`, `GET {resource}/a 404 5.4.6114`}},
		"delete unread":      {"a version is required", []string{resourceA, `DELETE {resource}/a 412 5.4.6130`}},
		"delete stale":       {"another version is a conflict", []string{resourceA, `DELETE {resource}/a?resource-version=1 412 5.4.6131`}},
		"delete absent":      {"an object that is absent is not found", []string{`DELETE {resource}/a?resource-version=1 404 5.4.6114`}},
		"delete parent":      {"a child blocks its parent", []string{resourceA, `DELETE {tenant}?resource-version={version {tenant}} 400 5.4.6110`}},
		"delete region":      {"likewise", []string{`DELETE {region}?resource-version={version {region}} 400 5.4.6110`}},
		"delete complex":     {"an edge blocks its target", []string{`DELETE {complex}?resource-version={version {complex}} 400 5.4.6110`}},
		"delete vnf":         {"an edge without that rule does not, and children go with their parent", []string{`PUT {vnf}/{edge} {"related-link":"{tenant}"} 200`, `DELETE {vnf}?resource-version={version {vnf}} 204`, `GET {module} 404 5.4.6114`}},
		"delete in a chain":  {"what goes along may be blocked, too", []string{`PUT {network}/n {"subnets":{"subnet":[{"subnet-id":"s"}]}} 201`, `PUT {vserver}/a {"vserver-name":"a","vserver-selflink":"x","l-interfaces":{"l-interface":[{"interface-name":"e","l3-interface-ipv4-address-list":[{"l3-interface-ipv4-address":"10.0.0.1"}]}]}} 201`, `PUT {network}/n/subnets/subnet/s/{edge} {"related-link":"{vserver}/a/l-interfaces/l-interface/e/l3-interface-ipv4-address-list/10.0.0.1"} 200`, `DELETE {network}/n?resource-version={version {network}/n} 400 5.4.6110`}},
		"patch":              {"a patch ignores the version", []string{`PATCH {tenant} {"tenant-context":"c","resource-version":"1"} 200`}},
		"patch absent":       {"a patch needs an object", []string{`PATCH {tenant}2 {"tenant-context":"c"} 404 5.4.6114`}},
		"patch children":     {"a patch has no children", []string{`PATCH {tenant} {"vservers":{"vserver":[]}} 400 5.2.3000`}},
		"patch mandatory":    {"a mandatory attribute cannot be removed", []string{`PATCH {tenant} {"tenant-name":null} 400 5.2.3000`}},
		"implied delete":     {"a PUT may not delete children", []string{`PUT {vnf} {"vnf-type":"x","resource-version":"{version {vnf}}","vf-modules":{"vf-module":[]}} 403 5.0.9109`}},
		"child version":      {"a child in a PUT needs its own version", []string{`PUT {vnf} {"vnf-type":"x","resource-version":"{version {vnf}}","vf-modules":{"vf-module":[{"vf-module-id":"M1"}]}} 412 5.4.6130`}},
		"child":              {"with it, it is replaced", []string{`PUT {vnf} {"vnf-type":"x","resource-version":"{version {vnf}}","vf-modules":{"vf-module":[{"vf-module-id":"M1","resource-version":"{version {module}}"}]}} 200`}},
		"child without key":  {"a child has its key", []string{`PUT {vnf} {"vnf-type":"x","resource-version":"{version {vnf}}","vf-modules":{"vf-module":[{}]}} 400 5.2.3000`}},
		"container":          {"a container has an array", []string{`PUT {vnfs}/V2 {"vnf-type":"x","vf-modules":[]} 400 5.2.3000`}},
		"array":              {"an array without a wrapper has none", []string{`PUT {pserver}/p {"hpa-capacity":{"hpa-capacity":[]}} 400 5.2.3000`}},
		"relate":             {"either end may name the other", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"/aai/v30{vnf}"} 200`}},
		"relate again":       {"an edge that is there succeeds", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`, `PUT {vnf}/{edge} {"related-link":"http://aai/aai/v30{resource}/a"} 200`}},
		"relate by keys":     {"keys name an object, too", []string{resourceA, `PUT {vnf}/{edge} {"related-to":"k8s-resource","relationship-data":[{"relationship-key":"cloud-region.cloud-owner","relationship-value":"k8s"},{"relationship-key":"cloud-region.cloud-region-id","relationship-value":"r1"},{"relationship-key":"tenant.tenant-id","relationship-value":"t1"},{"relationship-key":"k8s-resource.id","relationship-value":"a"}]} 200`}},
		"relate by some":     {"but all of them", []string{resourceA, `PUT {vnf}/{edge} {"related-to":"k8s-resource","relationship-data":[{"relationship-key":"k8s-resource.id","relationship-value":"a"}]} 400 5.2.3000`}},
		"link before keys":   {"the link wins", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}","related-to":"x","relationship-data":[]} 200`}},
		"relate nothing":     {"one of the two is there", []string{`PUT {vnf}/{edge} {"related-to":"tenant"} 400 5.2.3000`}},
		"relate absent":      {"the object must exist", []string{`PUT {resource}/a/{edge} {"related-link":"{vnf}"} 404 5.4.6114`}},
		"relate to absent":   {"the target must exist", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnfs}/V2"} 404 5.4.6129`}},
		"relate to list":     {"a target is an object", []string{`PUT {vnf}/{edge} {"related-link":"{region}/tenants"} 400 5.2.3000`}},
		"no rule":            {"an edge has a rule", []string{resourceA, vserverA, `PUT {resource}/a/{edge} {"related-link":"{vserver}/a"} 400 5.4.6120`}},
		"other label":        {"and its label", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}","relationship-label":"org.onap.relationships.inventory.Uses"} 400 5.4.6120`}},
		"label":              {"which may be named", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}","relationship-label":"tosca.relationships.HostedOn"} 200`}},
		"containment":        {"a child is no relationship", []string{`PUT {vnf}/{edge} {"related-link":"{module}"} 400 5.4.6145`}},
		"second VNF":         {"a resource has one VNF", []string{resourceA, `PUT {vnfs}/V2 {"vnf-type":"x"} 201`, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`, `PUT {resource}/a/{edge} {"related-link":"{vnfs}/V2"} 400 5.4.6140`}},
		"second resource":    {"a VNF has several resources", []string{resourceA, `PUT {resource}/b {a} 201`, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`, `PUT {resource}/b/{edge} {"related-link":"{vnf}"} 200`}},
		"second tenant":      {"a VNF is in one tenant", []string{`PUT {tenant}2 {"tenant-name":""} 201`, `PUT {vnf}/{edge} {"related-link":"{tenant}"} 200`, `PUT {vnf}/{edge} {"related-link":"{tenant}2"} 400 5.4.6140`}},
		"VNF and module":     {"and a resource may have one of each", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`, `PUT {resource}/a/{edge} {"related-link":"{module}"} 200`}},
		"unrelate":           {"an edge is removed by its target", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`, `DELETE {resource}/a/{edge} {"related-link":"{vnf}"} 204`, `GET {resource}/a/relationship-list 404 5.4.6149`}},
		"unrelate none":      {"even if it is absent", []string{resourceA, `DELETE {resource}/a/{edge} {"related-link":"{vnf}"} 204`}},
		"unrelate absent":    {"but its object is there", []string{`DELETE {resource}/a/{edge} {"related-link":"{vnf}"} 404 5.4.6114`}},
		"edge in a PUT":      {"an edge can be created with its object", []string{`PUT {resource}/a {"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","relationship-list":{"relationship":[{"related-link":"{vnf}"}]}} 201`, `GET {resource}/a/relationship-list 200`}},
		"edge to absent":     {"then neither is made", []string{`PUT {resource}/a {"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","relationship-list":{"relationship":[{"related-link":"{vnfs}/V2"}]}} 404 5.4.6129`, `GET {resource}/a 404 5.4.6114`}},
		"edge without rule":  {"a missing rule is a missing target there", []string{vserverA, `PUT {resource}/a {"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","relationship-list":{"relationship":[{"related-link":"{vserver}/a"}]}} 404 5.4.6129`}},
		"edges replaced":     {"a list of edges replaces the present ones", []string{`PUT {region} {"resource-version":"{version {region}}","relationship-list":{"relationship":[]}} 200`, `GET {region}/relationship-list 404 5.4.6149`}},
		"edges kept":         {"without a list, they stay", []string{`PUT {region} {"resource-version":"{version {region}}"} 200`, `GET {region}/relationship-list 200`}},
		"edges of deleted":   {"edges go with their object", []string{resourceA, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`, `DELETE {resource}/a?resource-version={version {resource}/a} 204`, `GET {vnf}/relationship-list 404 5.4.6149`}},
		"list without array": {"a list of edges has an array", []string{`PUT {tenant}2 {"tenant-name":"","relationship-list":{}} 400 5.2.3000`}},
		"traversal":          {"queries belong to another service", []string{`PUT /query {} 400 5.2.3000`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			for _, step := range tc.steps {
				text, want := splitStep(step)
				c.want(tc.reason, text, want)
			}
			if got := c.simulator.Violations(); got != nil {
				t.Errorf("%s: there are violations: %q", tc.reason, got)
			}
		})
	}
}

// splitStep splits a step into its request and its outcome.
func splitStep(step string) (text, want string) {
	words := strings.Split(step, " ")
	n := len(words) - 1
	if strings.Contains(words[n], ".") {
		n--
	}
	return strings.Join(words[:n], " "), strings.Join(words[n:], " ")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		set    map[string]string // an empty value removes a header
		want   string
	}{
		"no app":           {"a client has a name", "GET {tenant}", map[string]string{"X-FromAppId": ""}, "400 4.0.4009"},
		"source of truth":  {"there are other headers for it", "GET {tenant}", map[string]string{"X-FromAppId": "", "X-SourceOfTruth": "so"}, "200"},
		"partner":          {"a partner has several parts", "GET {tenant}", map[string]string{"X-FromAppId": "", "X-ONAP-PartnerName": "SO.SO"}, "200"},
		"short partner":    {"one is not enough", "GET {tenant}", map[string]string{"X-FromAppId": "", "X-ONAP-PartnerName": "SO"}, "400 4.0.4009"},
		"no transaction":   {"a request has an id", "GET {tenant}", map[string]string{"X-TransactionId": ""}, "400 4.0.4010"},
		"request id":       {"there are other headers for it", "GET {tenant}", map[string]string{"X-TransactionId": "", "X-ONAP-RequestID": "1"}, "200"},
		"no accept":        {"without Accept, XML may come", "GET {tenant}", map[string]string{"Accept": ""}, "406 4.0.4014"},
		"any accept":       {"likewise", "GET {tenant}", map[string]string{"Accept": "*/*"}, "406 4.0.4014"},
		"several":          {"JSON may be one of several", "GET {tenant}", map[string]string{"Accept": "text/plain, application/json;q=0.5"}, "200"},
		"no credentials":   {"they are mandatory, and their absence is 403", "GET {tenant}", map[string]string{"Authorization": ""}, "403 5.1.3300"},
		"wrong password":   {"likewise", "GET {tenant}", map[string]string{"Authorization": "Basic dTpx"}, "403 5.1.3300"},
		"unknown user":     {"likewise", "GET {tenant}", map[string]string{"Authorization": "Basic dTI6"}, "403 5.1.3300"},
		"type":             {"a body has a type", `PUT {tenant}2 {"tenant-name":""}`, map[string]string{"Content-Type": ""}, "415 5.2.3000"},
		"type of a patch":  {"a patch has its own", `PATCH {tenant} {}`, map[string]string{"Content-Type": "application/json"}, "415 5.2.3000"},
		"override":         {"a POST can be a patch", `POST {tenant} {}`, map[string]string{"Content-Type": "application/merge-patch+json", "X-HTTP-Method-Override": "PATCH"}, "200"},
		"override of POST": {"of nothing else", `POST {tenant} {}`, map[string]string{"X-HTTP-Method-Override": "PUT"}, "400 5.6.3012"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			r := c.request(tc.text)
			for header, value := range tc.set {
				r.Header.Del(header)
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			if got := outcome(c.do(r)); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestVersionsOfTheAPI(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		api    string
		text   string
		want   string
	}{
		"oldest":             {"v11 is the oldest version", "/aai/v11", "GET {tenant}", "200"},
		"retired":            {"older ones are retired", "/aai/v10", "GET {tenant}", "410 5.6.3007"},
		"newest":             {"v32 is the newest version", "/aai/v32", "GET {tenant}", "200"},
		"unknown":            {"newer ones are unknown", "/aai/v33", "GET {tenant}", "400 5.6.3007"},
		"latest":             {"a version is a number", "/aai/latest", "GET {tenant}", "400 5.6.3007"},
		"zero":               {"above zero", "/aai/v0", "GET {tenant}", "400 5.6.3007"},
		"no prefix":          {"all paths begin with /aai", "", "GET {tenant}", "400 5.6.3007"},
		"resource too early": {"v24 has the first k8s-resource", "/aai/v23", `PUT {resource}/a {a}`, "400 5.2.3000"},
		"resource":           {"which stays", "/aai/v24", `PUT {resource}/a {a}`, "201"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			c.api = tc.api
			c.want(tc.reason, tc.text, tc.want)
		})
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		api    string
		text   string
		want   []string
	}{
		"known":    {"known attributes are right", "/aai/v30", `PUT {tenant}2 {"tenant-name":"","data-owner":"x"}`, nil},
		"unknown":  {"unknown ones are ignored and reported", "/aai/v30", `PUT {tenant}2 {"tenant-name":"","status":"x"}`, []string{`tenant: unknown attribute "status" in version v30`}},
		"newer":    {"so are those of later versions", "/aai/v22", `PUT {tenant}2 {"tenant-name":"","data-owner":"x"}`, []string{`tenant: unknown attribute "data-owner" in version v22`}},
		"two verb": {"so are transactions whose operations A&AI repeats", "/aai/v30", `PUT /bulkprocess {"transactions":[{"put":[{"uri":"{tenant}2","body":{"tenant-name":""}}],"delete":[{"uri":"{tenant}2?resource-version=1","body":{}}]}]}`, []string{"a transaction of bulkprocess has several verbs"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, aai.Config{})
			c.api = tc.api
			c.want(tc.reason, tc.text, "201")
			if diff := cmp.Diff(tc.want, c.simulator.Violations()); diff != "" {
				t.Errorf("%s: the violations differ (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestImpliedDeletes(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{ImpliedDelete: map[string][]string{"test": {"generic-vnf"}}})
	c.want("the operator permits it to this client", `PUT {vnf} {"vnf-type":"x","resource-version":"{version {vnf}}","vf-modules":{"vf-module":[]}}`, "200")
	c.want("the omitted child is deleted", `GET {module}`, "404 5.4.6114")
}

func TestRights(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	c.simulator.Deny("/network/l3-networks")
	c.want("the account lacks the right", `PUT {network}/n {}`, "403 5.1.3300")
	c.want("in a transaction, too", `POST /bulk/single-transaction {"operations":[{"action":"put","uri":"{network}/n","body":{}}]}`, "403 5.1.3300")
	c.want("reading is another right", `GET {network}/n`, "404 5.4.6114")
	c.want("other paths are permitted", `PUT {resource}/a {a}`, "201")
	c.simulator.Deny()
	c.want("the operator has granted it", `PUT {network}/n {}`, "201")
}

// TestErrorDocument compares the whole document of an error.
func TestErrorDocument(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	got := c.do(c.request("GET {tenant}2")).Body.String()
	want := `{"requestError":{"serviceException":{"messageId":"SVC3001","text":"%1 of %2 was rejected (msg=%3) (ec=%4)",` +
		`"variables":["GET","/aai/v30/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t12",` +
		`"no node of type tenant at /cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t12","ERR.5.4.6114"]}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r := c.request("GET {tenant}")
	r.Header.Del("Authorization")
	if got := c.do(r).Body.String(); !strings.Contains(got, `"policyException":{"messageId":"POL3300"`) {
		t.Errorf("a refusal of access is a policy exception, got %s", got)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	if _, err := aai.New(aai.Config{}); err == nil {
		t.Error("a simulator without users admits no client, and must not start")
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	c := newClient(t, aai.Config{})
	c.want("a change", `PUT {resource}/a {a}`, "201")
	c.want("a failure", `DELETE {resource}/a`, "412 5.4.6130")
	c.want("several changes", `POST /bulk/single-transaction {"operations":[{"action":"put","uri":"{resource}/b","body":{a}},{"action":"put","uri":"{resource}/c","body":{a}}]}`, "201")
	c.want("the older form", `PUT /bulkprocess {"transactions":[{"put":[{"uri":"{resource}/d","body":{a}}]}]}`, "201")
	c.want("no change", `GET {tenant}/k8s-resources?depth=0`, "200")
	got := c.simulator.Journal()
	for i := range got {
		if got[i].AppID != "test" || got[i].TransactionID != "1" || (got[i].Method == http.MethodPut) != slices.Contains([]int{0, 3}, i) {
			t.Errorf("entry %d names another client or method: %+v", i, got[i])
		}
		got[i] = aai.Entry{URI: got[i].URI[strings.LastIndex(got[i].URI, "/")+1:], Changes: got[i].Changes, Status: got[i].Status, Code: got[i].Code}
	}
	want := []aai.Entry{
		{URI: "a", Changes: 1, Status: 201},
		{URI: "a", Changes: 1, Status: 412, Code: "ERR.5.4.6130"},
		{URI: "single-transaction", Changes: 2, Status: 201},
		{URI: "bulkprocess", Changes: 1, Status: 201},
		{URI: "k8s-resources?depth=0", Changes: 0, Status: 200},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the journal differs (-want +got):\n%s", diff)
	}
	if len(c.simulator.Journal()) != 0 {
		t.Error("the journal has the requests since the last call only")
	}
}
