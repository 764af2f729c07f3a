package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// scaleTo asks for a number of replicas of ConfigMaps.
func scaleTo(n int64, names ...string) nf.ActRequest {
	req := nf.ActRequest{Verb: nf.Scale}
	for _, name := range names {
		req.Scale = append(req.Scale, nf.Scaling{Workload: "ConfigMap/" + name, Replicas: &n})
	}
	return req
}

// act carries an action out.
func (e *engine) act(t *testing.T, id string, req nf.ActRequest) nf.Operation {
	t.Helper()
	op, err := e.Act(t.Context(), id, req)
	if err != nil {
		t.Fatal(err)
	}
	return e.end(t, op)
}

func (e *engine) upgrade(t *testing.T, id string, req nf.UpgradeRequest) nf.Operation {
	t.Helper()
	op, err := e.Upgrade(t.Context(), id, req)
	if err != nil {
		t.Fatal(err)
	}
	return e.end(t, op)
}

func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web").Subject.ID
		preview, err := e.PreviewAct(t.Context(), id, scaleTo(5, "web"))
		want := []nf.Change{{Ref: configMap("web"), Action: nf.Configured, UID: "uid", Fields: []nf.Field{{Path: "data.replicas", Old: int64(1), New: int64(5)}}}}
		if diff := cmp.Diff(want, preview.Changes); err != nil || diff != "" {
			t.Errorf("preview: %v (-want +got):\n%s", err, diff)
		}
		op := e.act(t, id, scaleTo(5, "web"))
		if op.State != nf.Succeeded || op.Applied.IsZero() || op.Instance.Revision != 0 || s.cluster.field("web", replicas) != "5" || s.cluster.field("db", replicas) != "<nil>" {
			t.Fatalf("%s: %v, replicas %s", op.State, op.Failure, s.cluster.field("web", replicas))
		}
		in := e.only(t.Context())
		if in.State != nf.Ready || in.Revision != 1 || in.Newest != 1 || len(in.Settings) != 1 || string(in.Settings[0].Value) != "5" {
			t.Errorf("instance: %+v", in)
		}
		by := nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "configmap/web", By: -2}}}
		if op = e.act(t, id, by); op.State != nf.Succeeded || s.cluster.field("web", replicas) != "3" {
			t.Errorf("by -2: %v, %s", op.Failure, s.cluster.field("web", replicas))
		}
		plan, err := e.Plan(t.Context(), id)
		if is, _ := nf.At(plan.Stages[1].Objects[0].Object.Object, replicas); err != nil || is != int64(3) {
			t.Errorf("the plan in force has the number %v, %v", is, err)
		}
	})
}

// TestSettingsLast has later changes keep what an action has set.
func TestSettingsLast(t *testing.T) {
	const size = "/data/size"
	sized := nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "ConfigMap/web", Replicas: new(int64(5)), Path: size}}}
	cases := map[string]struct {
		reason string
		change func(*testing.T, *site, *engine, string)
		want   string
		kept   int // settings
	}{
		"Upgrade": {
			"an upgrade to the same value keeps it", func(t *testing.T, _ *site, e *engine, id string) { e.upgrade(t, id, change("db_web-new", "m")) }, "5", 1,
		},
		"OtherValue": {
			"another value in the package takes precedence",
			func(t *testing.T, _ *site, e *engine, id string) {
				if op := e.upgrade(t, id, change("db_web", "xl")); len(op.Warnings) != 1 || op.Warnings[0] != `ConfigMap ns/web: data.size becomes "xl", as the package has changed it from "m"; it was set to 5` {
					t.Errorf("warnings: %q", op.Warnings)
				}
			}, "xl", 0,
		},
		"FailedUpgrade": {
			"the undo of an upgrade that replaced it restores it",
			func(t *testing.T, s *site, e *engine, id string) {
				s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
				e.upgrade(t, id, change("db_web-bad", "xl"))
			}, "5", 1,
		},
		"Rollback": {
			"a rollback to another value keeps it, and so does the next upgrade to that value",
			func(t *testing.T, s *site, e *engine, id string) {
				op, err := e.Rollback(t.Context(), id, nf.RollbackRequest{Revision: 1})
				if err != nil {
					t.Fatal(err)
				}
				if e.end(t, op); s.cluster.field("web", size) != "5" {
					t.Errorf("after the rollback: %s", s.cluster.field("web", size))
				}
				e.upgrade(t, id, change("db_web", "s"))
			}, "5", 1,
		},
		"Pruned": {
			"an object that is pruned has none", func(t *testing.T, _ *site, e *engine, id string) { e.upgrade(t, id, change("db", "m")) }, "absent", 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.Inputs.Parameters = map[string]any{"size": "s"} }).Subject.ID
				e.upgrade(t, id, change("db_web", "m"))
				e.act(t, id, sized)
				tc.change(t, s, e, id)
				in := e.only(t.Context())
				if got := s.cluster.field("web", size); got != tc.want || len(in.Settings) != tc.kept || in.State != nf.Ready {
					t.Errorf("%s: it is %s, want %s; %s, settings %+v", tc.reason, got, tc.want, in.State, in.Settings)
				}
			})
		})
	}
}

