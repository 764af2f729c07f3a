package networkservice_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/networkservice"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestOrder checks what operations do to the instances of a service, and in which order.
func TestOrder(t *testing.T) {
	fw, sink, gen := member("fw", 1, "fw"), member("sink", 1, "sink"), member("gen", 2, "gen")
	create := func(onFailure nf.OnFailure, members ...nf.ServiceMember) func(*testing.T, *networkservice.Services) (nf.Operation, error) {
		return func(t *testing.T, s *networkservice.Services) (nf.Operation, error) {
			t.Helper()
			req := request(members...)
			req.OnFailure = onFailure
			return s.Create(t.Context(), req)
		}
	}
	change := func(onFailure nf.OnFailure, members ...nf.ServiceMember) func(*testing.T, *networkservice.Services) (nf.Operation, error) {
		return func(t *testing.T, s *networkservice.Services) (nf.Operation, error) {
			t.Helper()
			return s.Change(t.Context(), "vpn", nf.ServiceChangeRequest{Edit: replace(members...), Options: nf.Options{OnFailure: onFailure}})
		}
	}
	cases := map[string]struct {
		reason  string
		before  []func(*testing.T, *networkservice.Services) (nf.Operation, error) // operations before it
		request func(*testing.T, *networkservice.Services) (nf.Operation, error)
		did     []string
		steps   string
		state   nf.ServiceState // empty: the service is deleted
	}{
		"Create": {
			"groups start in ascending order, whatever the order of the members", nil, create("", gen, fw, sink),
			[]string{"instantiate vpn.fw succeeded", "instantiate vpn.sink succeeded", "instantiate vpn.gen succeeded"},
			"apply 1/2 fw, sink; apply 2/2 gen; finish", nf.ServiceReady,
		},
		"CreateFails": {
			"a member that fails undoes the others", nil, create("", fw, sink, member("gen", 2, "bad")),
			[]string{"instantiate vpn.fw succeeded", "instantiate vpn.sink succeeded", "instantiate vpn.gen failed", "terminate vpn.fw succeeded", "terminate vpn.sink succeeded"},
			"apply 1/2 fw, sink; apply 2/2 gen; undo: terminate gen; undo: terminate fw, sink; undo: delete records", "",
		},
		"CreateKept": {
			"a failed creation is kept if the request says so", nil, create(nf.Keep, fw, member("gen", 2, "bad")),
			[]string{"instantiate vpn.fw succeeded", "instantiate vpn.gen failed"},
			"apply 1/2 fw; apply 2/2 gen", nf.ServiceFailed,
		},
		"Together": {
			"the members of one group end before the undo begins", nil, create("", member("a", 1, "bad"), member("b", 1, "fw")),
			[]string{"instantiate vpn.a failed", "instantiate vpn.b succeeded", "terminate vpn.b succeeded"},
			"apply 1/1 a, b; undo: terminate a, b; undo: delete records", "",
		},
		"Change": {
			"a change creates, changes and then removes members, and leaves the others",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create("", fw, sink, gen)},
			change("", member("fw", 1, "fw2"), gen, member("new", 3, "new")),
			[]string{"upgrade vpn.fw succeeded", "instantiate vpn.new succeeded", "terminate vpn.sink succeeded"},
			"terminate failed members; apply 1/3 fw; apply 2/3 gen; apply 3/3 new; terminate sink; finish", nf.ServiceReady,
		},
		"ChangeFails": {
			"a failed change restores the former members",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create("", fw, sink)},
			change("", member("fw", 1, "fw2"), member("new", 2, "bad")),
			[]string{"upgrade vpn.fw succeeded", "instantiate vpn.new failed", "upgrade vpn.fw succeeded"},
			"terminate failed members; apply 1/2 fw; apply 2/2 new; undo: terminate new; undo: apply 1/1 fw, sink; undo: finish", nf.ServiceReady,
		},
		"Retry": {
			"a change of a failed service without an edit creates failed members again",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create(nf.Keep, fw, member("gen", 2, "bad"))},
			change(nf.Keep, fw, member("gen", 2, "bad")),
			[]string{"terminate vpn.gen succeeded", "instantiate vpn.gen failed"},
			"terminate failed members; apply 1/2 fw; apply 2/2 gen", nf.ServiceFailed,
		},
		"Surplus": {
			"a member of a failed request that nothing describes any longer is terminated",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create(nf.Keep, fw, member("gen", 2, "bad"))},
			change(nf.Keep, fw),
			[]string{"terminate vpn.gen succeeded"},
			"terminate failed members; apply 1/1 fw; terminate gen; finish", nf.ServiceReady,
		},
		"UndoChange": {
			"a kept change can be undone",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create("", fw, sink), change(nf.Keep, member("fw", 1, "fw2"), member("new", 2, "bad"))},
			func(t *testing.T, s *networkservice.Services) (nf.Operation, error) {
				t.Helper()
				return s.Undo(t.Context(), "vpn", nf.Options{})
			},
			[]string{"terminate vpn.new succeeded", "upgrade vpn.fw succeeded"},
			"terminate new; apply 1/1 fw, sink; finish", nf.ServiceReady,
		},
		"UndoCreate": {
			"the undo of a kept creation deletes the service",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create(nf.Keep, fw, member("gen", 2, "bad"))},
			func(t *testing.T, s *networkservice.Services) (nf.Operation, error) {
				t.Helper()
				return s.Undo(t.Context(), "vpn", nf.Options{})
			},
			[]string{"terminate vpn.gen succeeded", "terminate vpn.fw succeeded"},
			"terminate gen; terminate fw; delete records", "",
		},
		"Terminate": {
			"a termination runs in reverse order",
			[]func(*testing.T, *networkservice.Services) (nf.Operation, error){create("", fw, sink, gen)},
			func(t *testing.T, s *networkservice.Services) (nf.Operation, error) {
				t.Helper()
				return s.Terminate(t.Context(), "vpn", nf.Options{})
			},
			[]string{"terminate vpn.gen succeeded", "terminate vpn.fw succeeded", "terminate vpn.sink succeeded"},
			"terminate gen; terminate fw, sink; delete records", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				for _, f := range tc.before {
					op, err := f(t, s)
					must(t, err)
					end(t, s, op)
				}
				w.done()
				op, err := tc.request(t, s)
				must(t, err)
				op = end(t, s, op)
				if diff := cmp.Diff(tc.did, w.done()); diff != "" {
					t.Errorf("%s: the instances were changed otherwise (-want +got):\n%s", tc.reason, diff)
				}
				if got := steps(op); got != tc.steps {
					t.Errorf("%s: the steps are\n%s, want\n%s", tc.reason, got, tc.steps)
				}
				there, err := s.Get(t.Context(), "vpn")
				must(t, nf.IgnoreNotFound(err))
				if there.State != tc.state {
					t.Errorf("%s: the service is %q, want %q: %s", tc.reason, there.State, tc.state, there.Failure)
				}
			})
		})
	}
}

