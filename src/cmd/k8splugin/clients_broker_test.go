package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// soWorkload is what SO reads a workload into: it takes an answer with a further
// field for a failure.
type soWorkload struct {
	Type   string          `json:"template_type"`
	ID     string          `json:"workload_id"`
	Status string          `json:"workload_status"`
	Reason json.RawMessage `json:"workload_status_reason"`
}

// stackRequest is a request as SO's adapter for OpenStack makes it, with what only
// Heat knows in it.
const stackRequest = `{
  "generic-vnf-id": "4c2b6a80-2f1b-4d3e-b1cd-1f1f0a9c6e04", "vf-module-id": "db6f4a5e-3c1d-4a0b-8a54-0c9d2b1e7f03",
  "vf-module-model-invariant-id": "invariant-1", "vf-module-model-version-id": "version-1", "vf-module-model-customization-id": "customization-1",
  "oof_directives": {"attributes": [{"attribute_name": "vnf-name", "attribute_value": "from-oof"}]},
  "sdnc_directives": {"attributes": [
    {"attribute_name": "k8s-rb-profile-name", "attribute_value": "vfw"}, {"attribute_name": "vnf-name", "attribute_value": "from-sdnc"},
    {"attribute_name": "ssh.port", "attribute_value": "2022"}]},
  "user_directives": {"attributes": [{"attribute_name": "ssh.user", "attribute_value": "jane"}]},
  "template_type": "heat",
  "template_data": {"stack_name": "vfw-stack", "disable_rollback": true, "timeout_mins": 118, "environment": "", "files": {}, "parameters": {"image": "x"}}
}`

// TestClientSOBroker is what SO's core asks through MSB, as if it asked
// OpenStack's Heat.
func TestClientSOBroker(t *testing.T) {
	t.Parallel()
	c := newCaller(t, "Accept", "application/json", "Content-Type", "application/json", "Project", "tenant-1", "X-TransactionId", "7f0c")
	const all = "/acme/RegionOne/infra_workload"
	c.register("RegionOne")
	c.define("invariant-1", "customization-1", "vfw")

	none := strictly[soWorkload](t, "a workload", c.ask("no stack has the name", http.StatusOK, "GET "+all+"?name=vfw-stack", nil))
	if none.ID != "" || string(none.Reason) != `{"stacks":[]}` {
		t.Errorf("it is %+v", none)
	}
	c.told("A13: a profile is needed", http.StatusBadRequest, "POST "+all, strings.Replace(stackRequest, "k8s-rb-profile-name", "profile", 1), "k8s-rb-profile-name is missing from directives")
	made := c.ask("A13: it is brought up", http.StatusCreated, "POST "+all, stackRequest)
	c.keys("A13: what comes back", made.body, "template_type", "workload_id", "template_response", "workload_status", "workload_status_reason")
	id := made.text(t, "workload_id")
	if list, ok := made.field(t, "template_response").([]any); !ok || id == "" || len(list) != 5 {
		t.Errorf("A13: workload %q is %v", id, made.field(t, "template_response"))
	}
	ssh := c.there("it is there at once", "v1", "ConfigMap", "ssh-service")
	got := map[string]string{"vnf": value(t, ssh, "data", "vnf"), "port": value(t, ssh, "data", "port"), "user": value(t, ssh, "data", "user"), "instance": value(t, ssh, "data", "instance")}
	if diff := cmp.Diff(map[string]string{"vnf": "from-oof", "port": "2022", "user": "jane", "instance": id}, got); diff != "" {
		t.Errorf("SDNC's directives count less than OOF's, and the user's most (-want +got):\n%s", diff)
	}

	const polled = "SO polls until the stack is complete"
	done := c.poll(polled, "GET "+all+"/"+id, func(a answer) bool {
		w := strictly[soWorkload](t, polled, a)
		if w.Status != "CREATE_IN_PROGRESS" && w.Status != "CREATE_COMPLETE" {
			t.Fatalf("%s: it is %s", polled, w.Status)
		}
		return w.Status == "CREATE_COMPLETE"
	})
	if w := strictly[soWorkload](t, polled, done); w.ID != id || w.Type != "heat" || string(w.Reason) != "null" {
		t.Errorf("%s: it is %s", polled, done.body)
	}
	named := strictly[soWorkload](t, "a workload", c.ask("it is found by its name", http.StatusOK, "GET "+all+"?name=vfw-stack", nil))
	var reason struct {
		Stacks []struct {
			Status string `json:"stack_status"`
			ID     string `json:"id"`
		}
	}
	if err := json.Unmarshal(named.Reason, &reason); err != nil || named.ID != id || len(reason.Stacks) != 1 || reason.Stacks[0].ID != id || reason.Stacks[0].Status != "CREATE_COMPLETE" {
		t.Errorf("by its name it is %+v, %v", named, err)
	}
	c.ask("the inventory is to be brought up to date: only 202 is understood", http.StatusAccepted, "POST "+all+"/"+id, stackRequest)
	strictly[soWorkload](t, "it is polled again", c.ask("it is polled again", http.StatusOK, "GET "+all+"/"+id, nil))

	gone := strictly[soWorkload](t, "a workload", c.ask("it is taken down", http.StatusAccepted, "DELETE "+all+"/"+id, nil))
	if gone.Status != "DELETE_COMPLETE" {
		t.Errorf("it is %s", gone.Status)
	}
	c.told("404 alone means that it is not there", http.StatusNotFound, "GET "+all+"/"+id, nil, noDocuments)
	again := strictly[soWorkload](t, "a workload", c.ask("nothing has its name", http.StatusOK, "GET "+all+"?name=vfw-stack", nil))
	if again.ID != "" {
		t.Errorf("it is %+v", again)
	}
	c.ask("the region waits for what leaves it", http.StatusNoContent, "DELETE /v1/connectivity-info/RegionOne", nil)
}
