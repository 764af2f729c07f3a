package onap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// resourceStatus is an object as it is in the region.
type resourceStatus struct {
	Name   string         `json:"name"`
	GVK    gvk            `json:"GVK"`
	Status map[string]any `json:"status"`
}

// instanceStatus is how an instance is doing. Some clients refuse further fields
// in the request.
type instanceStatus struct {
	Request instanceRequest  `json:"request"`
	Ready   bool             `json:"ready"`
	Count   int              `json:"resourceCount"`
	Objects []resourceStatus `json:"resourcesStatus"`
}

func (a *API) instanceStatus(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Get Instance", err)
	}
	objects, whole, err := a.objects(r.Context(), v)
	if err != nil {
		return err
	}
	ready := false
	if whole {
		if ready, err = a.ready(r.Context(), v); err != nil {
			return fail("Getting Resources Status", err)
		}
	}
	return answer(w, http.StatusOK, instanceStatus{Request: v.shown(), Ready: ready, Count: len(objects), Objects: objects})
}

// objects reads what an instance is, its pods, and what else its profile counts
// as its. An object that is missing is an error, as in ONAP, unless it is gone
// because its work is done, or is still being made: then the objects are not
// whole.
func (a *API) objects(ctx context.Context, v vnf) (out []resourceStatus, whole bool, err error) {
	refs := refsOf(v.Instance)
	live, err := a.cfg.Live.Objects(ctx, v.Instance, refs)
	if err != nil {
		return nil, false, fail("Getting Resources Status", err)
	}
	out, whole = []resourceStatus{}, true
	var missing []string
	for i, ref := range refs {
		if live[i] != nil {
			out = append(out, statusOf(live[i]))
		} else if !passing(v.Instance, ref) {
			missing = append(missing, fmt.Sprintf("%s %s: not found", ref.Kind, ref.Name))
		}
	}
	if len(missing) > 0 {
		making, err := a.making(ctx, v.Instance)
		if err != nil {
			return nil, false, fail("Getting Resources Status", err)
		}
		if whole = false; !making {
			return nil, false, failAs("Getting Resources Status:\n"+strings.Join(missing, "\n"),
				nf.E(nf.Failed, "read", "VNF instance "+v.id, errors.New(strings.Join(missing, "; "))))
		}
	}
	further, err := a.further(ctx, v)
	if err != nil {
		return nil, false, fail("Getting Resources Status", err)
	}
	for _, object := range further {
		if s := statusOf(object); !slices.ContainsFunc(out, s.same) {
			out = append(out, s)
		}
	}
	return out, whole, nil
}

// making reports whether an operation is at an instance that has objects yet to
// make.
func (a *API) making(ctx context.Context, in nf.Instance) (bool, error) {
	if in.Operation == "" {
		return false, nil
	}
	op, err := a.latest(ctx, in)
	return !op.State.Final() && !applied(op), err
}

func passing(in nf.Instance, ref nf.Ref) bool {
	return slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Passing && it.Ref == ref })
}

