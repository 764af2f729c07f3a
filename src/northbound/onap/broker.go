package onap

import (
	"errors"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// stackLabel is the label of a request that names the stack that it came as.
const stackLabel = "stack-name"

// workloadRequest asks for an instance as if it were a stack of OpenStack's Heat.
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

// directives are values by name. A value that is null is as good as absent.
type directives struct {
	Attributes []struct {
		Name  string  `json:"attribute_name"`
		Value *string `json:"attribute_value"`
	} `json:"attributes"`
}

// workload is an instance as if it were a stack. Some clients refuse an answer
// with further fields.
type workload struct {
	TemplateType string  `json:"template_type"`
	ID           string  `json:"workload_id"`
	Status       string  `json:"workload_status"`
	Reason       *stacks `json:"workload_status_reason"`
}

// newWorkload is a workload with what it is.
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

func (a *API) brokerRoutes(r *mux.Router) {
	const all = "/{cloud-owner}/{cloud-region}/infra_workload"
	a.on(r, http.MethodPost, all, a.createWorkload)
	a.on(r, http.MethodGet, all, a.findWorkload)
	a.on(r, http.MethodGet, all+"/{instance}", a.getWorkload)
	a.on(r, http.MethodPost, all+"/{instance}", a.refreshWorkload)
	a.on(r, http.MethodDelete, all+"/{instance}", a.deleteWorkload)
}

// check refuses a request that lacks something.
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

// values returns all directives as one: the user's count most, and SDNC's least.
func (q workloadRequest) values() texts {
	out := texts{}
	for _, d := range []directives{q.SDNCDirectives, q.OOFDirectives, q.UserDirectives} {
		for _, attribute := range d.Attributes {
			if attribute.Value != nil {
				out[attribute.Name] = *attribute.Value
			}
		}
	}
	return out
}

// instance returns the request for the instance that the workload is.
func (q workloadRequest) instance(region string) (instanceRequest, error) {
	values := q.values()
	profile, ok := values["k8s-rb-profile-name"]
	if !ok {
		return instanceRequest{}, refuse(http.StatusBadRequest, "k8s-rb-profile-name is missing from directives")
	}
	release, ok := values["k8s-rb-instance-release-name"]
	if !ok {
		// The profile's would be the same for all that are made with it.
		release = q.Module
	}
	out := instanceRequest{
		Definition: q.ModelInvariant, Version: q.ModelCustom, Profile: profile, Release: release, Region: region,
		Labels: texts{stackLabel: q.TemplateContent.Stack}, Overrides: values,
	}
	return out, out.check()
}

func (a *API) createWorkload(w http.ResponseWriter, r *http.Request) error {
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
	v, op, err := a.bringUp(r, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, newWorkload{
		TemplateType: "heat", ID: v.id, Resources: v.resources(), Status: workloadStatus(v.Instance, op),
	})
}

// workloadStatus says how a workload is doing, in Heat's words.
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
	case deleteFailed:
		return "DELETE_FAILED"
	}
	return "CREATE_COMPLETE"
}

// workload reads the workload of a path. The path's owner and region do not
// count: an id is unique.
func (a *API) workload(r *http.Request) (workload, error) {
	v, err := a.vnfOf(r)
	if err != nil {
		return workload{}, notFound(fail("Get Instance", err))
	}
	op, err := a.latest(r.Context(), v.Instance)
	if err != nil {
		return workload{}, fail("Get Instance", err)
	}
	return workloadOf(v.id, workloadStatus(v.Instance, op)), nil
}

// notFound makes a refusal for what does not exist a 404 in both styles: here,
// clients take every other one for a failure.
func notFound(err error) error {
	if e, ok := errors.AsType[*refusal](err); ok && nf.KindOf(e.cause) == nf.NotFound {
		e.status, e.strict = http.StatusNotFound, http.StatusNotFound
	}
	return err
}

func (a *API) getWorkload(w http.ResponseWriter, r *http.Request) error {
	found, err := a.workload(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, found)
}

// refreshWorkload is asked to bring the inventory of the network up to date. It
// promises that, and there is nothing to do: whoever keeps the inventory is told
// of every change.
func (a *API) refreshWorkload(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.workload(r); err != nil {
		return err
	}
	return done(w, http.StatusAccepted)
}

func (a *API) findWorkload(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	if name == "" {
		w.Header().Set("Allow", http.MethodPost)
		return done(w, http.StatusMethodNotAllowed)
	}
	all, err := a.vnfs(r.Context())
	if err != nil {
		return fail("Get Instance", err)
	}
	for _, v := range all {
		if v.request.Labels[stackLabel] != name {
			continue
		}
		op, err := a.latest(r.Context(), v.Instance)
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

func (a *API) deleteWorkload(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Error getting Instance: Get Instance", err)
	}
	if err := a.takeDown(r, v, false); err != nil {
		return fail("Error deleting instance", err)
	}
	return answer(w, http.StatusAccepted, workloadOf(v.id, "DELETE_COMPLETE"))
}
