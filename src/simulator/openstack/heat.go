package openstack

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stack is a stack of Heat.
type stack struct {
	id, name       string
	action, status string
	reason         string
	tags           []string
	resources      []*resource
}

// stackRequest is the body with which a stack is created or changed.
type stackRequest struct {
	Name            string            `json:"stack_name"`
	Template        string            `json:"template"`
	Files           map[string]string `json:"files"`
	Parameters      map[string]any    `json:"parameters"`
	Minutes         int               `json:"timeout_mins"`
	DisableRollback bool              `json:"disable_rollback"`
	Tags            string            `json:"tags"`
}

var (
	stackName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,254}$`)
	tagForm   = regexp.MustCompile(`^[^/,]{1,80}$`)
)

// The states of stacks.
const (
	inProgress = "IN_PROGRESS"
	complete   = "COMPLETE"
	failed     = "FAILED"
)

// refuseStack returns an error in Heat's form.
func refuseStack(status int, kind, format string, args ...any) response {
	return response{status: status, body: map[string]any{
		"code": status, "title": http.StatusText(status), "explanation": "The request cannot be executed.",
		"error": map[string]any{"type": kind, "message": fmt.Sprintf(format, args...), "traceback": nil},
	}}
}

// orchestration adds the calls of Heat.
func (s *Simulator) orchestration() {
	on := func(pattern string, queries []string, do handle) {
		method, path, _ := strings.Cut(pattern, " ")
		s.on(method+" /orchestration/v1/project"+path, false, queries, do)
	}
	on("GET /stacks", []string{"name"}, func(r request) response {
		all := []any{}
		for _, st := range s.stacks {
			if wanted := r.http.URL.Query().Get("name"); wanted == "" || wanted == st.name {
				all = append(all, st.body())
			}
		}
		return response{status: http.StatusOK, body: map[string]any{"stacks": all}}
	})
	on("POST /stacks", nil, s.createStack)
	on("PUT /stacks/{name}/{id}", nil, s.with(s.updateStack))
	on("DELETE /stacks/{name}/{id}", nil, s.with(func(_ request, st *stack) response {
		st.enter("DELETE")
		for _, one := range st.resources {
			s.discard(one)
		}
		return response{status: http.StatusNoContent}
	}))
	on("POST /stacks/{name}/{id}/actions", nil, s.with(cancel))
	on("GET /stacks/{name}/{id}/resources", []string{"nested_depth"}, s.with(listResources))
	on("PATCH /stacks/{name}/{id}/resources/{resource}", nil, s.markUnhealthy)
}

// with returns the code of a call to one stack.
func (s *Simulator) with(do func(r request, st *stack) response) handle {
	return func(r request) response {
		at := slices.IndexFunc(s.stacks, func(st *stack) bool { return st.name == r.http.PathValue("name") && st.id == r.http.PathValue("id") })
		if at < 0 {
			return refuseStack(http.StatusNotFound, "EntityNotFound", "The Stack (%s) could not be found.", r.http.PathValue("name"))
		}
		return do(r, s.stacks[at])
	}
}

// cancel ends a creation or a change without taking it back.
func cancel(r request, st *stack) response {
	var body map[string]any
	if err := decode(r, &body); err != nil || len(body) != 1 {
		return refuseStack(http.StatusBadRequest, "HTTPBadRequest", "one action is expected")
	}
	if _, is := body["cancel_without_rollback"]; !is || st.status != inProgress || st.action == "DELETE" {
		return refuseStack(http.StatusBadRequest, "NotSupported", "the action cannot be executed while the stack is %s_%s", st.action, st.status)
	}
	st.status, st.reason = failed, "Stack "+st.action+" cancelled"
	return response{status: http.StatusNoContent}
}

// listResources lists the resources of a stack, and with a depth those of its groups.
func listResources(r request, st *stack) response {
	depth, _ := strconv.Atoi(r.http.URL.Query().Get("nested_depth"))
	all := []any{}
	for _, one := range st.resources {
		if one.owner.id == st.id || depth > 0 {
			all = append(all, one.body(base(r)))
		}
	}
	return response{status: http.StatusOK, body: map[string]any{"resources": all}}
}

// enter begins an action.
func (st *stack) enter(action string) {
	st.action, st.status, st.reason = action, inProgress, "Stack "+action+" started"
}

func (st *stack) body() map[string]any {
	return map[string]any{
		"id": st.id, "stack_name": st.name, "stack_status": st.action + "_" + st.status, "stack_status_reason": st.reason, "tags": st.tags,
		"description": "", "links": []any{}, "creation_time": time.Unix(0, 0).UTC().Format("2006-01-02T15:04:05Z"), "updated_time": nil,
	}
}

// readStack reads the body of a request, and returns the resources that its template
// describes.
func (s *Simulator) readStack(r request) (in stackRequest, wanted []*resource, refusal *response) {
	refused := func(kind, format string, args ...any) *response {
		return new(refuseStack(http.StatusBadRequest, kind, format, args...))
	}
	if err := decode(r, &in); err != nil {
		return in, nil, refused("HTTPBadRequest", "%s", err)
	}
	if !in.DisableRollback {
		return in, nil, refused("HTTPBadRequest", "a rollback is not simulated")
	}
	for tag := range strings.SplitSeq(in.Tags, ",") {
		if !tagForm.MatchString(tag) {
			return in, nil, refused("ValueError", "Invalid tag %q", tag)
		}
	}
	t, err := readTemplate(in.Template)
	if err != nil {
		return in, nil, refused("InvalidTemplateVersion", "%s", err)
	}
	params, err := t.check(in.Parameters)
	if err != nil {
		return in, nil, refused("UserParameterMissing", "%s", err)
	}
	wanted, err = t.describe(described{params: params, files: in.Files})
	if err != nil {
		return in, nil, refused("StackValidationFailed", "%s", err)
	}
	return in, wanted, nil
}

func (s *Simulator) createStack(r request) response {
	in, wanted, refusal := s.readStack(r)
	switch {
	case refusal != nil:
		return *refusal
	case !stackName.MatchString(in.Name):
		return refuseStack(http.StatusBadRequest, "StackValidationFailed", "Invalid stack name %s", in.Name)
	case slices.ContainsFunc(s.stacks, func(st *stack) bool { return st.name == in.Name }):
		return refuseStack(http.StatusConflict, "StackExists", "The Stack (%s) already exists.", in.Name)
	}
	st := &stack{id: s.id(), name: in.Name, tags: strings.Split(in.Tags, ",")}
	s.stacks = append(s.stacks, st)
	st.enter("CREATE")
	s.reconcile(st, wanted)
	return response{status: http.StatusCreated, body: map[string]any{"stack": map[string]any{"id": st.id, "links": []any{}}}}
}

func (s *Simulator) updateStack(r request, st *stack) response {
	in, wanted, refusal := s.readStack(r)
	switch {
	case refusal != nil:
		return *refusal
	case in.Name != "":
		return refuseStack(http.StatusBadRequest, "HTTPBadRequest", "stack_name cannot be changed")
	case st.status == inProgress:
		return refuseStack(http.StatusConflict, "ActionInProgress", "Stack %s already has an action (%s) in progress.", st.name, st.action)
	}
	st.tags = strings.Split(in.Tags, ",")
	st.enter("UPDATE")
	s.reconcile(st, wanted)
	return response{status: http.StatusAccepted, body: map[string]any{}}
}

// markUnhealthy makes the next change of a stack replace a resource of it, or of the stack
// of a member of its groups.
func (s *Simulator) markUnhealthy(r request) response {
	var body struct {
		Mark   bool   `json:"mark_unhealthy"`
		Reason string `json:"resource_status_reason"`
	}
	if err := decode(r, &body); err != nil || !body.Mark {
		return refuseStack(http.StatusBadRequest, "HTTPBadRequest", "mark_unhealthy is missing")
	}
	for _, st := range s.stacks {
		for _, one := range st.resources {
			if one.owner.id == r.http.PathValue("id") && one.owner.name == r.http.PathValue("name") && one.name == r.http.PathValue("resource") {
				one.unhealthy = true
				return response{status: http.StatusOK}
			}
		}
	}
	return refuseStack(http.StatusNotFound, "EntityNotFound", "The Resource (%s) could not be found.", r.http.PathValue("resource"))
}

// Stacks returns the names of all stacks, each with its status, in the order of their
// names.
func (s *Simulator) Stacks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	out := []string{}
	for _, st := range s.stacks {
		out = append(out, st.name+" "+st.action+"_"+st.status)
	}
	slices.Sort(out)
	return out
}