// further reads the objects that bear an instance's label and that others have
// made: its pods, and those of the types that its profile names.
func (a *API) further(ctx context.Context, v vnf) ([]map[string]any, error) {
	memo, err := memoOf(v.Instance)
	if err != nil {
		return nil, err
	}
	q := Query{Region: v.Region, APIVersion: "v1", Kind: "Pod", Labels: nf.OwnerLabel + "=" + v.ID}
	out, err := a.findIn(ctx, v, q)
	if err != nil {
		return nil, err
	}
	for _, t := range memo.Extra {
		q.Kind, q.APIVersion = t.Kind, nf.Ref{Group: t.Group, Version: t.Version}.APIVersion()
		found, err := a.findIn(ctx, v, q)
		if nf.KindOf(err) == nf.Unsupported {
			continue // there cannot be any
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// ready reports whether an instance is done, and every object of it is as it
// should be.
func (a *API) ready(ctx context.Context, v vnf) (bool, error) {
	op, err := a.latest(ctx, v.Instance)
	if err != nil || word(v.Instance, op) != stateDone {
		return false, err
	}
	health, err := a.cfg.Instances.Health(ctx, v.ID)
	if err != nil {
		return false, err
	}
	judged := refsOf(v.Instance)
	return !slices.ContainsFunc(health, func(h nf.Health) bool {
		return h.Status != nf.Current && slices.Contains(judged, h.Ref)
	}), nil
}

func statusOf(object map[string]any) resourceStatus {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	s := resourceStatus{GVK: gvk{Version: version, Kind: kind}, Status: object}
	if group, v, ok := strings.Cut(version, "/"); ok {
		s.GVK.Group, s.GVK.Version = group, v
	}
	s.Name = s.meta("name")
	return s
}

func (s resourceStatus) meta(field string) string {
	metadata, _ := s.Status["metadata"].(map[string]any)
	value, _ := metadata[field].(string)
	return value
}

// same reports whether both are one object, in whatever version.
func (s resourceStatus) same(o resourceStatus) bool {
	return s.Name == o.Name && s.GVK.Group == o.GVK.Group && s.GVK.Kind == o.GVK.Kind && s.meta("namespace") == o.meta("namespace")
}

// ONAP's words for where an instance is in its life.
const (
	stateDone = "DONE"

	preInstall, creating, created, postInstall, installFailed  = "PRE-INSTALL", "CREATING", "CREATED", "POST-INSTALL", "POST-INSTALL-FAILED"
	preUpgrade, upgrading, upgraded, postUpgrade, upgradeFails = "PRE-UPGRADE", "UPGRADING", "UPGRADED", "POST-UPGRADE", "POST-UPGRADE-FAILED"
	deleting, deleteFailed                                     = "DELETING", "PRE-DELETE-FAILED"
)

// word says where an instance is in its life. Op is the operation that runs on
// it, or was the last one.
func word(in nf.Instance, op nf.Operation) string {
	switch {
	case in.State == nf.Terminating:
		return deleting
	case op.Verb == nf.Instantiate:
		return phase(in, op, [5]string{preInstall, creating, created, postInstall, installFailed})
	case op.Verb == nf.Upgrade || op.Verb == nf.Rollback:
		return phase(in, op, [5]string{preUpgrade, upgrading, upgraded, postUpgrade, upgradeFails})
	case op.Verb == nf.Terminate && in.State == nf.Broken:
		return deleteFailed
	}
	return stateDone // what else is done to it leaves it what it is
}

func phase(in nf.Instance, op nf.Operation, words [5]string) string {
	event, _, _ := hookStep(op)
	switch {
	case in.State == nf.Broken:
		return words[4]
	case in.State == nf.Ready || in.Operation != op.ID:
		return stateDone
	case applied(op) && strings.HasPrefix(event, "post-"):
		return words[3]
	case applied(op):
		return words[2]
	case op.Started.IsZero() || strings.HasPrefix(event, "pre-"):
		return words[0]
	}
	return words[1]
}

// hookStep returns which hook an operation is at, when its last step is one of a
// hook: its event, and its place among those of the event.
func hookStep(op nf.Operation) (event string, at, of int) {
	if len(op.Steps) == 0 {
		return "", 0, 0
	}
	// "run pre-install 1/2 Job web"
	words := strings.Fields(strings.TrimPrefix(op.Steps[len(op.Steps)-1].Name, "undo: "))
	if len(words) < 3 || !strings.Contains(words[1], "-") {
		return "", 0, 0
	}
	if n, err := fmt.Sscanf(words[2], "%d/%d", &at, &of); n != 2 || err != nil {
		return "", 0, 0
	}
	return words[1], at, of
}

// progress says how many of the hooks that an operation is at have run: "1/2".
func progress(op nf.Operation, hooks []Hook) string {
	if event, at, of := hookStep(op); event != "" {
		if op.State != nf.Succeeded {
			at--
		}
		return fmt.Sprintf("%d/%d", at, of)
	}
	after := map[nf.Verb]string{nf.Instantiate: "post-install", nf.Upgrade: "post-upgrade"}[op.Verb]
	n := 0
	for _, h := range hooks {
		if slices.Contains(h.Events, after) {
			n++
		}
	}
	if n == 0 || op.State != nf.Succeeded {
		return ""
	}
	return fmt.Sprintf("%d/%d", n, n)
}
