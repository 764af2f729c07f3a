package onap_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const stackRequest = `{"generic-vnf-id": "g", "vf-module-id": "m", "vf-module-model-invariant-id": "fw", "vf-module-model-version-id": "v", "vf-module-model-customization-id": "1",
	"sdnc_directives": {"attributes": [{"attribute_name": "k8s-rb-profile-name", "attribute_value": "edge"}, {"attribute_name": "a", "attribute_value": "sdnc"}, {"attribute_name": "b", "attribute_value": "sdnc"}]},
	"oof_directives": {"attributes": [{"attribute_name": "a", "attribute_value": "oof"}, {"attribute_name": "b", "attribute_value": "oof"}, {"attribute_name": "n", "attribute_value": null}]},
	"user_directives": {"attributes": [{"attribute_name": "b", "attribute_value": "user"}]},
	"template_type": "heat", "template_data": {"stack_name": "s1", "files": {}}}`

func workload(id, status, reason string) string {
	return `{"template_type": "heat", "workload_id": "` + id + `", "workload_status": "` + status + `", "workload_status_reason": ` + reason + `}`
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	const all = "/acme/east/infra_workload"
	w.want(t, "none by that name", "GET "+all+"?name=s1", "", 200, workload("", "GET_COMPLETE", `{"stacks": []}`))
	w.hold = true
	made := `{"template_type": "heat", "workload_id": "id1", "template_response": [{"GVK": {"Group": "", "Version": "v1", "Kind": "ConfigMap"}, "Name": "web"}, {"GVK": {"Group": "apps", "Version": "v1", "Kind": "Deployment"}, "Name": "web"}],
		"workload_status": "CREATE_IN_PROGRESS", "workload_status_reason": null}`
	w.want(t, "it is made, and its hooks have not run", "POST "+all, stackRequest, 201, made)
	asked := w.last().(nf.InstantiateRequest)
	want := map[string]string{"k8s-rb-profile-name": "edge", "a": "oof", "b": "user", "k8s-rb-instance-id": "id1"}
	if diff := cmp.Diff(want, asked.Inputs.Overrides); diff != "" || asked.Release != "m" || asked.Region != "east" {
		t.Errorf("release %s in %s, with directives by rank (-want +got):\n%s", asked.Release, asked.Region, diff)
	}
	w.want(t, "so it is said", "GET "+all+"/id1", "", 200, workload("id1", "CREATE_IN_PROGRESS", "null"))
	w.want(t, "by name, too", "GET "+all+"?name=s1", "", 200, workload("id1", "CREATE_IN_PROGRESS", `{"stacks": [{"stack_status": "CREATE_IN_PROGRESS", "id": "id1"}]}`))
	w.release("op-a")
	w.want(t, "when they have, it is complete", "GET "+all+"/id1", "", 200, workload("id1", "CREATE_COMPLETE", "null"))
	w.want(t, "the path's owner and region do not count", "GET /x/y/infra_workload/id1", "", 200, workload("id1", "CREATE_COMPLETE", "null"))
	w.want(t, "by name, too", "GET "+all+"?name=s1", "", 200, workload("id1", "CREATE_COMPLETE", `{"stacks": [{"stack_status": "CREATE_COMPLETE", "id": "id1"}]}`))
	w.want(t, "another name is another", "GET "+all+"?name=s2", "", 200, workload("", "GET_COMPLETE", `{"stacks": []}`))
	w.want(t, "it may be asked to be refreshed", "POST "+all+"/id1", `{}`, 202, "")
	w.want(t, "the instance is one like others", "GET /v1/instance?rb-name=fw", "", 200, `[{"id": "id1", "release-name": "m", "namespace": "edge", "request": {
		"rb-name": "fw", "rb-version": "1", "profile-name": "edge", "release-name": "m", "cloud-region": "east", "labels": {"stack-name": "s1"},
		"override-values": {"k8s-rb-profile-name": "edge", "a": "oof", "b": "user"}}}]`)
	w.hold, w.failure = false, &nf.Failure{Kind: nf.Failed, Message: "an object stays"}
	if got := w.ask(t, "DELETE "+all+"/id1", ""); got.status != http.StatusInternalServerError {
		t.Errorf("a deletion that fails is an error: %d %q", got.status, got.body)
	}
	w.failure = nil
	w.want(t, "it goes", "DELETE "+all+"/id1", "", 202, workload("id1", "DELETE_COMPLETE", "null"))
	w.want(t, "and is gone", "GET "+all+"/id1", "", 404, noInstance)
	w.want(t, "for good", "DELETE "+all+"/id1", "", 500, "Error getting Instance: "+noInstance)
	if got := w.ask(t, "GET "+all, ""); got.status != 405 || got.body != "" {
		t.Errorf("a list of all is not there: %d %q", got.status, got.body)
	}
}

