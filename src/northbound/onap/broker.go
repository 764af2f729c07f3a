package onap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Heat's status of a stack that no operation changes, and of one that is being deleted.
const (
	statusComplete   = "CREATE_COMPLETE"
	deleteInProgress = "DELETE_IN_PROGRESS"
)

// stackLabel is the request label that holds the name of the Heat stack.
const stackLabel = "stack-name"

// workloadRequest is a request for an instance in the form of an OpenStack Heat
// stack.
type workloadRequest struct {
	GenericVNF      string     `json:"generic-vnf-id"`
	Module          string     `json:"vf-module-id"`
	ModelInvariant  string     `json:"vf-module-model-invariant-id"`
	ModelVersion    string     `json:"vf-module-model-version-id"`
	ModelCustom     string     `json:"vf-module-model-customization-id"`
	OOFDirectives   directives `json:"oof_directives"`
	SDNCDirectives  directives `json:"sdnc_directives"`
	UserDirectives  directives `json:"user_directives"`
	TemplateContent struct {
		Stack string `json:"stack_name"`
	} `json:"template_data"`
}

// directives are values by name. A null value counts as absent. Those of OOF can have
// inner ones: of a VNFC, and in it of flavors or networks.
type directives struct {
	ID         string       `json:"id,omitempty"`
	Type       string       `json:"type,omitempty"`
	Directives []directives `json:"directives,omitempty"`
	Attributes []attribute  `json:"attributes,omitempty"`
}

type attribute struct {
	Name  string  `json:"attribute_name"`
	Value *string `json:"attribute_value"`
}

// values adds the values, those of inner directives first.
func (d directives) values(out texts) {
	for _, inner := range d.Directives {
		inner.values(out)
	}
	for _, a := range d.Attributes {
		if a.Value != nil {
			out[a.Name] = *a.Value
		}
	}
}

// workload is an instance in the form of a stack. Some clients reject a
// response with additional fields.
type workload struct {
	TemplateType string  `json:"template_type"`
	ID           string  `json:"workload_id"`
	Status       string  `json:"workload_status"`
	Reason       *stacks `json:"workload_status_reason"`
}

// newWorkload is a created workload with its resources.
type newWorkload struct {
	TemplateType string     `json:"template_type"`
	ID           string     `json:"workload_id"`
	Resources    []resource `json:"template_response"`
	Status       string     `json:"workload_status"`
	Reason       *stacks    `json:"workload_status_reason"`
}

type stacks struct {
	Stacks []stack `json:"stacks"`
}

type stack struct {
	Status string `json:"stack_status"`
	ID     string `json:"id"`
}

func workloadOf(id, status string) workload {
	return workload{TemplateType: "heat", ID: id, Status: status}
}

// workloads serves instances in the form of Heat stacks.
type workloads struct {
	vnfs       *vnfs
	creator    *creator
	terminator *terminator
	inventory  Inventory // nil: the service does not write A&AI
	clock      func() time.Time
}

func (ws workloads) routes(on route) {
	const all = "/{cloud-owner}/{cloud-region}/infra_workload"
	on(http.MethodPost, all, ws.create)
	on(http.MethodGet, all, ws.find)
	on(http.MethodGet, all+"/{instance}", ws.get)
	on(http.MethodPost, all+"/{instance}", ws.refresh)
	on(http.MethodDelete, all+"/{instance}", ws.remove)
}

// check rejects a request without a required field.
func (q workloadRequest) check() error {
	for _, field := range []struct{ name, value string }{
		{"vf-module-model-customization-id", q.ModelCustom}, {"vf-module-model-invariant-id", q.ModelInvariant},
		{"vf-module-model-version-id", q.ModelVersion}, {"generic-vnf-id", q.GenericVNF}, {"vf-module-id", q.Module},
	} {
		if field.value == "" {
			return refuse(http.StatusBadRequest, field.name+" is empty")
		}
	}
	if q.TemplateContent.Stack == "" {
		return refuse(http.StatusBadRequest, "stack_name is missing from template_data")
	}
	return nil
}

// values merges all directives: the user's take precedence over OOF's, and
// those over SDNC's.
func (q workloadRequest) values() texts {
	out := texts{}
	for _, d := range []directives{q.SDNCDirectives, q.OOFDirectives, q.UserDirectives} {
		d.values(out)
	}
	return out
}

