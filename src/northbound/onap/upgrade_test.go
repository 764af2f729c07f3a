package onap_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.want(t, "what is so already is so", "POST /v1/instance/id1/upgrade", fwRequest, 201, `{"id": "id1", `+fwShown+`}`)
	if _, made := w.last().(nf.InstantiateRequest); !made {
		t.Errorf("the engine is asked for %+v, and there is nothing to do", w.last())
	}
	w.want(t, "a configuration", "POST /v1/instance/id1/config", `{"config-name": "c", "template-name": "ssh", "values": {"k": 1}}`, 201,
		`{"instance-id": "id1", "rb-name": "fw", "rb-version": "1", "profile-name": "edge", "config-name": "c", "template-name": "ssh",
			"description": "", "values": {"k": 1}, "config-version": 1, "config-tag": ""}`)
	changed := strings.Replace(fwRequest, `"release-name": ""`, `"release-name": "ignored"`, 1)
	changed = strings.Replace(changed, `"x"`, `"y"`, 1)
	shown := strings.Replace(fwShown, `"x"`, `"y"`, 1)
	w.want(t, "what is not so is changed, but for the release's name", "POST /v1/instance/id1/upgrade", changed, 201, `{"id": "id1", `+shown+`}`)
	spec := w.last().(nf.Spec)
	if spec.Release != "fw-edge" || spec.Inputs.Overrides["a.b"] != "y" || spec.Inputs.Overrides["k8s-rb-instance-id"] != "id1" || len(spec.Amendments) != 0 {
		t.Errorf("the engine is asked for %+v", spec)
	}
	w.want(t, "an upgrade drops the configurations", "GET /v1/instance/id1/config", "", 200, "[]")
	w.want(t, "and the record has the new request", "GET /v1/instance/id1", "", 200, `{"id": "id1", `+shown+`}`)
	w.failure = &nf.Failure{Kind: nf.Failed, Message: "no room"}
	w.want(t, "a failure is told", "POST /v1/instance/id1/upgrade", fwRequest, 500, "Upgrade Instance: cannot upgrade VNF instance id1: no room")
	w.want(t, "and the record has the old request", "GET /v1/instance/id1", "", 200, `{"id": "id1", `+shown+`}`)
	w.want(t, "an empty body is refused", "POST /v1/instance/id1/upgrade", "", 400, "Body empty")
}

// TestUpgradeWithHooks reads an instance while the hooks of its upgrade run, whose client has
// the response.
func TestUpgradeWithHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.hold, w.steps = true, []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseHookWait, Event: nf.PostUpgrade}}}
	shown := strings.Replace(fwShown, `"x"`, `"y"`, 1)
	w.want(t, "everything is applied", "POST /v1/instance/id1/upgrade", strings.Replace(fwRequest, `"x"`, `"y"`, 1), 201, `{"id": "id1", `+shown+`}`)
	w.want(t, "the request is the new one", "GET /v1/instance/id1", "", 200, `{"id": "id1", `+shown+`}`)
	var all []struct {
		Request struct {
			Overrides map[string]string `json:"override-values"`
		} `json:"request"`
	}
	if into(t, w.ask(t, "GET /v1/instance", ""), &all); len(all) != 1 || all[0].Request.Overrides["a.b"] != "y" {
		t.Errorf("the list has %+v", all)
	}
	w.release("op-b")
}

// TestUpgradeConfirms checks that what the engine wants confirmed is confirmed.
func TestUpgradeConfirms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.fail["Upgrade"] = &nf.Error{Kind: nf.Conflict, Op: "upgrade", Subject: "VNF instance id1", Reason: nf.ReasonConfirm, Confirm: "6 of 7", Err: errors.New("it would delete 6 objects")}
	w.want(t, "a confirmation that is refused again is an error", "POST /v1/instance/id1/upgrade", strings.Replace(fwRequest, `"x"`, `"y"`, 1), 500,
		"Upgrade Instance: cannot upgrade VNF instance id1: it would delete 6 objects")
}

func TestUpgradeWithoutBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	if err := w.bundles.RemoveDefinition(t.Context(), "fw", "1"); err != nil {
		t.Fatal(err)
	}
	w.want(t, "what is so already needs no bundle", "POST /v1/instance/id1/upgrade", fwRequest, 201, `{"id": "id1", `+fwShown+`}`)
	w.want(t, "what is to be changed does", "POST /v1/instance/id1/upgrade", strings.Replace(fwRequest, `"x"`, `"y"`, 1), 500, "Unable to find Profile to create instance")
	w.want(t, "what is to go does not", "DELETE /v1/instance/id1", "", 202, "")
}

func TestMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.edit(func(e *engine) {
		in := e.instances["id1"]
		in.Project = "blue"
		e.instances["id1"] = in
	})
	w.rights[nf.CreateInstance+" "+nf.DefaultProject] = true // the permission in the instance's project is enough
	west := strings.Replace(fwRequest, "east", "west", 1)
	shown := strings.Replace(fwShown, "east", "west", 1)
	w.want(t, "another region", "POST /v1/instance/id1/upgrade", west, 201, `{"id": "id1", `+shown+`}`)
	alias, err := w.records.Alias(t.Context(), "id1")
	if err != nil {
		t.Fatal(err)
	}
	in, there := w.instances[alias.Engine]
	if _, old := w.instances["id1"]; old || !there || in.Region != "west" || in.Inputs.Overrides["k8s-rb-instance-id"] != in.ID || in.Release != "fw-edge" || in.Project != "blue" {
		t.Errorf("the former is there: %t; the new one is %+v", old, in)
	}
	w.want(t, "the id stays", "GET /v1/instance/id1", "", 200, `{"id": "id1", `+shown+`}`)
	w.want(t, "in the list, too", "GET /v1/instance", "", 200, `[{"id": "id1", "request": `+west+`, "release-name": "fw-edge", "namespace": "edge"}]`)
	w.want(t, "and the new one's own id is nobody's", "GET /v1/instance/"+in.ID, "", 500, noInstance)
	w.ask(t, "GET /v1/instance/id1/query?ApiVersion=v1&Kind=Pod&Labels=app%3Dx,"+"k8splugin.io/rb-instance-id%3Did1", "")
	if got := w.live.asked[len(w.live.asked)-1]; got.query.Labels != "app=x,"+nf.OwnerLabel+"="+in.ID || got.region != "west" {
		t.Errorf("a query for its label is %+v", got)
	}
	w.want(t, "a change goes on where it is", "POST /v1/instance/id1/upgrade", strings.Replace(west, `"x"`, `"y"`, 1), 201, `{"id": "id1", `+strings.Replace(shown, `"x"`, `"y"`, 1)+`}`)
	w.want(t, "it moves back", "POST /v1/instance/id1/upgrade", fwRequest, 201, `{"id": "id1", `+fwShown+`}`)
	w.want(t, "and goes", "DELETE /v1/instance/id1", "", 202, "")
	if len(w.instances) != 0 {
		t.Errorf("what is left is %v", w.instances)
	}
}

// TestMoveIsCutOff ends a move where it may end, and repeats the request.
func TestMoveIsCutOff(t *testing.T) {
	t.Parallel()
	west := strings.Replace(fwRequest, "east", "west", 1)
	shown := `{"id": "id1", ` + strings.Replace(fwShown, "east", "west", 1) + `}`
	cases := map[string]struct {
		reason string
		cut    func(*testing.T, *world)
		again  string
		status int
		left   int // instances, when the next request is over
	}{
		"Failed": {"what failed is tried again", func(t *testing.T, w *world) {
			w.failure = &nf.Failure{Kind: nf.Failed, Message: "no room"}
			w.want(t, "a failure is told", "POST /v1/instance/id1/upgrade", west, 500, "Upgrade Instance: cannot instantiate VNF instance id4: no room")
			w.want(t, "and nothing has moved", "GET /v1/instance/id1", "", 200, `{"id": "id1", `+fwShown+`}`)
			w.failure = nil
		}, west, 201, 1},
		"Made": {"what was made is taken", func(t *testing.T, w *world) {
			made := w.half(t, "west", west)
			w.want(t, "of the two, the former is shown", "GET /v1/instance", "", 200, `[{"id": "id1", "request": `+fwRequest+`, "release-name": "fw-edge", "namespace": "edge"}]`)
			if made == "" {
				t.Fatal("nothing was made")
			}
		}, west, 201, 1},
		"MadeElse": {"what was made to go elsewhere is given up, and the request is to be repeated", func(t *testing.T, w *world) {
			w.half(t, "west", strings.Replace(west, `"x"`, `"z"`, 1))
		}, west, 500, 1},
		"NotLeft": {"what could not be removed is removed then", func(t *testing.T, w *world) {
			w.fail["Terminate"] = nf.E(nf.Unreachable, "terminate", "it", errors.New("store down"))
			w.want(t, "it is told", "POST /v1/instance/id1/upgrade", west, 500,
				"Upgrade Instance: it has moved, and what it was before cannot be removed: cannot terminate it: store down")
			w.want(t, "it has moved", "GET /v1/instance/id1", "", 200, shown)
			w.want(t, "and is not there twice", "GET /v1/instance", "", 200, `[{"id": "id1", "request": `+west+`, "release-name": "fw-edge", "namespace": "edge"}]`)
			delete(w.fail, "Terminate")
		}, west, 201, 1},
		"Delete": {"whoever deletes it deletes both", func(t *testing.T, w *world) { w.half(t, "west", west) }, "", 202, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.create(t)
			tc.cut(t, w)
			request := "POST /v1/instance/id1/upgrade"
			if tc.again == "" {
				request = "DELETE /v1/instance/id1"
			}
			got := w.ask(t, request, tc.again)
			if got.status != tc.status || len(w.instances) != tc.left {
				t.Errorf("%s: %d %s, and %d instances are there", tc.reason, got.status, got.body, len(w.instances))
			}
			if tc.status == 500 {
				w.want(t, "the next time it goes well", request, tc.again, 201, shown)
			}
		})
	}
}

// half makes what a move of id1 makes first, and nothing else.
func (w *world) half(t *testing.T, region, request string) (made string) {
	t.Helper()
	if _, err := w.records.Realias(t.Context(), "id1", func(a *bundle.Alias) error {
		a.Coming = "half"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(parsedRequest(t, request))
	if err != nil {
		t.Fatal(err)
	}
	in := w.instances["id1"]
	spec := nf.Spec{Package: in.Package, Inputs: in.Inputs, Release: in.Release, Annotations: map[string]string{
		"onap/id": "id1", "onap/request": string(compact), "onap/profile": "{}", "onap/generation": "g",
	}}
	op, err := w.Instantiate(t.Context(), nf.InstantiateRequest{Spec: spec, ID: "half", Region: region, Namespace: in.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	return op.Subject.ID
}

// parsedRequest is a request with its fields in the order that the API keeps.
func parsedRequest(t *testing.T, text string) any {
	t.Helper()
	var out struct {
		A string            `json:"rb-name"`
		B string            `json:"rb-version"`
		C string            `json:"profile-name"`
		D string            `json:"release-name"`
		E string            `json:"cloud-region"`
		F map[string]string `json:"labels"`
		G map[string]string `json:"override-values"`
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