// TestWorkloadTerminating has a workload that is being deleted, as SO finds it when the
// response to its request was lost.
func TestWorkloadTerminating(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	const at = "/acme/east/infra_workload/id1"
	w.create(t)
	asked := len(w.asked)
	set := func(state nf.OperationState) {
		in := w.instances["id1"]
		in.State, in.Operation = nf.Terminating, "op"
		w.instances["id1"], w.operations["op"] = in, nf.Operation{ID: "op", Verb: nf.Terminate, State: state}
	}
	set(nf.Running)
	w.want(t, "A&AI may still have its objects", "GET "+at, "", 200, workload("id1", "DELETE_IN_PROGRESS", "null"))
	w.want(t, "ONAP's own path does not have it", "GET /v1/instance/id1", "", 500, noInstance)
	set(nf.Succeeded)
	w.want(t, "a repeated request waits for the same end", "DELETE "+at, "", 202, workload("id1", "DELETE_COMPLETE", "null"))
	if len(w.asked) != asked {
		t.Errorf("the engine was asked again: %v", w.last())
	}
}

// TestWorkloadFlavors gives a workload the flavor that OOF has chosen.
func TestWorkloadFlavors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	const flavors = `"directives": [{"id": "web", "type": "vnfc", "directives": [
		{"type": "flavor_directives", "attributes": [{"attribute_name": "flavor", "attribute_value": "k8s-0123456789"}]},
		{"type": "sriovNICNetwork_directives", "attributes": [{"attribute_name": "vnic", "attribute_value": "direct"}, {"attribute_name": "none", "attribute_value": null}]}]}]`
	body := strings.Replace(stackRequest, `"oof_directives": {`, `"oof_directives": {`+flavors+", ", 1)
	if got := w.ask(t, "POST /acme/east/infra_workload", body); got.status != 201 {
		t.Fatalf("the request is answered with %d %q", got.status, got.body)
	}
	asked := w.last().(nf.InstantiateRequest)
	want := map[string]string{"k8s-rb-profile-name": "edge", "a": "oof", "b": "user", "k8s-rb-instance-id": "id1", "flavor": "k8s-0123456789", "vnic": "direct"}
	if diff := cmp.Diff(want, asked.Inputs.Overrides); diff != "" {
		t.Errorf("inner directives are values, too (-want +got):\n%s", diff)
	}
	uses, wrong := render.AskedCompute(asked.Inputs)
	if len(uses) != 1 || uses[0].Workload != "web" || uses[0].Name != "k8s-0123456789" || !uses[0].Optional || wrong != nil {
		t.Errorf("the flavor is not the profile of web: %+v %v", uses, wrong)
	}
	upgrade := `{"rb-name": "fw", "rb-version": "1", "profile-name": "edge", "cloud-region": "east", "override-values": {"a": "new"}}`
	if got := w.ask(t, "POST /v1/instance/id1/upgrade", upgrade); got.status != 201 {
		t.Fatalf("the upgrade is answered with %d %q", got.status, got.body)
	}
	if in, err := w.Instance(t.Context(), "id1"); err != nil || !cmp.Equal(asked.Inputs.OOF, in.Inputs.OOF) || in.Inputs.Overrides["a"] != "new" {
		t.Errorf("an upgrade does not keep the flavor: %+v, error %v", in.Inputs, err)
	}
}

func TestWorkloadStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		state  nf.InstanceState
		op     nf.Operation
		want   string
	}{
		"Queued":    {"nobody has begun", nf.Instantiating, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.Queued}, "PRE-INSTALL CREATE_IN_PROGRESS"},
		"PreHook":   {"hooks come first", nf.Instantiating, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.Running, Started: noon(1), Steps: []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseReserve}}, northboundtest.HookStep(nf.PhaseHookWait, nf.PreInstall, [2]int{1, 2}, nf.Ref{Kind: "Job", Name: "a"})}}, "PRE-INSTALL CREATE_IN_PROGRESS 0/2"},
		"Creating":  {"then the objects", nf.Instantiating, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.Running, Started: noon(1), Steps: []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseApply, Stage: 1}, Of: 1, StageName: "web"}}}, "CREATING CREATE_IN_PROGRESS"},
		"Created":   {"which are there", nf.Instantiating, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.Running, Started: noon(1), Applied: noon(2)}, "CREATED CREATE_IN_PROGRESS"},
		"PostHook":  {"then hooks again", nf.Instantiating, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.Running, Started: noon(1), Applied: noon(2), Steps: []nf.Step{northboundtest.HookStep(nf.PhaseHookCreate, nf.PostInstall, [2]int{2, 3}, nf.Ref{Kind: "Job", Name: "a"})}}, "POST-INSTALL CREATE_IN_PROGRESS 1/3"},
		"Done":      {"and that is it", nf.Ready, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.Succeeded}, "DONE CREATE_COMPLETE"},
		"Failed":    {"or it failed", nf.Broken, nf.Operation{ID: "op", Verb: nf.Instantiate, State: nf.OperationFailed}, "POST-INSTALL-FAILED CREATE_FAILED"},
		"Upgrading": {"a change", nf.Updating, nf.Operation{ID: "op", Verb: nf.Upgrade, State: nf.Running, Started: noon(1)}, "UPGRADING UPDATE_IN_PROGRESS"},
		"PreUp":     {"has hooks before", nf.Updating, nf.Operation{ID: "op", Verb: nf.Upgrade, State: nf.Running, Started: noon(1), Steps: []nf.Step{northboundtest.HookStep(nf.PhaseHookDeleteOld, nf.PreUpgrade, [2]int{1, 1}, nf.Ref{Kind: "Job", Name: "a"})}}, "PRE-UPGRADE UPDATE_IN_PROGRESS 0/1"},
		"PostUp":    {"and after", nf.Updating, nf.Operation{ID: "op", Verb: nf.Rollback, State: nf.Running, Started: noon(1), Applied: noon(2), Steps: []nf.Step{northboundtest.HookStep(nf.PhaseHookWait, nf.PostRollback, [2]int{1, 1}, nf.Ref{Kind: "Job", Name: "a"})}}, "POST-UPGRADE UPDATE_IN_PROGRESS 0/1"},
		"Undone":    {"one that is taken back is under way", nf.Updating, nf.Operation{ID: "op", Verb: nf.Upgrade, State: nf.Running, Started: noon(1), Applied: noon(2), Undoing: true}, "UPGRADING UPDATE_IN_PROGRESS"},
		"UpFailed":  {"or fails", nf.Broken, nf.Operation{ID: "op", Verb: nf.Upgrade, State: nf.OperationFailed}, "POST-UPGRADE-FAILED UPDATE_FAILED"},
		"Stays":     {"what cannot be removed stays", nf.Broken, nf.Operation{ID: "op", Verb: nf.Terminate, State: nf.OperationFailed}, "PRE-DELETE-FAILED DELETE_FAILED"},
		"Tested":    {"a test changes nothing", nf.Updating, nf.Operation{ID: "op", Verb: nf.Test, State: nf.Running, Started: noon(1)}, "DONE CREATE_COMPLETE"},
		"TestedBad": {"nor does it mend what has failed", nf.Broken, nf.Operation{ID: "op", Verb: nf.Test, State: nf.Succeeded}, "POST-UPGRADE-FAILED UPDATE_FAILED"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.create(t)
			in := w.instances["id1"]
			in.State, in.LastOperation = tc.state, "op"
			if in.Operation = ""; !tc.op.State.Final() {
				in.Operation = "op"
			}
			w.instances["id1"], w.operations["op"] = in, tc.op
			var full struct {
				Status   string `json:"status"`
				Progress string `json:"hook-progress"`
			}
			into(t, w.ask(t, "GET /v1/instance/id1?full=true", ""), &full)
			var heat struct {
				Status string `json:"workload_status"`
			}
			into(t, w.ask(t, "GET /a/b/infra_workload/id1", ""), &heat)
			if got := strings.TrimSpace(full.Status + " " + heat.Status + " " + full.Progress); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWorkloadRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, from, to string
		status           int
		want             string
	}{
		"Custom":    {"five ids are required", `"vf-module-model-customization-id": "1"`, `"x": ""`, 400, "vf-module-model-customization-id is empty"},
		"Invariant": {"each of them", `"vf-module-model-invariant-id": "fw"`, `"x": ""`, 400, "vf-module-model-invariant-id is empty"},
		"Version":   {"each of them", `"vf-module-model-version-id": "v"`, `"x": ""`, 400, "vf-module-model-version-id is empty"},
		"VNF":       {"each of them", `"generic-vnf-id": "g"`, `"x": ""`, 400, "generic-vnf-id is empty"},
		"Module":    {"each of them", `"vf-module-id": "m"`, `"x": ""`, 400, "vf-module-id is empty"},
		"Stack":     {"and a stack", `"s1"`, `""`, 400, "stack_name is missing from template_data"},
		"Profile":   {"and a profile", "k8s-rb-profile-name", "x", 400, "k8s-rb-profile-name is missing from directives"},
		"Number":    {"a directive is a text", `"oof"`, `5`, 422, "oof_directives.attributes.attribute_value: a string is needed, not a number"},
		"Unknown":   {"what is not there cannot be brought up", `"fw"`, `"lb"`, 500, "Unable to find Profile to create instance"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.want(t, tc.reason, "POST /acme/east/infra_workload", strings.Replace(stackRequest, tc.from, tc.to, 1), tc.status, tc.want)
			if len(w.instances) != 0 {
				t.Error("and yet it is there")
			}
		})
	}
	newWorld(t, false).want(t, "there must be a body", "POST /acme/east/infra_workload", "", 400, "Body empty")
}

func TestWorkloadRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	body := strings.Replace(stackRequest, `"attribute_name": "n", "attribute_value": null`, `"attribute_name": "k8s-rb-instance-release-name", "attribute_value": "mine"`, 1)
	if got := w.ask(t, "POST /acme/east/infra_workload", body); got.status != 201 || w.last().(nf.InstantiateRequest).Release != "mine" {
		t.Errorf("a directive names the release: %d %s", got.status, got.body)
	}
	if got := w.last().(nf.InstantiateRequest).Timeout; got != 21*time.Minute {
		t.Errorf("the operation may take %s", got)
	}
}