// TestCancel cancels a creation whose member does not become ready: the member's own
// operation is cancelled, and the others are undone.
func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), request(member("fw", 1, "fw"), member("gen", 2, "endless")))
		must(t, err)
		for u, err := range s.Operations().Follow(t.Context(), "vpn", op.ID, 0) {
			must(t, err)
			if u.Operation != nil && strings.HasSuffix(steps(*u.Operation), "gen") {
				break
			}
		}
		_, err = s.Operations().Cancel(t.Context(), "vpn", op.ID)
		must(t, err)
		if op = end(t, s, op); op.State != nf.OperationCancelled || op.UndoFailure != nil {
			t.Errorf("the operation is %s: %+v", op.State, op.Failure)
		}
		if got := w.running(); len(got) > 0 {
			t.Errorf("the instances %v remain", got)
		}
	})
}

// TestRetryFinds retries a creation that was cancelled and kept. The instance of a member
// becomes ready before it would be terminated.
func TestRetryFinds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		req := request(member("gen", 1, "endless"))
		req.OnFailure = nf.Keep
		op, err := s.Create(t.Context(), req)
		must(t, err)
		for u, err := range s.Operations().Follow(t.Context(), "vpn", op.ID, 0) {
			must(t, err)
			if u.Operation != nil && strings.HasSuffix(steps(*u.Operation), "gen") {
				break
			}
		}
		synctest.Wait()
		_, err = s.Operations().Cancel(t.Context(), "vpn", op.ID)
		must(t, err)
		end(t, s, op)
		w.done()
		op, err = s.Change(t.Context(), "vpn", nf.ServiceChangeRequest{Edit: replace(member("gen", 1, "endless")), Options: nf.Options{OnFailure: nf.Keep}})
		must(t, err)
		<-time.After(time.Minute) // it waits for the instantiation
		w.mu.Lock()
		in := w.instances["vpn.gen"]
		child := w.children[in.Operation]
		child.State = nf.Succeeded
		w.children[child.ID] = child
		in.Operation, in.State, in.Revision = "", nf.Ready, 1
		w.instances["vpn.gen"] = in
		w.mu.Unlock()
		if op = end(t, s, op); op.State != nf.Succeeded {
			t.Errorf("the retry is %s: %+v", op.State, op.Failure)
		}
		if done := w.done(); len(done) > 0 {
			t.Errorf("the retry did %v", done)
		}
	})
}

