package so

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// stack is the response to a request for a stack. SO fails if it has another field.
type stack struct {
	Type   string          `json:"template_type"`
	ID     string          `json:"workload_id"`
	Status string          `json:"workload_status"`
	Reason json.RawMessage `json:"workload_status_reason"`
}

// status returns the status that SO reads: that of the first stack in the reason, if there
// is one, takes precedence.
func (w stack) status() string {
	var reason struct {
		Stacks []struct {
			Status string `json:"stack_status"`
		} `json:"stacks"`
	}
	if json.Unmarshal(w.Reason, &reason) != nil || w.Status == "GET_FAILED" || strings.Contains(w.Status, "UPDATE") || reason.Stacks == nil {
		return w.Status
	}
	if len(reason.Stacks) == 0 {
		return "NOT_FOUND"
	}
	return reason.Stacks[0].Status
}

// Stack is a stack that SO has created.
type Stack struct {
	ID      string
	Objects []string // "kind name" of each
	Listed  Listed   // set by UpdateInventory
}

// Heat creates a VNF as SO's core does through the broker, and deletes it.
func (d *Driver) Heat(ctx context.Context, v VNF) error {
	if err := d.Plan(ctx, v); err != nil {
		return err
	}
	made, err := d.CreateStack(ctx, v)
	if err != nil {
		return d.backOut(ctx, v, err)
	}
	if made.Listed, err = d.UpdateInventory(ctx, v, made); err != nil {
		return err
	}
	if err := d.DeleteStack(ctx, v, made); err != nil {
		return err
	}
	return d.Clear(ctx, v)
}

// heat sends a request to the broker's path.
func (s step) heat(ctx context.Context, method string, v VNF, rest string, body any) (reply, error) {
	path := "/api/multicloud/v1/" + url.PathEscape(v.Owner) + "/" + url.PathEscape(v.Region) + "/infra_workload" + rest
	return s.send(ctx, s.d.cfg.Service, message{method, path, body, map[string]string{
		"Accept": "application/json", "Content-Type": "application/json", "Project": v.Tenant,
	}})
}

// request is the body that SO sends for a new stack, with fields that only Heat needs.
func (v VNF) request() map[string]any {
	values := map[string]string{"k8s-rb-profile-name": v.Profile}
	maps.Copy(values, v.Values)
	oof := v.OOF
	if oof == nil {
		oof = map[string]any{}
	}
	return map[string]any{
		"generic-vnf-id": v.ID, "vf-module-id": v.Module, "vf-module-model-invariant-id": v.Invariant,
		"vf-module-model-version-id": v.Version, "vf-module-model-customization-id": v.Customization,
		"oof_directives": oof, "sdnc_directives": attributes(values), "user_directives": attributes(v.User),
		"template_type": "heat", "template_data": map[string]any{
			"stack_name": v.Release, "template": "", "parameters": map[string]any{}, "files": map[string]any{}, "timeout_mins": 118,
			"disable_rollback": true, "environment": "",
		},
	}
}

// attributes returns values in the form of directives.
func attributes(values map[string]string) map[string]any {
	out := []any{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, map[string]string{"attribute_name": name, "attribute_value": values[name]})
	}
	return map[string]any{"attributes": out}
}

// CreateStack creates a stack and polls it until it is complete. If the creation fails, SO
// deletes the stack, and the error says why it failed.
func (d *Driver) CreateStack(ctx context.Context, v VNF) (Stack, error) {
	s := d.step("SO creates the stack")
	found, r, err := s.named(ctx, v)
	if err == nil && found != "" {
		err = r.differs("there is a stack with this name: %s", found)
	}
	if err != nil {
		return Stack{}, err
	}
	made, err := s.request(ctx, v)
	if err != nil {
		return made, err
	}
	last, err := s.complete(ctx, v, made.ID)
	if err != nil {
		return made, err
	}
	if last != "CREATE_COMPLETE" {
		failed := &Difference{Step: s.name, Request: "GET " + made.ID, What: "the status is " + last + ", so SO deletes the stack"}
		if err := d.DeleteStack(ctx, v, made); err != nil {
			return made, fmt.Errorf("%w; %w", failed, err)
		}
		return made, failed
	}
	if made.Objects == nil { // the response to the request was lost
		if made.Objects, err = s.objects(ctx, made.ID); err != nil {
			return made, err
		}
	}
	s.done("stack %s is complete, with %d objects", made.ID, len(made.Objects))
	return made, s.activate(ctx, v, made.ID)
}

// named returns the id of the stack that has the name of a VNF's, or "".
func (s step) named(ctx context.Context, v VNF) (id string, r reply, err error) {
	r, err = s.heat(ctx, http.MethodGet, v, "?name="+url.QueryEscape(v.Release), nil)
	if err != nil || r.status == http.StatusNotFound {
		return "", r, err
	}
	var found stack
	if err = r.want(http.StatusOK); err == nil {
		err = r.strictly(&found)
	}
	return found.ID, r, err
}

// request requests the creation of a stack. If an attempt before was accepted, the stack is
// found by its name.
func (s step) request(ctx context.Context, v VNF) (Stack, error) {
	r, err := s.heat(ctx, http.MethodPost, v, "", v.request())
	if err != nil {
		return Stack{}, err
	}
	if r.repeated && r.status != http.StatusCreated {
		if id, _, err := s.named(ctx, v); err != nil || id != "" {
			return Stack{ID: id}, err
		}
	}
	return r.created()
}

