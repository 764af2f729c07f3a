package vnflcm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWrongRequests sends wrong requests, and compares the status and the detail of the
// answers.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "/vnflcm/v2")
	at, used := w.created(), w.instantiated()
	occurrence := w.accepted("POST", w.created()+"/instantiate", `{"flavourId": "simple"}`)
	const read = "cannot read the request: "
	const all, v1 = "/vnf_instances", "/vnflcm/v1/vnf_instances"
	long := strings.Repeat("x", 1025)
	cases := map[string]struct {
		reason, method, path, body string
		headers                    []string
		status                     int
		detail                     string
	}{
		"NoVersion":      {"each request has a version", "GET", all, "", []string{"Version", ""}, 400, read + "Version: is missing"},
		"BadVersion":     {"a malformed one", "GET", all, "", []string{"Version", "2"}, 400, read + "Version: must be a version such as 2.0.0"},
		"OtherVersion":   {"the version of the other path", "GET", all, "", []string{"Version", "1.3.0"}, 406, "the API has version 2.0.0, not 1.3.0"},
		"NewerVersion":   {"a version of the future", "POST", all, `{"vnfdId": "x"}`, []string{"Version", "3.0.0"}, 406, "the API has version 2.0.0, not 3.0.0"},
		"Accept":         {"the response is JSON", "GET", all, "", []string{"Accept", "text/plain"}, 406, "the response is application/json"},
		"Media":          {"a body of another type", "POST", all, "<a/>", []string{"Content-Type", "application/xml"}, 415, `the body is "application/xml", not application/json or text/plain`},
		"MergePatchPost": {"only PATCH has a merge patch", "POST", all, "{}", []string{"Content-Type", "application/merge-patch+json"}, 415, `the body is "application/merge-patch+json", not application/json or text/plain`},
		"Method":         {"a list is not replaced", "PUT", all, "{}", nil, 405, "only GET, POST is allowed for this path"},
		"DeleteOp":       {"occurrences are not deleted", "DELETE", occurrence, "", nil, 405, "only GET is allowed for this path"},
		"Path":           {"an operation that the API does not have", "POST", at + "/operate", "{}", nil, 404, "no resource has this path"},
		"PackageV1":      {"version 1 has no change of packages", "POST", "/vnflcm/v1" + at + "/change_vnfpkg", "{}", nil, 404, "no resource has this path"},

		"NotJSON":       {"the body is no JSON", "POST", all, "vnfdId", nil, 400, read + "the body is not JSON: line 1, column 1: 'v' cannot be here"},
		"Empty":         {"there is no body", "POST", all, "", nil, 400, read + "the body is empty"},
		"Array":         {"the body is an object", "POST", all, "[]", nil, 400, read + "must be an object, not an array"},
		"NoVNFD":        {"a VNF has a VNFD", "POST", all, "{}", nil, 400, read + "vnfdId: is missing"},
		"EmptyVNFD":     {"which is not empty", "POST", all, `{"vnfdId": ""}`, nil, 400, read + "vnfdId: must not be empty"},
		"LongVNFD":      {"and has a limit", "POST", all, `{"vnfdId": "` + long + `"}`, nil, 400, read + "vnfdId: must not be longer than 255 characters"},
		"Twice":         {"a key is given once", "POST", all, `{"vnfdId": "a", "vnfdId": "b"}`, nil, 400, read + "vnfdId: is given twice"},
		"Name":          {"a name is a text", "POST", all, `{"vnfdId": "a", "vnfInstanceName": 1}`, nil, 400, read + "vnfInstanceName: must be a string, not a number"},
		"LongName":      {"of a limit", "POST", all, `{"vnfdId": "a", "vnfInstanceName": "` + long + `"}`, nil, 400, read + "vnfInstanceName: must not be longer than 255 characters"},
		"Description":   {"likewise", "POST", all, `{"vnfdId": "a", "vnfInstanceDescription": "` + long + `"}`, nil, 400, read + "vnfInstanceDescription: must not be longer than 1024 characters"},
		"Metadata":      {"metadata is a map", "POST", all, `{"vnfdId": "a", "metadata": []}`, nil, 400, read + "metadata: must be an object, not an array"},
		"LongValue":     {"whose texts have a limit", "POST", all, `{"vnfdId": "a", "metadata": {"k": "` + long + `"}}`, nil, 400, read + "metadata.k: must not be longer than 1024 characters"},
		"Key":           {"and whose keys have a form", "POST", all, `{"vnfdId": "a", "metadata": {"k!": "v"}}`, nil, 400, read + "metadata.k!: has a key that is not 1 to 255 letters, digits, spaces, '-', '_', ':', '.' or '/'"},
		"LargeMetadata": {"metadata is stored", "POST", all, `{"vnfdId": "a", "metadata": {"k": ["` + strings.Repeat("x", 17<<10) + `"]}}`, nil, 400, read + "metadata: is longer than 16384 bytes"},
		"UnknownVNFD":   {"no package has it", "POST", all, `{"vnfdId": "none"}`, nil, 422, "cannot create VNF: no enabled package has the VNFD none"},
		"Project":       {"a project has a name", "POST", all + "?project=a/b", `{"vnfdId": "a"}`, nil, 400, read + "project: must be 1 to 128 letters, digits, '.', '_' or '-', with a letter or digit at both ends"},

		"NoVNF":          {"there is none", "GET", all + "/none", "", nil, 404, "cannot find VNF none: it does not exist"},
		"DeleteNone":     {"there is none", "DELETE", all + "/none", "", nil, 404, "cannot find VNF none: it does not exist"},
		"PatchNone":      {"there is none", "PATCH", all + "/none", "{}", nil, 404, "cannot find VNF none: it does not exist"},
		"DeleteUsed":     {"it is terminated first", "DELETE", used, "", nil, 409, "cannot delete VNF vnf-0002: it is instantiated"},
		"NoFlavor":       {"a flavor is chosen", "POST", at + "/instantiate", "{}", nil, 400, read + "flavourId: is missing"},
		"Level":          {"a level has a name", "POST", at + "/instantiate", `{"flavourId": "a", "instantiationLevelId": ""}`, nil, 400, read + "instantiationLevelId: must not be empty"},
		"VIMList":        {"version 2 has a map", "POST", at + "/instantiate", `{"flavourId": "a", "vimConnectionInfo": []}`, nil, 400, read + "vimConnectionInfo: must be an object, not an array"},
		"VIMMap":         {"version 1 has a list", "POST", "/vnflcm/v1" + at + "/instantiate", `{"flavourId": "a", "vimConnectionInfo": {}}`, nil, 400, read + "vimConnectionInfo: must be an array, not an object"},
		"VIMs":           {"of one item", "POST", "/vnflcm/v1" + at + "/instantiate", `{"flavourId": "a", "vimConnectionInfo": [{"id": "a", "vimType": "T"}, {"id": "b", "vimType": "T"}]}`, nil, 400, read + "vimConnectionInfo: must not have more than 1 items"},
		"VIMType":        {"a VIM has a type", "POST", at + "/instantiate", `{"flavourId": "a", "vimConnectionInfo": {"v": {"vimId": "x"}}}`, nil, 400, read + "vimConnectionInfo.v.vimType: is missing"},
		"VIMID":          {"in a list, it has an id", "POST", "/vnflcm/v1" + at + "/instantiate", `{"flavourId": "a", "vimConnectionInfo": [{"vimType": "T"}]}`, nil, 400, read + "vimConnectionInfo[0].id: is missing"},
		"Params":         {"parameters are a map", "POST", at + "/instantiate", `{"flavourId": "a", "additionalParams": "x"}`, nil, 400, read + "additionalParams: must be an object, not a string"},
		"LongParam":      {"whose texts have a limit", "POST", at + "/instantiate", `{"flavourId": "a", "additionalParams": {"k": "` + long + `"}}`, nil, 400, read + "additionalParams.k: must not be longer than 1024 characters"},
		"LargeParams":    {"and which has one itself", "POST", at + "/instantiate", `{"flavourId": "a", "additionalParams": {"k": ["` + strings.Repeat("x", 257<<10) + `"]}}`, nil, 413, read + "its parameters are longer than 262144 bytes"},
		"Extensions":     {"likewise", "POST", at + "/instantiate", `{"flavourId": "a", "extensions": {"k": "` + long + `"}}`, nil, 400, read + "extensions.k: must not be longer than 1024 characters"},
		"Properties":     {"likewise", "PATCH", at, `{"vnfConfigurableProperties": {"k": "` + long + `"}}`, nil, 400, read + "vnfConfigurableProperties.k: must not be longer than 1024 characters"},
		"NoPoints":       {"a link has connection points", "POST", at + "/instantiate", `{"flavourId": "a", "extVirtualLinks": [{"id": "a", "resourceId": "b", "extCps": []}]}`, nil, 400, read + "extVirtualLinks[0].extCps: must not have fewer than 1 items"},
		"NoResource":     {"and a network", "POST", at + "/instantiate", `{"flavourId": "a", "extVirtualLinks": [{"id": "a", "extCps": [{"cpdId": "a", "cpConfig": {"k": {}}}]}]}`, nil, 400, read + "extVirtualLinks[0].resourceId: is missing"},
		"Instantiated":   {"it is instantiated", "POST", used + "/instantiate", `{"flavourId": "a"}`, nil, 409, "cannot change VNF vnf-0002: its state does not allow it"},
		"Terminated":     {"it is not", "POST", at + "/terminate", `{"terminationType": "FORCEFUL"}`, nil, 409, "cannot change VNF vnf-0001: its state does not allow it"},
		"TerminateEmpty": {"a type is chosen", "POST", used + "/terminate", "", nil, 400, read + "terminationType: is missing"},
		"TerminateType":  {"of two", "POST", used + "/terminate", `{"terminationType": "SOFT"}`, nil, 400, read + "terminationType: must be one of GRACEFUL, FORCEFUL"},
		"Grace":          {"a time is positive", "POST", used + "/terminate", `{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}`, nil, 400, read + "gracefulTerminationTimeout: must be at least 1"},
		"ScaleType":      {"a direction is chosen", "POST", used + "/scale", `{"aspectId": "a"}`, nil, 400, read + "type: is missing"},
		"ScaleTypes":     {"of two", "POST", used + "/scale", `{"type": "UP", "aspectId": "a"}`, nil, 400, read + "type: must be one of SCALE_OUT, SCALE_IN"},
		"ScaleAspect":    {"an aspect is named", "POST", used + "/scale", `{"type": "SCALE_IN"}`, nil, 400, read + "aspectId: is missing"},
		"ScaleSteps":     {"steps are positive", "POST", used + "/scale", `{"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 0}`, nil, 400, read + "numberOfSteps: must be at least 1"},
		"ScaleFraction":  {"and whole", "POST", used + "/scale", `{"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 1.5}`, nil, 400, read + "numberOfSteps: must be an integer, not a number"},
		"HealAll":        {"all is a boolean", "POST", used + "/heal", `{"additionalParams": {"all": "yes"}}`, nil, 400, read + "additionalParams.all: must be a boolean"},
		"HealVNFCs":      {"components have ids", "POST", used + "/heal", `{"vnfcInstanceId": "a"}`, nil, 400, read + "vnfcInstanceId: must be an array, not a string"},
		"NullName":       {"a name is not deleted", "PATCH", at, `{"vnfInstanceName": null}`, nil, 400, read + "vnfInstanceName: must not be null"},
		"VNFCs":          {"a component is changed once", "PATCH", at, `{"vnfcInfoModifications": [{"id": "a", "vnfcConfigurableProperties": {}}, {"id": "a", "vnfcConfigurableProperties": {}}]}`, nil, 400, read + "vnfcInfoModifications[1].id: is given twice"},
		"VNFCProperties": {"and to something", "PATCH", at, `{"vnfcInfoModifications": [{"id": "a"}]}`, nil, 400, read + "vnfcInfoModifications[0].vnfcConfigurableProperties: is missing"},
		"NoLinks":        {"links are named", "POST", used + "/change_ext_conn", "{}", nil, 400, read + "extVirtualLinks: is missing"},
		"NotConnected":   {"the state is checked before the links", "POST", at + "/change_ext_conn", w.linked("{}"), nil, 409, "cannot change VNF vnf-0001: its state does not allow it"},
		"NoParams":       {"a new package has parameters", "POST", used + "/change_vnfpkg", `{"vnfdId": "x"}`, nil, 400, read + "additionalParams: is missing"},
		"PackageLinks":   {"it changes no links", "POST", used + "/change_vnfpkg", `{"vnfdId": "x", "additionalParams": {}, "extVirtualLinks": [{}]}`, nil, 422, "cannot carry out the request: extVirtualLinks[0]: is not supported here; use change_ext_conn"},

		"Filter":        {"a filter has a form", "GET", all + "?filter=a", "", nil, 400, read + "filter: must have conditions of the form (op,attribute,value)"},
		"FilterOp":      {"with known operators", "GET", "/vnf_lcm_op_occs?filter=(like,a,b)", "", nil, 400, read + "filter: has an unknown operator; allowed: eq, neq, gt, gte, lt, lte, in, nin, cont, ncont"},
		"Selectors":     {"selectors exclude each other", "GET", all + "?all_fields&fields=id", "", nil, 400, read + "all_fields: cannot be combined with other selectors"},
		"Dashed":        {"in each spelling", "GET", "/vnf_lcm_op_occs?fields=id&exclude-fields=error", "", nil, 400, read + "exclude_fields: cannot be combined with other selectors"},
		"Parameter":     {"a misspelled one would select all", "GET", all + "?filer=a", "", nil, 400, read + "filer: is not a known query parameter"},
		"NoOccurrence":  {"there is none", "GET", "/vnf_lcm_op_occs/none", "", nil, 404, "cannot find occurrence none: it does not exist"},
		"RetryNone":     {"there is none", "POST", "/vnf_lcm_op_occs/none/retry", "", nil, 404, "cannot find occurrence none: it does not exist"},
		"RetryRunning":  {"it has not failed", "POST", occurrence + "/retry", "", nil, 409, "cannot change occurrence occ-0004: it is STARTING"},
		"FailRunning":   {"it has not failed", "POST", occurrence + "/fail", "", nil, 409, "cannot change occurrence occ-0004: it is STARTING"},
		"CancelMode":    {"a mode is chosen", "POST", occurrence + "/cancel", "{}", []string{"Version", ""}, 400, read + "cancelMode: is missing"},
		"CancelModes":   {"of two", "POST", occurrence + "/cancel", `{"cancelMode": "NOW"}`, nil, 400, read + "cancelMode: must be one of GRACEFUL, FORCEFUL"},
		"CancelVersion": {"a version is checked if it is there", "POST", occurrence + "/cancel", `{"cancelMode": "GRACEFUL"}`, []string{"Version", "9.9.9"}, 406, "the API has version 2.0.0, not 9.9.9"},
		"V1Version":     {"version 1 has its own", "GET", v1, "", []string{"Version", "2.0.0"}, 406, "the API has version 1.3.0, not 2.0.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.t = t
			got := w.ask(tc.method, tc.path, tc.body, tc.headers...)
			problem := got.fields(t)
			if got.status != tc.status || problem["detail"] != tc.detail || problem["status"] != float64(tc.status) || problem["title"] != http.StatusText(tc.status) {
				t.Errorf("%s: %s %s\n got %d %v\nwant %d %s", tc.reason, tc.method, tc.path, got.status, problem["detail"], tc.status, tc.detail)
			}
		})
	}
	if len(w.vnfs) != 3 || len(w.occurrences) != 1 {
		t.Errorf("%d VNFs and %d occurrences are stored", len(w.vnfs), len(w.occurrences))
	}
}

// FuzzConnect sends bodies, and expects that each is accepted or refused.
func FuzzConnect(f *testing.F) {
	w := newWorld(f, "/vnflcm/v2")
	at := w.instantiated()
	for _, seed := range []string{
		`{"flavourId": "simple"}`, `{"extVirtualLinks": [{"id": "a", "resourceId": "b", "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": {"k": {}}}]}], "flavourId": "a"}`,
		`[]`, `{"vimConnectionInfo": {"a": null}}`, `{"vimConnectionInfo": [{"id": "a", "vimType": "b"}], "flavourId": "a"}`, `{"additionalParams": {"a": 1e999}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, body string, early bool) {
		root, version := "/vnflcm/v2", "2.0.0"
		if early {
			root, version = "/vnflcm/v1", "1.3.0"
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+root+at+"/change_ext_conn", strings.NewReader(body))
		r.Header.Set("Version", version)
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r)
		switch got.Code {
		case http.StatusAccepted, http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		default:
			t.Errorf("%q: status %d: %s", body, got.Code, got.Body)
		}
	})
}