// TestRefused checks that a wrong request changes nothing, and that its error names the
// member and the field.
func TestRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		created(t, s, member("fw", 1, "fw"))
		w.done()
		moved := member("fw", 1, "fw")
		moved.Region = "west"
		long := request(member(strings.Repeat("m", 63), 1, "fw"))
		cases := map[string]struct {
			reason string
			call   func() error
			kind   nf.Kind
			text   string
		}{
			"Exists": {"the id is taken", func() error { _, err := s.Create(t.Context(), request(member("a", 1, "fw"))); return err }, nf.Exists, "service_id: already exists"},
			"Empty":  {"a service has members", func() error { _, err := s.Create(t.Context(), request()); return err }, nf.Invalid, "members: are 0"},
			"Long":   {"the id of an instance is a label", func() error { _, err := s.Create(t.Context(), long); return err }, nf.Invalid, "members[0].name"},
			"Twice": {"names are unique", func() error {
				_, err := s.Create(t.Context(), request(member("a", 1, "fw"), member("a", 2, "fw")))
				return err
			}, nf.Invalid, "members[1].name"},
			"Package": {"each member is checked", func() error {
				r := request(member("a", 1, "fw"), member("b", 2, "missing"))
				r.Service.ID = "two"
				_, err := s.Create(t.Context(), r)
				return err
			}, nf.NotFound, `members[1].csar_id: member b: "missing" does not exist`},
			"Absent": {"only a service that exists is changed", func() error { _, err := s.Terminate(t.Context(), "other", nf.Options{}); return err }, nf.NotFound, "other"},
			"Moved": {"an instance stays in its region", func() error {
				_, err := s.Change(t.Context(), "vpn", nf.ServiceChangeRequest{Edit: replace(moved)})
				return err
			}, nf.Invalid, "members[0].cloud_region_id"},
			"Confirm": {"what needs a confirmation is not done", func() error {
				_, err := s.Change(t.Context(), "vpn", nf.ServiceChangeRequest{Edit: replace(member("fw", 1, "deletes"))})
				return err
			}, nf.Conflict, "needs a confirmation"},
			"NoUndo": {"only a failed operation is undone", func() error { _, err := s.Undo(t.Context(), "vpn", nf.Options{}); return err }, nf.Conflict, "has not failed"},
			"Networks": {"a network without a member has no region", func() error {
				r := request(member("a", 1, "fw"))
				r.Service.Content.Networks = []nf.ServiceNetwork{{Name: "oam"}}
				_, err := s.Create(t.Context(), r)
				return err
			}, nf.Invalid, "no member attaches"},
		}
		for name, tc := range cases {
			err := tc.call()
			if nf.KindOf(err) != tc.kind || err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %s: the error is %v (%s), want %s with %q", name, tc.reason, err, nf.KindOf(err), tc.kind, tc.text)
			}
		}
		if got := w.done(); len(got) > 0 {
			t.Errorf("refused requests did %v", got)
		}
	})
}

// TestDescription checks what a member's instance gets in addition to its own spec, and
// that its region may be chosen.
func TestDescription(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		m := member("fw", 0, "fw")
		m.Region, m.Placement = "", &nf.Placement{}
		m.Spec.Labels = map[string]string{"tier": "gold"}
		m.Spec.Networks = []nf.Attachment{{Network: "oam", Workload: "a"}, {Network: "oam", Workload: "b"}, {Network: "own"}}
		req := request(m)
		creation := nf.Creation{Driver: "multus", Spec: []byte(`{"type":"bridge"}`)}
		req.Service.Content.Networks = []nf.ServiceNetwork{{Name: "oam", Creation: creation}}
		op, err := s.Create(t.Context(), req)
		must(t, err)
		end(t, s, op)
		in, err := w.Instance(t.Context(), "vpn.fw")
		must(t, err)
		if in.Region != "west" {
			t.Errorf("the instance is in region %q", in.Region)
		}
		if want := map[string]string{"tier": "gold", nf.ServiceLabel: "vpn"}; !cmp.Equal(want, in.Labels) {
			t.Errorf("the labels are %v", in.Labels)
		}
		want := []nf.Attachment{{Network: "oam", Workload: "a", Create: &creation}, {Network: "oam", Workload: "b"}, {Network: "own"}}
		if diff := cmp.Diff(want, in.Networks); diff != "" {
			t.Errorf("the attachments differ (-want +got):\n%s", diff)
		}
		for id, want := range map[string]string{"vpn.fw": "service/vpn", "vpn.other": "", "fw": "", "other.fw": ""} {
			owner, err := s.Owner(t.Context(), id)
			must(t, err)
			if got := strings.TrimSuffix(owner.String(), "/"); got != want {
				t.Errorf("the owner of %s is %q, want %q", id, got, want)
			}
		}
		previews, err := s.PreviewTerminate(t.Context(), "vpn", nf.Options{})
		must(t, err)
		if !slices.ContainsFunc(previews, func(p nf.MemberPreview) bool { return p.Member.Name == "fw" && p.Verb == nf.Terminate }) {
			t.Errorf("the previews are %+v", previews)
		}
	})
}
