package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// machines asks for a verb on the ConfigMap web, which is a virtual machine here.
func machines(verb nf.Verb) nf.ActRequest {
	return nf.ActRequest{Verb: verb, Workloads: []string{"ConfigMap/web"}}
}

// TestStop has a machine stay stopped, whatever the package says.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web").Subject.ID
		preview, err := e.PreviewAct(t.Context(), id, machines(nf.Stop))
		want := []nf.Change{{Ref: configMap("web"), Action: nf.Configured, UID: "uid", Fields: []nf.Field{{Path: "data.run", New: "stop"}}}}
		if diff := cmp.Diff(want, preview.Changes); err != nil || diff != "" {
			t.Errorf("preview: %v (-want +got):\n%s", err, diff)
		}
		if op := e.act(t, id, machines(nf.Stop)); op.State != nf.Succeeded || op.Verb != nf.Stop || s.cluster.field("web", powered) != "stop" {
			t.Fatalf("%s: %v, it is %s", op.State, op.Failure, s.cluster.field("web", powered))
		}
		e.upgrade(t, id, change("db_web", "xl"))
		s.cluster.lose("web")
		e.act(t, id, nf.ActRequest{Verb: nf.Heal})
		if is := s.cluster.field("web", powered); is != "stop" {
			t.Errorf("after an upgrade and a heal, it is %s", is)
		}
		changes, err := e.PreviewUpgrade(t.Context(), id, change("db_web", "xl"))
		for _, c := range changes.Changes {
			if err != nil || c.Action != nf.Unchanged {
				t.Errorf("its strategy is not drift: %+v, %v", c, err)
			}
		}
		if in := e.only(t.Context()); len(in.Settings) != 1 || in.Settings[0].Machine != nf.Stop || in.State != nf.Ready {
			t.Errorf("instance: %+v", in)
		}
	})
}

// TestMachineFails has the undo of each verb.
func TestMachineFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		verb   nf.Verb
		policy nf.OnFailure
		state  nf.InstanceState
		want   string // the field of the machine
		undone string // the error of a later undo; empty: there is none to make
	}{
		"Stop":        {"a stop is undone by a start", nf.Stop, nf.Undo, nf.Ready, "<nil>", ""},
		"Kept":        {"or kept", nf.Stop, nf.Keep, nf.Broken, "stop", ""},
		"Migrate":     {"a migration has no undo, and changes nothing", nf.Migrate, nf.Undo, nf.Ready, "<nil>", "a migration has no undo"},
		"MigrateKept": {"whatever the request says", nf.Migrate, nf.Keep, nf.Ready, "<nil>", "a migration has no undo"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				s.failFirstSet("web", powered, "no node has room")
				req := machines(tc.verb)
				req.OnFailure = tc.policy
				op := e.act(t, id, req)
				if op.State != nf.OperationFailed || !strings.Contains(op.Failure.Message, "no node has room") || op.UndoFailure != nil {
					t.Fatalf("%s: %s, %+v", tc.reason, op.State, op.Failure)
				}
				in := e.only(t.Context())
				if got := s.cluster.field("web", powered); got != tc.want || in.State != tc.state || in.Operation != "" {
					t.Errorf("%s: it is %s, want %s; instance %+v", tc.reason, got, tc.want, in)
				}
				if tc.undone == "" {
					return
				}
				for verb, again := range map[string]func() (nf.Operation, error){
					"undo": func() (nf.Operation, error) { return e.Undo(t.Context(), op.ID, nf.Options{}) }, "retry": func() (nf.Operation, error) { return e.Retry(t.Context(), op.ID, nf.Options{}) },
				} {
					if _, err := again(); nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), tc.undone) {
						t.Errorf("%s: %s: %v", tc.reason, verb, err)
					}
				}
			})
		})
	}
}

func TestMachinesRefuse(t *testing.T) {
	cases := map[string]struct {
		reason string
		req    nf.ActRequest
		kind   nf.Kind
		want   string
	}{
		"None":   {"no machine", nf.ActRequest{Verb: nf.Stop}, nf.Invalid, "workloads: is missing"},
		"Absent": {"one that the instance does not have", nf.ActRequest{Verb: nf.Migrate, Workloads: []string{"VirtualMachine/fw"}}, nf.NotFound, `workloads[0]: VNF instance ID has no object "VirtualMachine/fw"`},
		"Form":   {"no kind", nf.ActRequest{Verb: nf.Start, Workloads: []string{"fw"}}, nf.Invalid, `workloads[0]: must be "Kind/name"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				_, err := e.Act(t.Context(), id, tc.req)
				if nf.KindOf(err) != tc.kind || !strings.Contains(strings.ReplaceAll(err.Error(), id, "ID"), tc.want) || len(s.cluster.asked("set")) > 0 {
					t.Errorf("%s: %v", tc.reason, err)
				}
			})
		})
	}
}
