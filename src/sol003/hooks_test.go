package sol003_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// hooks runs scripts: each is recorded, and fails as often as it is told to.
type hooks struct {
	mu       sync.Mutex
	ran      []string
	calls    []nf.VNFHook
	failures map[string]int
}

// Check implements sol003.Hooks.
func (*hooks) Check(call nf.VNFHook) error {
	if call.Type == nf.SSHScript && call.Secret[nf.HookHostsParameter] == nil {
		return nf.E(nf.Invalid, "run", "the script", nf.Violations{{Field: "script_hosts", Message: "is missing"}})
	}
	return nil
}

// Run implements sol003.Hooks.
func (h *hooks) Run(_ context.Context, call nf.VNFHook, tell func(nf.LogEntry) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran, h.calls = append(h.ran, call.Operation), append(h.calls, call)
	if h.failures[call.Operation] > 0 {
		h.failures[call.Operation]--
		return nf.E(nf.Failed, "run", "the script of "+call.Operation, errors.New("it ended with code 3"))
	}
	return tell(nf.LogEntry{Kind: nf.EventLine, Message: "done with s3cret"})
}

func (h *hooks) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.ran
	h.ran = nil
	return out
}

// scripted has a flavor with scripts that are not Jobs.
type scripted struct{ *world }

// Topology implements sol003.Descriptors.
func (s scripted) Topology(ctx context.Context, pkg string) (tosca.Topology, error) {
	t, err := s.world.Topology(ctx, pkg)
	f := t.Flavors["simple"]
	f.Scripts = map[string]tosca.Script{"terminate_start": {}, "heal_end": {Type: "tosca.artifacts.Implementation.Bash", File: "Scripts/job.sh"}}
	for _, name := range []string{"instantiate_start", "instantiate_end", "instantiate_rollback_end", "scale_start", "scale_end"} {
		f.Scripts[name] = tosca.Script{Type: nf.SSHScript, File: "Scripts/" + name, Inputs: map[string]any{"mode": "full", "timeout": 30}}
	}
	for _, name := range []string{"heal_start", "terminate_end"} {
		f.Scripts[name] = tosca.Script{Type: nf.WebhookScript, File: "Scripts/hook.url"}
	}
	t.Flavors["simple"] = f
	return t, err
}

func scriptHosts() nf.VNFRequest {
	return nf.VNFRequest{Extra: map[string]any{"namespace": "apps", "script_hosts": []any{map[string]any{"password": "s3cret"}}}}
}

func (w *world) startScripted(t *testing.T) (*sol003.Manager, *hooks) {
	t.Helper()
	h := &hooks{failures: map[string]int{}}
	m, _ := w.start(t, func(c *config) { c.Hooks, c.Descriptors = h, scripted{w} })
	return m, h
}

// TestHooks runs scripts before and after the operations of the engine, with their
// credentials, which no record has afterwards.
func TestHooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, h := w.startScripted(t)
		ctx, id := t.Context(), create(t, m)
		_, err := m.Instantiate(ctx, id, nf.InstantiateVNFRequest{Flavor: "simple"})
		wantKind(t, "the hosts of a script are missing", err, nf.Invalid)
		o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Instantiate(ctx, id, nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: scriptHosts()})
		})
		if diff := cmp.Diff([]string{"instantiate_start", "instantiate_end"}, h.take()); diff != "" {
			t.Errorf("the scripts (-want +got):\n%s", diff)
		}
		call := h.calls[0]
		if call.Timeout.Seconds() != 30 || call.Package != "one" || call.VNF != id || call.Occurrence != o.ID || !strings.HasSuffix(call.ID, "-instantiate_start") {
			t.Errorf("the first call is %+v", call)
		}
		if diff := cmp.Diff(map[string]any{"namespace": "apps"}, call.Params); diff != "" || call.Inputs["timeout"] != nil || call.Secret[nf.HookHostsParameter] == nil {
			t.Errorf("the script gets %+v (-want +got):\n%s", call, diff)
		}
		if op, err := m.Operations().Operation(ctx, id, o.Attempts[0]); err != nil || !slices.ContainsFunc(op.Steps, func(s nf.Step) bool { return s.Title() == "run script instantiate_end" }) || op.Entries != 2 {
			t.Errorf("the attempt is %+v: %v", op, err)
		}
		for key, value := range w.records(t) {
			if strings.Contains(value, "s3cret") {
				t.Errorf("%s still has the credentials", key)
			}
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Heal(ctx, id, nf.HealVNFRequest{}) })
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		if diff := cmp.Diff([]string{"heal_start", "terminate_end"}, h.take()); diff != "" {
			t.Errorf("a script that is a Job, and an operation without one, are left alone (-want +got):\n%s", diff)
		}
	})
}