// TestScaleLevels upgrades a scaled instance to a package with the same number of pods. If the
// levels of scaling aspects differ, that number contains them.
func TestScaleLevels(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		levels any
		want   string
		kept   int
	}{
		"Same":  {"the number that was set stays", nil, "5", 1},
		"Other": {"the package's number is that of the levels", map[string]any{"front": 1.0}, "3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.Inputs.Parameters = map[string]any{"replicas": int64(3)} }).Subject.ID
				e.act(t, id, scaleTo(5, "web"))
				edit := nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
					s.Inputs.Parameters = map[string]any{"replicas": int64(3), "size": "xl"}
					if tc.levels != nil {
						s.Inputs.Parameters[nf.ScaleParameter] = tc.levels
					}
					return nil
				}}
				op := e.upgrade(t, id, edit)
				in := e.only(t.Context())
				if got := s.cluster.field("web", replicas); got != tc.want || len(in.Settings) != tc.kept || len(op.Warnings) != 1-tc.kept {
					t.Errorf("%s: it has %s, want %s; settings %+v, warnings %q", tc.reason, got, tc.want, in.Settings, op.Warnings)
				}
			})
		})
	}
}

func TestScaleFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy nf.OnFailure
		repair func(*testing.T, *site, *engine, nf.Operation)
		state  nf.InstanceState
		want   string // replicas
		kept   int    // settings
	}{
		"Undo": {"the former number is restored", nf.Undo, nil, nf.Ready, "1", 0},
		"Keep": {"the number stays, and later changes keep it", nf.Keep, nil, nf.Broken, "5", 1},
		"Retried": {"a retry sets the same number", nf.Keep, func(t *testing.T, s *site, e *engine, op nf.Operation) {
			s.cluster.script("web", nf.Current, "")
			again, err := e.Retry(t.Context(), op.ID, nf.Options{})
			if err != nil || e.end(t, again).State != nf.Succeeded || again.Instance.Repeats != op.ID {
				t.Errorf("retry: %v, %+v", err, again)
			}
		}, nf.Ready, "5", 1},
		"RetriedAndUndone": {"a retry that fails restores the former number", nf.Keep, func(t *testing.T, s *site, e *engine, op nf.Operation) {
			undoing := false
			s.cluster.before = func(call string) {
				if call == "set 1 false" && !undoing {
					undoing = true
				} else if call == "set 1 false" {
					s.cluster.script("web", nf.Current, "")
				}
			}
			again, err := e.Retry(t.Context(), op.ID, nf.Options{OnFailure: nf.Undo})
			if err != nil {
				t.Fatal(err)
			}
			if again = e.end(t, again); again.State != nf.OperationFailed || again.UndoFailure != nil {
				t.Errorf("retry: %s, %+v", again.State, again.UndoFailure)
			}
			in := e.only(t.Context())
			if len(in.Settings) != 1 || string(in.Settings[0].Value) != "1" {
				t.Errorf("settings: %+v", in.Settings)
			}
		}, nf.Ready, "1", 1},
		"Undone": {"an undo restores the former number", nf.Keep, func(t *testing.T, s *site, e *engine, op nf.Operation) {
			s.cluster.script("web", nf.Current, "")
			undo, err := e.Undo(t.Context(), op.ID, nf.Options{})
			if err != nil || e.end(t, undo).State != nf.Succeeded || undo.Verb != nf.Scale {
				t.Errorf("undo: %v, %+v", err, undo)
			}
		}, nf.Ready, "1", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				s.failFirstSet("web", replicas, "quota exceeded")
				req := scaleTo(5, "web")
				req.OnFailure = tc.policy
				op := e.act(t, id, req)
				if op.State != nf.OperationFailed || op.Failure.Kind != nf.Failed || !strings.Contains(op.Failure.Message, "quota exceeded") || op.UndoFailure != nil {
					t.Fatalf("operation: %+v", op.Failure)
				}
				if tc.repair != nil {
					tc.repair(t, s, e, op)
				}
				in := e.only(t.Context())
				if got := s.cluster.field("web", replicas); got != tc.want || in.State != tc.state || len(in.Settings) != tc.kept || in.Operation != "" {
					t.Errorf("%s: %s replicas, want %s; instance %+v", tc.reason, got, tc.want, in)
				}
				if tc.state == nf.Broken {
					if _, err := e.Act(t.Context(), id, req); nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), op.ID) {
						t.Errorf("another action meanwhile: %v", err)
					}
				}
			})
		})
	}
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_set.a-set.b").Subject.ID
		op := e.act(t, id, nf.ActRequest{Verb: nf.Restart})
		at := op.Accepted.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
		if op.State != nf.Succeeded || s.cluster.field("a", nf.RestartPath) != at || s.cluster.field("b", nf.RestartPath) != at || s.cluster.field("db", nf.RestartPath) != "<nil>" {
			t.Fatalf("%v: a was restarted at %s, b at %s, want %s", op.Failure, s.cluster.field("a", nf.RestartPath), s.cluster.field("b", nf.RestartPath), at)
		}
		e.upgrade(t, id, change("db_set.a-set.b", "xl"))
		if s.cluster.field("a", nf.RestartPath) != at {
			t.Errorf("an upgrade has changed it to %s", s.cluster.field("a", nf.RestartPath))
		}
		e.act(t, id, nf.ActRequest{Verb: nf.Restart, Workloads: []string{"StatefulSet/b"}})
		if s.cluster.field("a", nf.RestartPath) != at || len(e.only(t.Context()).Settings) != 2 {
			t.Errorf("a was restarted at %s; settings %v", s.cluster.field("a", nf.RestartPath), e.only(t.Context()).Settings)
		}
	})
}

func TestActRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		req    nf.ActRequest
		kind   nf.Kind
		want   string
	}{
		"Absent":   {"an object that the instance does not have", scaleTo(2, "web", "none"), nf.NotFound, `workloads[1]: VNF instance ID has no object "ConfigMap/none"`},
		"Negative": {"a negative number", scaleTo(-1, "web"), nf.Invalid, "workloads[0].replicas: must be between 0 and 2147483647"},
		"Both": {"two numbers", nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "ConfigMap/web", Replicas: new(int64(1)), By: 1}}}, nf.Invalid,
			"workloads[0].replicas: give either replicas or by"},
		"Twice": {"an object twice", scaleTo(2, "web", "web"), nf.Invalid, `workloads[1].workload: "ConfigMap/web" is given twice`},
		"Same": {"an object under two names", nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "ConfigMap/web", By: 1}, {Workload: "configmap/ns/web", By: 1}}}, nf.Invalid,
			`workloads[1]: "configmap/ns/web" is the same object as workloads[0]`},
		"NoName":   {"a kind without a name", nf.ActRequest{Verb: nf.Restart, Workloads: []string{"web"}}, nf.Invalid, `workloads[0]: must be "Kind/name"`},
		"Metadata": {"a field that is not the object's own", nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "ConfigMap/web", By: 1, Path: "/metadata/labels/a"}}}, nf.Invalid, "workloads[0].path: must be a JSON pointer"},
		"Nothing":  {"no workload", nf.ActRequest{Verb: nf.Scale}, nf.Invalid, "workloads: is missing"},
		"Restart":  {"nothing that can be restarted", nf.ActRequest{Verb: nf.Restart}, nf.Unsupported, "it has no Deployment, StatefulSet or DaemonSet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				before := s.records()
				_, err := e.Act(t.Context(), id, tc.req)
				_, previewed := e.PreviewAct(t.Context(), id, tc.req)
				if nf.KindOf(err) != tc.kind || !strings.Contains(strings.ReplaceAll(err.Error(), id, "ID"), tc.want) || previewed.Error() != err.Error() {
					t.Errorf("%s: %v; preview %v", tc.reason, err, previewed)
				}
				if diff := cmp.Diff(before, s.records()); diff != "" || len(s.cluster.asked("set")) > 0 {
					t.Errorf("%s: it left records, or changed something:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
