package onap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// resourceStatus is an object as it is in the region.
type resourceStatus struct {
	Name   string         `json:"name"`
	GVK    gvk            `json:"GVK"`
	Status map[string]any `json:"status"`
}

// instanceStatus is the status of an instance. Some clients reject additional
// fields in the request.
type instanceStatus struct {
	Request instanceRequest  `json:"request"`
	Ready   bool             `json:"ready"`
	Count   int              `json:"resourceCount"`
	Objects []resourceStatus `json:"resourcesStatus"`
}

// statuses serves the status of instances.
type statuses struct {
	vnfs *vnfs
	live Live
}

func (ss statuses) routes(on route) { on(http.MethodGet, "/v1/instance/{instance}/status", ss.get) }

func (ss statuses) get(w http.ResponseWriter, r *http.Request) error {
	v, err := ss.vnfs.of(r)
	if err != nil {
		return fail("Get Instance", err)
	}
	objects, whole, err := ss.objects(r.Context(), v)
	if err != nil {
		return err
	}
	ready := false
	if whole {
		if ready, err = ss.ready(r.Context(), v); err != nil {
			return fail("Getting Resources Status", err)
		}
	}
	return answer(w, http.StatusOK, instanceStatus{Request: v.shown(), Ready: ready, Count: len(objects), Objects: objects})
}

// objects returns the objects of an instance, its pods, and the additional
// objects of its profile. As in ONAP, a missing object is an error. It is not
// an error if the object was deleted after completing, or if an operation is changing the
// instance; in the latter case whole is false.
func (ss statuses) objects(ctx context.Context, v vnf) (out []resourceStatus, whole bool, err error) {
	refs := refsOf(v.Instance)
	live, err := ss.live.Objects(ctx, v.Instance, refs)
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
		changing, err := ss.changing(ctx, v.Instance)
		if err != nil {
			return nil, false, fail("Getting Resources Status", err)
		}
		if whole = false; !changing {
			return nil, false, failAs("Getting Resources Status:\n"+strings.Join(missing, "\n"),
				nf.E(nf.Failed, "read", "VNF instance "+v.id, errors.New(strings.Join(missing, "; "))))
		}
	}
	further, err := ss.further(ctx, v)
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

// changing reports whether an operation changes an instance. The inventory has objects
// that are not created yet, and until the end those that were deleted.
func (ss statuses) changing(ctx context.Context, in nf.Instance) (bool, error) {
	if in.Operation == "" {
		return false, nil
	}
	op, err := ss.vnfs.latest(ctx, in)
	return !op.State.Final() && op.Verb != nf.Test, err
}

func passing(in nf.Instance, ref nf.Ref) bool {
	return slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Passing && it.Ref == ref })
}

// further returns the objects with an instance's owner label that other
// controllers created: its pods, and those of the profile's additional kinds.
// Kinds that cannot be read are left out.
func (ss statuses) further(ctx context.Context, v vnf) ([]map[string]any, error) {
	kinds, err := ExtraKinds(v.Instance)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, k := range append([]nf.Ref{{Version: "v1", Kind: "Pod"}}, kinds...) {
		q := Query{APIVersion: k.APIVersion(), Kind: k.Kind, Labels: nf.OwnerLabel + "=" + v.ID}
		found, err := findIn(ctx, ss.live, v, q)
		switch nf.KindOf(err) {
		case nf.Unsupported, nf.Failed, nf.Unreachable:
			continue // one unreadable kind must not hide the others
		default:
			if err != nil {
				return nil, err
			}
		}
		out = append(out, found...)
	}
	return out, nil
}

// ready reports whether an instance is done and each of its objects is current.
func (ss statuses) ready(ctx context.Context, v vnf) (bool, error) {
	op, err := ss.vnfs.latest(ctx, v.Instance)
	if err != nil || word(v.Instance, op) != stateDone {
		return false, err
	}
	health, err := ss.vnfs.instances.Health(ctx, v.ID)
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

// same reports whether both are the same object, in any version.
func (s resourceStatus) same(o resourceStatus) bool {
	return s.Name == o.Name && s.GVK.Group == o.GVK.Group && s.GVK.Kind == o.GVK.Kind && s.meta("namespace") == o.meta("namespace")
}

// ONAP's words for the lifecycle state of an instance.
const (
	stateDone = "DONE"

	preInstall, creating, created, postInstall, installFailed  = "PRE-INSTALL", "CREATING", "CREATED", "POST-INSTALL", "POST-INSTALL-FAILED"
	preUpgrade, upgrading, upgraded, postUpgrade, upgradeFails = "PRE-UPGRADE", "UPGRADING", "UPGRADED", "POST-UPGRADE", "POST-UPGRADE-FAILED"
	deleting, deleteFailed                                     = "DELETING", "PRE-DELETE-FAILED"
)

// word returns the lifecycle state of an instance. Op is the running operation,
// or the last one.
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
	case op.Verb == nf.Test && in.State == nf.Broken:
		return upgradeFails // the operation before has failed
	}
	return stateDone // other operations do not change this state
}

func phase(in nf.Instance, op nf.Operation, words [5]string) string {
	event, _, _ := hookStep(op)
	switch {
	case in.State == nf.Broken:
		return words[4]
	case in.State == nf.Ready || in.Operation != op.ID:
		return stateDone
	case northbound.Applied(op) && event.Post():
		return words[3]
	case northbound.Applied(op):
		return words[2]
	case op.Started.IsZero() || event.Pre():
		return words[0]
	}
	return words[1]
}

// hookStep returns the event, the index and the number of hooks if an
// operation's last step is one of a hook.
func hookStep(op nf.Operation) (event nf.HookEvent, at, of int) {
	if len(op.Steps) == 0 {
		return "", 0, 0
	}
	last := op.Steps[len(op.Steps)-1]
	if !last.OfHook() || last.Event == nf.TestRun {
		return "", 0, 0
	}
	return last.Event, last.Index, last.Of
}

// progress returns how many hooks of the current event have run, for example
// "1/2".
func progress(op nf.Operation, hooks []hook) string {
	if event, at, of := hookStep(op); event != "" {
		if op.State != nf.Succeeded {
			at--
		}
		return fmt.Sprintf("%d/%d", at, of)
	}
	after := map[nf.Verb]nf.HookEvent{nf.Instantiate: nf.PostInstall, nf.Upgrade: nf.PostUpgrade}[op.Verb]
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
