package openstack_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const stacks = "/orchestration/v1/project/stacks"

const serverHOT = `heat_template_version: 2018-08-31
parameters:
  image: {type: string, default: debian}
resources:
  VDU1:
    type: OS::Nova::Server
    properties: {image: {get_param: image}, flavor: medium, networks: [{port: {get_resource: CP1}}]}
  CP1:
    type: OS::Neutron::Port
    properties: {network: management}
`

// stackBody returns the body of a request for a stack of serverHOT.
func stackBody(t *testing.T, fields map[string]any) string {
	t.Helper()
	body := map[string]any{"stack_name": "a", "template": serverHOT, "disable_rollback": true, "tags": "x", "timeout_mins": 60}
	maps.Copy(body, fields)
	for name, value := range body {
		if value == nil {
			delete(body, name)
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStackRefusals(t *testing.T) {
	t.Parallel()
	hot := func(of, by string) map[string]any {
		return map[string]any{"template": strings.Replace(serverHOT, of, by, 1)}
	}
	for name, tc := range map[string]struct {
		reason string
		fields map[string]any
		want   int
	}{
		"Good":      {"all is known", nil, http.StatusCreated},
		"Name":      {"a name begins with a letter", map[string]any{"stack_name": "1"}, http.StatusBadRequest},
		"Field":     {"a field is unknown", map[string]any{"x": 1}, http.StatusBadRequest},
		"Tag":       {"a tag has no slash", map[string]any{"tags": "a/b"}, http.StatusBadRequest},
		"Rollback":  {"what is not simulated is refused", map[string]any{"disable_rollback": false}, http.StatusBadRequest},
		"Version":   {"a template has a version", hot("2018-08-31", "2018-01-01"), http.StatusBadRequest},
		"Type":      {"a type is unknown", hot("OS::Neutron::Port", "OS::Neutron::Pork"), http.StatusBadRequest},
		"Section":   {"a section is unknown", hot("parameters:", "parameter:"), http.StatusBadRequest},
		"Parameter": {"a parameter is not declared", map[string]any{"parameters": map[string]any{"x": 1}}, http.StatusBadRequest},
		"Missing":   {"a parameter has no value", hot(", default: debian", ""), http.StatusBadRequest},
		"JSON":      {"a parameter is no object", map[string]any{"template": strings.Replace(serverHOT, "type: string", "type: json", 1), "parameters": map[string]any{"image": "x"}}, http.StatusBadRequest},
		"File":      {"a template is not there", hot("OS::Nova::Server", "OS::Heat::AutoScalingGroup"), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if resp := w.do(http.MethodPost, stacks, stackBody(t, tc.fields)); resp.Code != tc.want {
				t.Errorf("%s: %d %s, want %d", tc.reason, resp.Code, resp.Body, tc.want)
			}
		})
	}
}

// TestStackLife creates, changes and deletes a stack, one change after the other.
func TestStackLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var made struct{ Stack struct{ ID string } }
	if err := json.Unmarshal(w.do(http.MethodPost, stacks, stackBody(t, nil)).Body.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	one := stacks + "/a/" + made.Stack.ID
	change := stackBody(t, map[string]any{"stack_name": nil})
	want := func(reason string, code int, state, method, path, body string) {
		t.Helper()
		if resp := w.do(method, path, body); resp.Code != code {
			t.Errorf("%s: %d %s, want %d", reason, resp.Code, resp.Body, code)
		}
		if got := w.Stacks(); state != "" && !slices.Equal(got, []string{"a " + state}) {
			t.Errorf("%s: the stacks are %v, want %s", reason, got, state)
		}
	}
	want("a second stack of the name", http.StatusConflict, "CREATE_IN_PROGRESS", http.MethodPost, stacks, stackBody(t, nil))
	want("a change during another", http.StatusConflict, "CREATE_IN_PROGRESS", http.MethodPut, one, change)
	w.now = w.now.Add(time.Minute)
	want("nothing is to be cancelled", http.StatusBadRequest, "CREATE_COMPLETE", http.MethodPost, one+"/actions", `{"cancel_without_rollback": null}`)
	want("an equal template", http.StatusAccepted, "UPDATE_COMPLETE", http.MethodPut, one, change)
	want("a resource that does not exist", http.StatusNotFound, "", http.MethodPatch, one+"/resources/none", `{"mark_unhealthy": true}`)
	want("one that does", http.StatusOK, "", http.MethodPatch, one+"/resources/VDU1", `{"mark_unhealthy": true}`)
	want("it is replaced", http.StatusAccepted, "UPDATE_IN_PROGRESS", http.MethodPut, one, change)
	want("which is cancelled", http.StatusNoContent, "UPDATE_FAILED", http.MethodPost, one+"/actions", `{"cancel_without_rollback": null}`)
	want("a stack that does not exist", http.StatusNotFound, "", http.MethodPut, one+"x", change)
	want("the deletion", http.StatusNoContent, "", http.MethodDelete, one, "")
	if left := slices.Concat(w.Stacks(), w.Servers(), w.Ports()); len(left) > 0 {
		t.Errorf("%v remain", left)
	}
}
