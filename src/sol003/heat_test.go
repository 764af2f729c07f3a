package sol003_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// clouds simulates an OpenStack cloud with one stack for each name. A change takes ten
// seconds. It is strict: a second change during another one is a defect of the caller.
type clouds struct {
	mu      sync.Mutex
	stacks  map[string]*stack
	failing error // of the next change
	without bool  // packages have no templates
	changes []string
}

type stack struct {
	attempt string
	servers []string
	ends    time.Time
	gone    bool // it is being deleted
	failure error
	serial  int
}

func newClouds() *clouds { return &clouds{stacks: map[string]*stack{}} }

// Stack implements sol003.Clouds.
func (c *clouds) Stack(_ context.Context, pkg, _ string, s nf.Stack) (nf.Stack, error) {
	if c.without {
		return s, nf.E(nf.Unsupported, "use", "package "+pkg, errors.New("it has no templates"))
	}
	s.Template = []byte("template of " + pkg)
	return s, nil
}

// now returns a stack; nil if there is none. The caller holds the lock.
func (c *clouds) now(name string) *stack {
	s := c.stacks[name]
	if s != nil && s.gone && !time.Now().Before(s.ends) {
		delete(c.stacks, name)
		return nil
	}
	return s
}

// Apply implements sol003.Clouds.
func (c *clouds) Apply(ctx context.Context, region string, st nf.Stack) error {
	_, _ = c.Await(ctx, region, st.Name, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.now(st.Name)
	if s == nil {
		s = &stack{}
		c.stacks[st.Name] = s
	}
	if s.attempt == st.Attempt {
		return nil
	}
	c.changes = append(c.changes, fmt.Sprintf("apply %d %v", st.Params.VDUs["VDU1"].Count, st.Params.Points["CP1"].Network))
	s.servers = slices.DeleteFunc(s.servers, func(id string) bool { return slices.Contains(st.Replace, id) })
	for len(s.servers) < st.Params.VDUs["VDU1"].Count {
		s.serial++
		s.servers = append(s.servers, fmt.Sprintf("server-%d", s.serial))
	}
	s.servers = s.servers[:st.Params.VDUs["VDU1"].Count]
	s.attempt, s.ends, s.failure, c.failing = st.Attempt, time.Now().Add(10*time.Second), c.failing, nil
	return nil
}

// Delete implements sol003.Clouds.
func (c *clouds) Delete(_ context.Context, _, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.now(name); s != nil && !s.gone {
		c.changes = append(c.changes, "delete")
		s.gone, s.ends = true, time.Now().Add(10*time.Second)
	}
	return nil
}

// Await implements sol003.Clouds.
func (c *clouds) Await(ctx context.Context, _, name string, stop bool) (attempt string, err error) {
	for {
		c.mu.Lock()
		s := c.now(name)
		if s != nil && stop && !s.gone && time.Now().Before(s.ends) {
			s.ends, s.failure = time.Now(), nf.E(nf.Failed, "change", "stack "+name, errors.New("it was cancelled"))
		}
		var one stack
		if s != nil {
			one = *s
		}
		c.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case s == nil:
			return "", nf.E(nf.NotFound, "find", "stack "+name, nil)
		case !time.Now().Before(one.ends):
			return one.attempt, one.failure
		}
		delay.For(ctx, time.Second, nil)
	}
}

// Components implements sol003.Clouds.
func (c *clouds) Components(_ context.Context, _, name string) (out []nf.VNFC, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.now(name)
	if s == nil {
		return nil, nf.E(nf.NotFound, "find", "stack "+name, nil)
	}
	for _, id := range s.servers {
		out = append(out, nf.VNFC{VDU: "VDU1", Resource: id, Workload: "OS::Nova::Server"})
	}
	return append(out, nf.VNFC{VDU: "jump-host", Resource: "other"}), nil
}

// onCloud instantiates a VNF on the OpenStack cloud.
func onCloud(edit ...func(*nf.InstantiateVNFRequest)) nf.InstantiateVNFRequest {
	req := nf.InstantiateVNFRequest{
		Flavor: "simple", VIMs: map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "stack"}.VIMID()}},
		Networks: []nf.Attachment{{Network: "net-1", Workload: "web", Point: "CP1"}},
	}
	for _, f := range edit {
		f(&req)
	}
	return req
}

// idsOf returns the ids of the components of a VNF.
func idsOf(v nf.VNF) (out []string) {
	for _, c := range v.Instantiated.VNFCs {
		out = append(out, c.ID())
	}
	return out
}

func TestHeatLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, c := newWorld(t), newClouds()
		m, _ := w.start(t, func(cfg *config) { cfg.Clouds = c })
		id, ctx := create(t, m), t.Context()
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, onCloud()) })
		v := get(t, m, id)
		if got := v.VIMs["vim1"].Type; got != "ETSINFV.OPENSTACK_KEYSTONE.V_3" || v.Instantiated.Stack != "vnf-"+id {
			t.Errorf("the VIM has the type %s, and the stack is %q", got, v.Instantiated.Stack)
		}
		if diff := cmp.Diff([]string{"VDU1-server-1"}, idsOf(v)); diff != "" {
			t.Errorf("the components (-want +got):\n%s", diff)
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", Steps: 2})
		})
		o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Heal(ctx, id, nf.HealVNFRequest{VNFCs: []string{"VDU1-server-2"}})
		})
		if diff := cmp.Diff([]string{"VDU1-server-1", "VDU1-server-3", "VDU1-server-4"}, idsOf(get(t, m, id))); diff != "" || len(o.VNFCs) != 2 {
			t.Errorf("the healed components, of which %v have changed (-want +got):\n%s", o.VNFCs, diff)
		}
		_, err := m.Heal(ctx, id, nf.HealVNFRequest{VNFCs: []string{"VDU1-server-2"}})
		wantKind(t, "a component that is gone", err, nf.Invalid)
		_, err = m.Connect(ctx, id, nf.ConnectVNFRequest{})
		wantKind(t, "other networks", err, nf.Unsupported)
		_, err = m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFD: "vnfd-2"})
		wantKind(t, "another package", err, nf.Unsupported)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", In: true, Steps: 1})
		})
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		want := []string{"apply 1 net-1", "apply 3 net-1", "apply 3 net-1", "apply 2 net-1", "delete"}
		if diff := cmp.Diff(want, c.changes); diff != "" || len(c.stacks) > 0 {
			t.Errorf("the changes, which leave %d stacks (-want +got):\n%s", len(c.stacks), diff)
		}
		must(t, m.Delete(ctx, id))
		for key := range w.records(t) {
			if strings.Contains(key, id) && !strings.HasPrefix(key, "operation") && !strings.HasPrefix(key, "notices/") {
				t.Errorf("the record %s remains", key)
			}
		}
	})
}

// TestHeatHoldsItsCloud keeps a stack until stale records were searched several times. Its
// cloud cannot be removed before the VNF is terminated.
func TestHeatHoldsItsCloud(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, c := newWorld(t), newClouds()
		m, _ := w.start(t, func(cfg *config) { cfg.Clouds = c })
		id, ctx := create(t, m), t.Context()
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, onCloud()) })
		<-time.After(time.Hour)
		if _, err := w.packages(w.kv).Remove(ctx, "stack"); nf.ReasonOf(err) != nf.ReasonHeld {
			t.Errorf("the cloud of a stack can be removed: %v", err)
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		_, err := w.packages(w.kv).Remove(ctx, "stack")
		must(t, err)
	})
}

func TestHeatFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, c := newWorld(t), newClouds()
		m, _ := w.start(t, func(cfg *config) { cfg.Clouds = c })
		id, ctx := create(t, m), t.Context()
		begin := func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, onCloud()) }
		again := func(id string, do func(context.Context, string, nf.RequestKey) error) func() (nf.Occurrence, error) {
			return func() (nf.Occurrence, error) {
				if err := do(ctx, id, nf.RequestKey{}); err != nil {
					return nf.Occurrence{}, err
				}
				return m.Occurrence(ctx, id)
			}
		}
		c.without = true
		o := do(t, m, nf.OccurrenceRolledBack, begin)
		if c.without = false; len(c.changes) > 0 || o.Failure == nil {
			t.Errorf("without templates, nothing is changed: %v, %+v", c.changes, o.Failure)
		}
		fails := nf.E(nf.Failed, "change", "stack", errors.New("no valid host was found"))
		c.failing = fails
		o = do(t, m, nf.OccurrenceFailedTemp, begin)
		if o.Failure == nil || !strings.Contains(o.Failure.Message, "no valid host") || !o.CanUndo {
			t.Errorf("the failure is %+v", o.Failure)
		}
		c.failing = fails
		do(t, m, nf.OccurrenceFailedTemp, again(o.ID, m.Retry))
		do(t, m, nf.OccurrenceRolledBack, again(o.ID, m.Rollback))
		if len(c.stacks) > 0 || get(t, m, id).Instantiated != nil {
			t.Errorf("the rollback leaves %v", c.stacks)
		}
		c.failing = fails
		o = do(t, m, nf.OccurrenceFailedTemp, begin)
		do(t, m, nf.OccurrenceCompleted, again(o.ID, m.Retry))

		c.failing = fails
		o = do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) {
			return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", Steps: 1})
		})
		do(t, m, nf.OccurrenceRolledBack, again(o.ID, m.Rollback))
		if v := get(t, m, id); len(v.Instantiated.VNFCs) != 1 || v.Instantiated.Scale["front"] != 0 {
			t.Errorf("the rollback leaves %+v", v.Instantiated)
		}
		c.failing = fails
		o = do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Heal(ctx, id, nf.HealVNFRequest{}) })
		wantKind(t, "a heal has no inverse", m.Rollback(ctx, o.ID, nf.RequestKey{}), nf.Unsupported)
		_, err := m.Fail(ctx, o.ID)
		must(t, err)

		o, err = m.Heal(ctx, id, nf.HealVNFRequest{})
		must(t, err)
		<-time.After(5 * time.Second)
		must(t, m.Cancel(ctx, o.ID, true))
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceFailedTemp {
			t.Errorf("the cancelled heal is %s", o.State)
		}
		_, err = m.Fail(ctx, o.ID)
		must(t, err)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		o, err = m.Instantiate(ctx, id, onCloud())
		must(t, err)
		<-time.After(5 * time.Second)
		must(t, m.Cancel(ctx, o.ID, true))
		o = ended(t, m, o.ID)
		_, err = m.Fail(ctx, o.ID)
		must(t, err)
		if get(t, m, id).Instantiated == nil {
			t.Error("what a failed instantiation has made cannot be terminated")
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		if len(c.stacks) > 0 {
			t.Errorf("%v remain", c.stacks)
		}
	})
}

func TestHeatRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t, func(cfg *config) { cfg.Clouds = newClouds() })
		id := create(t, m)
		for name, tc := range map[string]struct {
			reason string
			edit   func(*nf.InstantiateVNFRequest)
			kind   nf.Kind
		}{
			"Script": {"user data scripts are not run", func(r *nf.InstantiateVNFRequest) {
				r.Extra = map[string]any{"lcm-operation-user-data-class": "Own"}
			}, nf.Unsupported},
			"Class": {"the class is a text", func(r *nf.InstantiateVNFRequest) { r.Extra = map[string]any{"lcm-operation-user-data-class": 1} }, nf.Invalid},
			"MAC":   {"a port has no address that the request gives", func(r *nf.InstantiateVNFRequest) { r.Networks[0].MAC = "02:00:00:00:00:01" }, nf.Unsupported},
			"Twice": {"a port is on one network", func(r *nf.InstantiateVNFRequest) {
				r.Networks = append(r.Networks, nf.Attachment{Network: "net-2", Point: "CP1"})
			}, nf.Invalid},
		} {
			_, err := m.Instantiate(t.Context(), id, onCloud(tc.edit))
			wantKind(t, name+": "+tc.reason, err, tc.kind)
		}
		w.answer = nf.Grant{VIMs: map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "edge"}.VIMID()}}}
		granted, _ := newWorld(t).start(t, func(cfg *config) { cfg.Clouds, cfg.Granter = newClouds(), sol003.Granter(w) })
		other := create(t, granted)
		do(t, granted, nf.OccurrenceRolledBack, func() (nf.Occurrence, error) { return granted.Instantiate(t.Context(), other, onCloud()) })
	})
}

// withJob has a flavor with scripts of all types.
type withJob struct{ scripted }

// Topology implements sol003.Descriptors.
func (w withJob) Topology(ctx context.Context, pkg string) (tosca.Topology, error) {
	t, err := w.scripted.Topology(ctx, pkg)
	t.Flavors["simple"].Scripts["terminate_start"] = tosca.Script{Type: "tosca.artifacts.Implementation.Bash", File: "Scripts/bye.sh"}
	return t, err
}

// TestHeatRunsNoJobs instantiates a VNF with scripts of all types on an OpenStack cloud. A Bash
// script of an operation without Jobs is ignored in all regions.
func TestHeatRunsNoJobs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		h := &hooks{failures: map[string]int{}}
		m, _ := w.start(t, func(cfg *config) { cfg.Clouds, cfg.Hooks, cfg.Descriptors = newClouds(), h, withJob{scripted{w}} })
		id := create(t, m)
		request := func(image map[string]any) nf.InstantiateVNFRequest {
			return onCloud(func(r *nf.InstantiateVNFRequest) {
				r.VNFRequest = scriptHosts()
				maps.Copy(r.Extra, image)
			})
		}
		for name, image := range map[string]map[string]any{"no image": nil, "an image": {nf.ScriptImageParameter: "example.org/bash"}} {
			_, err := m.Instantiate(t.Context(), id, request(image))
			wantKind(t, "a script would be dropped, with "+name, err, nf.Unsupported)
			if !strings.Contains(fmt.Sprint(err), "Scripts/bye.sh of operation terminate_start") {
				t.Errorf("with %s, the error does not name the script: %v", name, err)
			}
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Instantiate(t.Context(), id, request(map[string]any{nf.ScriptImageParameter: ""}))
		})
		other, _ := newWorld(t).start(t, func(cfg *config) { cfg.Clouds, cfg.Hooks, cfg.Descriptors = newClouds(), &hooks{}, scripted{w} })
		without := create(t, other)
		do(t, other, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return other.Instantiate(t.Context(), without, request(nil)) })
		if diff := cmp.Diff([]string{"instantiate_start", "instantiate_end"}, h.take()); diff != "" {
			t.Errorf("the scripts that are not Jobs run (-want +got):\n%s", diff)
		}
	})
}