// TestHooksFail: an occurrence whose script fails is retried or rolled back, wherever that
// is.
func TestHooksFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, h := w.startScripted(t)
		ctx, id := t.Context(), create(t, m)
		request := nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: scriptHosts()}
		for _, failing := range []string{"instantiate_start", "instantiate_end"} {
			for _, again := range []func(context.Context, string, nf.RequestKey) error{m.Rollback, m.Retry} {
				h.failures[failing] = 1
				o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, request) })
				must(t, again(ctx, o.ID, nf.RequestKey{}))
				o = ended(t, m, o.ID)
				v := get(t, m, id)
				rolledBack := o.State == nf.OccurrenceRolledBack && v.Instantiated == nil && len(w.engine.in("edge")) == 0
				completed := o.State == nf.OccurrenceCompleted && v.Instantiated != nil
				if !rolledBack && !completed {
					t.Errorf("%s fails: the occurrence ends %s, the VNF is %+v: %+v", failing, o.State, v.Instantiated, o.Failure)
				}
				if rolledBack != slices.Contains(h.take(), "instantiate_rollback_end") {
					t.Errorf("%s fails, and the VNF is %+v: the script of the rollback is not that of a rollback", failing, v.Instantiated)
				}
				if completed {
					do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
				}
			}
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, request) })
		h.failures["scale_end"] = 1
		scale := nf.ScaleVNFRequest{Aspect: "front", VNFRequest: scriptHosts()}
		o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Scale(ctx, id, scale) })
		must(t, m.Rollback(ctx, o.ID, nf.RequestKey{}))
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceFailedTemp || o.Failure.Kind != nf.Unsupported {
			t.Errorf("what has changed is not rolled back, and the occurrence is %s: %+v", o.State, o.Failure)
		}
		must(t, m.Retry(ctx, o.ID, nf.RequestKey{}))
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceCompleted || len(w.engine.pods[id]) != 2 {
			t.Errorf("the repeated occurrence is %s, with %d pods", o.State, len(w.engine.pods[id]))
		}
	})
}

// TestHooksFailFirst rolls back occurrences whose script has failed before the engine began. The
// operation of an earlier occurrence, which has failed, stays.
func TestHooksFailFirst(t *testing.T) {
	cases := map[string]struct {
		reason  string
		script  string
		request func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error)
	}{
		"Scale": {"the failed instantiation is not undone", "scale_start", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", VNFRequest: scriptHosts()})
		}},
		"Heal": {"nothing has changed, so nothing is applied again", "heal_start", func(ctx context.Context, m *sol003.Manager, id string) (nf.Occurrence, error) {
			return m.Heal(ctx, id, nf.HealVNFRequest{})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, h := w.startScripted(t)
				ctx, id := t.Context(), create(t, m)
				w.engine.fail(map[nf.Verb]int{nf.Instantiate: 1})
				o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) {
					return m.Instantiate(ctx, id, nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: scriptHosts()})
				})
				_, err := m.Fail(ctx, o.ID)
				must(t, err)
				h.failures[tc.script] = 1
				o = do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return tc.request(ctx, m, id) })
				before := len(w.engine.ops)
				must(t, m.Rollback(ctx, o.ID, nf.RequestKey{}))
				if o = ended(t, m, o.ID); o.State != nf.OccurrenceRolledBack {
					t.Errorf("%s: the occurrence is %s: %+v", tc.reason, o.State, o.Failure)
				}
				if len(w.engine.in("edge")) != 1 || len(w.engine.ops) != before || get(t, m, id).Instantiated == nil {
					t.Errorf("%s: the engine has begun %d operations, and has the instances %v", tc.reason, len(w.engine.ops)-before, w.engine.in("edge"))
				}
			})
		})
	}
}
