package so

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestNotifications sends notifications to an adapter that remembers one instance. The
// wrong ones are failures of the flow, or are rejected as SO's adapter does.
func TestNotifications(t *testing.T) {
	t.Parallel()
	v := VNF{Owner: "acme", Region: "east", Tenant: "t1", ID: "V1", Module: "M1", Release: "r"}
	const right = `{"instance-id":"i1","subscription-name":"i1-cnf-adapter","metadata":{"vfModuleId":"M1"},"resource-changes":{"created":[]}}`
	cases := map[string]struct {
		reason string
		body   string
		status int
		failed string // in the failure
	}{
		"unknown":      {"the adapter does not remember the instance", strings.ReplaceAll(right, "i1", "i2"), http.StatusBadRequest, ""},
		"field":        {"an unknown field is a failure", strings.Replace(right, "{", `{"more":1,`, 1), http.StatusBadRequest, `unknown field "more"`},
		"no JSON":      {"a notification is JSON", "x", http.StatusBadRequest, "invalid character"},
		"subscription": {"the subscription has the name that the adapter gave it", strings.Replace(right, "i1-cnf-adapter", "other", 1), http.StatusAccepted, `subscription "other"`},
		"metadata":     {"the metadata comes back as it was", strings.Replace(right, "M1", "M2", 1), http.StatusAccepted, "M2"},
		"right":        {"then A&AI is updated by the status", right, http.StatusAccepted, "GET /v1/instance/i1/status: status 404"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nothing := httptest.NewServer(http.NotFoundHandler())
			defer nothing.Close()
			d, err := New(Config{Service: Server{URL: nothing.URL}, AAI: Server{URL: nothing.URL}, Interval: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			a := &Adapter{d: d, subscribed: map[string]VNF{"i1": v}}
			w := httptest.NewRecorder()
			a.notified(w, httptest.NewRequest(http.MethodPost, "/api/cnf-adapter/v1/instance/i1/status/notify", strings.NewReader(tc.body)))
			if w.Code != tc.status {
				t.Errorf("%s: status %d, want %d", tc.reason, w.Code, tc.status)
			}
			err = a.failure()
			if (err != nil) != (tc.failed != "") || err != nil && !strings.Contains(err.Error(), tc.failed) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.failed)
			}
		})
	}
}

// TestResource compares a k8s-resource with one whose id was computed with sha256sum.
func TestResource(t *testing.T) {
	t.Parallel()
	var r rbResource
	err := json.Unmarshal([]byte(`{"name":"web","GVK":{"Group":"apps","Version":"v1","Kind":"Deployment"},
		"status":{"metadata":{"name":"web","namespace":"ns","resourceVersion":"7","labels":{"b":"2","a":"1"}}}}`), &r)
	if err != nil {
		t.Fatal(err)
	}
	id, body := r.resource(VNF{Owner: "acme", Region: "east", Tenant: "t1"}, "i1")
	const want = "285ccae14ecd56c4d6068640a4a3a60d1c6de3e334eee099a482de1fd84b5b72"
	if id != want {
		t.Errorf("the id is %s, want %s", id, want)
	}
	if labels, _ := body["labels"].([]string); len(labels) != 2 || labels[0] != "a=1" || body["data-source-version"] != "7" || body["version"] != "v1" {
		t.Errorf("the k8s-resource is %v", body)
	}
}

// TestBulkResponses reads responses of bulkprocess, which are always 201.
func TestBulkResponses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		body   string
		want   string // in the error; empty: none
	}{
		"done":   {"all changes were made", `{"transaction":[{"put":[{"uri":"/a","body":{"201":null}}]},{"delete":[{"uri":"/b","body":{"204":null}}]}]}`, ""},
		"failed": {"one has failed", `{"transaction":[{"put":[{"uri":"/a","body":{"201":null}}]},{"delete":[{"uri":"/b","body":{"412":{"x":1}}}]}]}`, "DELETE /b: status 412"},
		"code":   {"a code is a number", `{"transaction":[{"put":[{"uri":"/a","body":{"ok":null}}]}]}`, "status ok"},
		"text":   {"a response is JSON", `no`, "invalid character"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := reply{body: []byte(tc.body)}.transactions()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestStackStatus reads the status of a stack as SO does.
func TestStackStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, status, stacks, want string }{
		"plain":   {"without a stack, the status counts", "CREATE_COMPLETE", "null", "CREATE_COMPLETE"},
		"stack":   {"the status of the stack counts more", "GET_COMPLETE", `{"stacks":[{"stack_status":"CREATE_FAILED","id":"x"}]}`, "CREATE_FAILED"},
		"none":    {"no stack is found", "GET_COMPLETE", `{"stacks":[]}`, "NOT_FOUND"},
		"update":  {"except while it is updated", "UPDATE_IN_PROGRESS", `{"stacks":[{"stack_status":"CREATE_COMPLETE"}]}`, "UPDATE_IN_PROGRESS"},
		"failure": {"and after a failed request", "GET_FAILED", `{"stacks":[{"stack_status":"CREATE_COMPLETE"}]}`, "GET_FAILED"},
		"text":    {"a reason may be a text", "CREATE_FAILED", `"no room"`, "CREATE_FAILED"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (stack{Status: tc.status, Reason: json.RawMessage(tc.stacks)}).status(); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