// objects returns the objects of a stack, as "kind name".
func (s step) objects(ctx context.Context, id string) ([]string, error) {
	r, err := s.send(ctx, s.d.cfg.Service, message{http.MethodGet, "/v1/instance/" + url.PathEscape(id), nil, acceptJSON()})
	if err == nil {
		err = r.want(http.StatusOK)
	}
	var in rbInstance
	if err == nil {
		err = r.read(&in)
	}
	var out []string
	for _, o := range in.Resources {
		out = append(out, o.GVK.Kind+" "+o.Name)
	}
	if err == nil && len(out) == 0 {
		err = r.differs("it has no objects")
	}
	return out, err
}

// created reads the response to the creation of a stack, in which SO tolerates further
// fields.
func (r reply) created() (Stack, error) {
	var made struct {
		ID      string `json:"workload_id"`
		Status  string `json:"workload_status"`
		Objects []struct {
			Name string
			GVK  struct{ Kind string }
		} `json:"template_response"`
	}
	if err := r.want(http.StatusCreated); err != nil {
		return Stack{}, err
	}
	if err := r.read(&made); err != nil {
		return Stack{}, err
	}
	if made.ID == "" {
		return Stack{}, r.differs("it has no workload_id")
	}
	out := Stack{ID: made.ID}
	for _, o := range made.Objects {
		out.Objects = append(out.Objects, o.GVK.Kind+" "+o.Name)
	}
	return out, nil
}

// complete polls a stack until its creation has ended, and returns the last status.
func (s step) complete(ctx context.Context, v VNF, id string) (last string, err error) {
	err = s.poll(ctx, func(ctx context.Context) (bool, error) {
		var now stack
		r, err := s.heat(ctx, http.MethodGet, v, "/"+id, nil)
		if err == nil {
			err = r.want(http.StatusOK)
		}
		if err == nil {
			err = r.strictly(&now)
		}
		last = now.status()
		return last != "CREATE_IN_PROGRESS", err
	})
	return last, err
}

// UpdateInventory has the service write a stack into A&AI, and waits until A&AI has all its
// objects.
func (d *Driver) UpdateInventory(ctx context.Context, v VNF, of Stack) (Listed, error) {
	s := d.step("SO has A&AI updated")
	r, err := s.heat(ctx, http.MethodPost, v, "/"+of.ID, map[string]string{"generic-vnf-id": v.ID, "vf-module-id": v.Module})
	if err != nil {
		return Listed{}, err
	}
	if err := r.want(http.StatusAccepted); err != nil {
		return Listed{}, err
	}
	err = s.poll(ctx, func(ctx context.Context) (bool, error) { // the final status is only logged by SO
		var now stack
		r, err := s.heat(ctx, http.MethodGet, v, "/"+of.ID, nil)
		if err == nil {
			err = r.want(http.StatusOK)
		}
		if err == nil {
			err = r.strictly(&now)
		}
		return now.Status != "UPDATE_IN_PROGRESS", err
	})
	if err != nil {
		return Listed{}, err
	}
	got, err := s.await(ctx, v, of.Objects)
	if err == nil {
		s.done("A&AI has %d k8s-resources and %s", len(got.Objects), got.text())
	}
	return got, err
}

// DeleteStack deletes a stack. SO knows three responses: 204, after which it polls until the
// stack is gone; 202, which it takes for the end; and 404. Then the stack must be gone in
// fact, and A&AI must not have its objects.
func (d *Driver) DeleteStack(ctx context.Context, v VNF, of Stack) error {
	s := d.step("SO deletes the stack")
	paths, err := s.related(ctx, v, of.Listed)
	if err != nil {
		return err
	}
	r, err := s.heat(ctx, http.MethodDelete, v, "/"+of.ID, nil)
	if err != nil {
		return err
	}
	switch {
	case r.status == http.StatusNoContent || r.repeated:
		err = s.poll(ctx, func(ctx context.Context) (bool, error) { return s.deleted(ctx, v, of.ID) })
	case r.status == http.StatusAccepted || r.status == http.StatusNotFound:
		var done bool
		if done, err = s.deleted(ctx, v, of.ID); err == nil && !done {
			err = r.differs("SO takes status %d for the end, but the stack is there", r.status)
		}
	default:
		err = r.want(http.StatusNoContent, http.StatusAccepted, http.StatusNotFound)
	}
	if err == nil {
		err = s.gone(ctx, paths)
	}
	if err == nil {
		s.done("stack %s is gone, and A&AI has none of its %d objects", of.ID, len(paths))
	}
	return err
}

// deleted reports whether a stack is gone.
func (s step) deleted(ctx context.Context, v VNF, id string) (bool, error) {
	r, err := s.heat(ctx, http.MethodGet, v, "/"+id, nil)
	if err != nil || r.status == http.StatusNotFound {
		return err == nil, err
	}
	if err := r.want(http.StatusOK); err != nil {
		return false, err
	}
	var now stack
	if err := r.strictly(&now); err != nil {
		return false, err
	}
	switch now.status() {
	case "DELETE_COMPLETE":
		return true, nil
	case "DELETE_IN_PROGRESS":
		return false, nil
	}
	return false, r.differs("the status is %s after the deletion", now.status())
}