// placement returns OOF's inner directives as oof_parameters: the flavor of a VNFC is the
// compute profile of the workload that has its id as its name.
func (q workloadRequest) placement() ([]map[string]any, error) {
	if len(q.OOFDirectives.Directives) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(map[string]any{nf.DirectivesKey: q.OOFDirectives.Directives})
	if err != nil {
		return nil, fmt.Errorf("cannot read oof_directives: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("cannot read oof_directives: %w", err)
	}
	return []map[string]any{out}, nil
}

// instance converts the request to an instance request.
func (q workloadRequest) instance(region string) (instanceRequest, error) {
	values := q.values()
	profile, ok := values["k8s-rb-profile-name"]
	if !ok {
		return instanceRequest{}, refuse(http.StatusBadRequest, "k8s-rb-profile-name is missing from directives")
	}
	release, ok := values["k8s-rb-instance-release-name"]
	if !ok {
		// The profile's release name would be the same for all its instances.
		release = q.Module
	}
	out := instanceRequest{
		Definition: q.ModelInvariant, Version: q.ModelCustom, Profile: profile, Release: release, Region: region,
		Labels: texts{stackLabel: q.TemplateContent.Stack}, Overrides: values,
	}
	return out, out.check()
}

func (ws workloads) create(w http.ResponseWriter, r *http.Request) error {
	q, err := decode[workloadRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	req, err := q.instance(mux.Vars(r)["cloud-region"])
	if err != nil {
		return err
	}
	placement, err := q.placement()
	if err != nil {
		return err
	}
	v, op, err := ws.creator.instantiate(r, req, func(s *nf.Spec) {
		s.AAI = nf.AAI{Writer: nf.AAIService, VNF: q.GenericVNF, Module: q.Module, Tenant: r.Header.Get("Project")}
		s.Inputs.OOF = placement
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, newWorkload{
		TemplateType: "heat", ID: v.id, Resources: v.resources(), Status: workloadStatus(v.Instance, op),
	})
}

// workloadStatus returns Heat's status of a workload.
func workloadStatus(in nf.Instance, op nf.Operation) string {
	switch word(in, op) {
	case preInstall, creating, created, postInstall:
		return "CREATE_IN_PROGRESS"
	case installFailed:
		return "CREATE_FAILED"
	case preUpgrade, upgrading, upgraded, postUpgrade:
		return "UPDATE_IN_PROGRESS"
	case upgradeFails:
		return "UPDATE_FAILED"
	case deleting:
		return deleteInProgress
	case deleteFailed:
		return "DELETE_FAILED"
	}
	return statusComplete
}

// of returns the workload of a request's path. The owner and the region
// in the path are ignored, because an id is unique. A workload exists until it is deleted
// in fact: SO asks for it until then.
func (ws workloads) of(r *http.Request) (workload, error) {
	v, err := ws.vnfs.find(r.Context(), mux.Vars(r)["instance"])
	if err != nil {
		return workload{}, notFound(fail("Get Instance", err))
	}
	op, err := ws.vnfs.latest(r.Context(), v.Instance)
	if err != nil {
		return workload{}, fail("Get Instance", err)
	}
	status, err := ws.refreshed(r.Context(), v.Instance, workloadStatus(v.Instance, op), op.Finished)
	return workloadOf(v.id, status), err
}

// notFound sets the status of an error of kind nf.NotFound to 404 in both
// styles: these clients treat any other status as a failure.
func notFound(err error) error {
	if e, ok := errors.AsType[*refusal](err); ok && nf.KindOf(e.cause) == nf.NotFound {
		e.status, e.strict = http.StatusNotFound, http.StatusNotFound
	}
	return err
}

func (ws workloads) get(w http.ResponseWriter, r *http.Request) error {
	found, err := ws.of(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, found)
}

func (ws workloads) find(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	if name == "" {
		w.Header().Set("Allow", http.MethodPost)
		return done(w, http.StatusMethodNotAllowed)
	}
	all, err := ws.vnfs.list(r.Context())
	if err != nil {
		return fail("Get Instance", err)
	}
	for _, v := range all {
		if v.request.Labels[stackLabel] != name {
			continue
		}
		op, err := ws.vnfs.latest(r.Context(), v.Instance)
		if err != nil {
			return fail("Get Instance", err)
		}
		out := workloadOf(v.id, workloadStatus(v.Instance, op))
		out.Reason = &stacks{Stacks: []stack{{Status: out.Status, ID: v.id}}}
		return answer(w, http.StatusOK, out)
	}
	out := workloadOf("", "GET_COMPLETE")
	out.Reason = &stacks{Stacks: []stack{}}
	return answer(w, http.StatusOK, out)
}

// remove terminates a workload. SO takes the response for the end: it deletes the
// vf-module in A&AI at once, with the version that it has read, so A&AI must not
// be written for the workload after that. The response therefore waits for the end
// of the operation, except of one that takes longer than SO waits. A request that is
// repeated waits for the same end.
func (ws workloads) remove(w http.ResponseWriter, r *http.Request) error {
	v, err := ws.vnfs.find(r.Context(), mux.Vars(r)["instance"])
	if err != nil {
		return fail("Error getting Instance: Get Instance", err)
	}
	var op nf.Operation
	if v.State == nf.Terminating {
		op, err = ws.vnfs.latest(r.Context(), v.Instance)
	} else {
		op, err = ws.terminator.terminate(r, v, "")
	}
	if err != nil {
		return fail("Error deleting instance", err)
	}
	ended, err := ws.terminator.ended(r.Context(), op)
	if err != nil {
		return fail("Error deleting instance", err)
	}
	status := deleteInProgress
	if ended {
		status = "DELETE_COMPLETE"
	}
	return answer(w, http.StatusAccepted, workloadOf(v.id, status))
}
