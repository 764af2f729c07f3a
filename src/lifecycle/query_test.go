package lifecycle_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
)

func TestWait(t *testing.T) {
	left := errors.New("the caller has left")
	cases := map[string]struct {
		reason string
		status health
		act    func(e *engine, leave context.CancelCauseFunc) // while Wait waits
		state  nf.OperationState
		err    error  // nil: any whose text has says
		says   string // empty: no error
	}{
		"Success":  {"the final state is returned", health{status: nf.Current}, nil, nf.Succeeded, nil, ""},
		"Failure":  {"a failed operation is a result, not an error", health{status: nf.StatusFailed}, nil, nf.OperationFailed, nil, ""},
		"Left":     {"the caller's cause is the error", health{status: nf.InProgress}, func(_ *engine, leave context.CancelCauseFunc) { leave(left) }, nf.Running, left, "left"},
		"Shutdown": {"another process runs the operation to its end", health{status: nf.InProgress}, func(e *engine, _ context.CancelCauseFunc) { e.stop() }, nf.Running, nil, "shutting down"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.status["db"] = tc.status
				e := s.start()
				op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "db"}, Options: nf.Options{OnFailure: nf.Keep}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, leave := context.WithCancelCause(t.Context())
				defer leave(nil)
				type result struct {
					op  nf.Operation
					err error
				}
				waited := make(chan result, 1)
				go func() {
					op, err := e.Wait(ctx, op.ID)
					waited <- result{op, err}
				}()
				if tc.act != nil {
					synctest.Wait()
					tc.act(e, leave)
				}
				got := <-waited
				if got.op.State != tc.state || (got.err == nil) != (tc.says == "") || got.err != nil && !strings.Contains(got.err.Error(), tc.says) || tc.err != nil && !errors.Is(got.err, tc.err) {
					t.Errorf("%s: got %s, %v, want %s, %q", tc.reason, got.op.State, got.err, tc.state, tc.says)
				}
			})
		})
	}
}

// TestOtherKinds checks that the engine has only the operations of instances.
func TestOtherKinds(t *testing.T) {
	s := newSite(t)
	e := s.start()
	op := nf.Operation{ID: "op-site", Subject: nf.Subject{Kind: nf.SiteSubject, ID: "edge"}, Verb: nf.SiteBuild, State: nf.OperationFailed, Failure: &nf.Failure{Kind: nf.Failed}}
	if err := store.NewTable[nf.Operation](s.kv, "operations/", "operation").Insert(t.Context(), op.ID, op); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func() error{
		"Operation": func() error { _, err := e.Operation(t.Context(), op.ID); return err },
		"Changes":   func() error { _, err := e.Changes(t.Context(), op.ID); return err },
		"Cancel":    func() error { _, err := e.Cancel(t.Context(), op.ID); return err },
		"Retry":     func() error { _, err := e.Retry(t.Context(), op.ID, nf.Options{}); return err },
		"Undo":      func() error { _, err := e.Undo(t.Context(), op.ID, nf.Options{}); return err },
		"Wait":      func() error { _, err := e.Wait(t.Context(), op.ID); return err },
	} {
		if err := ask(); nf.KindOf(err) != nf.NotFound {
			t.Errorf("%s: the operation of a site: %v, want that it does not exist", name, err)
		}
	}
	if all, err := e.Operations(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("the list has %v, %v", all, err)
	}
}

// TestListsInScopes checks which instances and operations a reader of one project gets,
// also after an instance is deleted, without an index and with one.
func TestListsInScopes(t *testing.T) {
	t.Run("Store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { testListsInScopes(t, newSite(t).start()) })
	})
	t.Run("Index", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			kv, err := index.New(index.Config{KV: s.kv, Tables: []index.Table{index.Of[nf.Instance]("instances/"), index.Of[nf.Operation]("operations/")}})
			if err != nil {
				t.Fatal(err)
			}
			go kv.Run(t.Context()) //nolint:errcheck // it ends with the bubble
			synctest.Wait()
			if got := kv.Status()["instances"]; !got.Filled {
				t.Fatalf("the index is %+v", got)
			}
			testListsInScopes(t, s.start(func(c *config) { c.KV = kv }))
		})
	})
}

func testListsInScopes(t *testing.T, e *engine) {
	t.Helper()
	of := func(project, region string) func(*nf.InstantiateRequest) {
		return func(r *nf.InstantiateRequest) {
			r.Project, r.Region, r.Namespace = project, region, "ns-"+project+region
		}
	}
	blue, west, red := e.up(t, "a", of("blue", "east")), e.up(t, "a", of("blue", "west")), e.up(t, "a", of("red", "east"))
	usual := e.up(t, "a", of("", "east"))
	op, err := e.Terminate(t.Context(), blue.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	ended := e.end(t, op)
	for name, tc := range map[string]struct {
		reason                string
		in                    func(nf.Scope) bool
		instances, operations []string
	}{
		"Project": {"the operations of a deleted instance are kept", func(s nf.Scope) bool { return s.Project == "blue" },
			[]string{west.Subject.ID}, []string{blue.ID, west.ID, ended.ID}},
		"Region":  {"a scope is a project in a region", func(s nf.Scope) bool { return s == nf.Scope{Project: "red", Region: "east"} }, []string{red.Subject.ID}, []string{red.ID}},
		"Default": {"an instance without a project is in the default one", func(s nf.Scope) bool { return s.Project == nf.DefaultProject }, []string{usual.Subject.ID}, []string{usual.ID}},
		"None":    {"nothing is visible", func(nf.Scope) bool { return false }, nil, nil},
		"All":     {"all scopes", nil, []string{west.Subject.ID, red.Subject.ID, usual.Subject.ID}, []string{blue.ID, west.ID, red.ID, usual.ID, ended.ID}},
		"Every":   {"the index has all of them", func(nf.Scope) bool { return true }, []string{west.Subject.ID, red.Subject.ID, usual.Subject.ID}, []string{blue.ID, west.ID, red.ID, usual.ID, ended.ID}},
	} {
		slices.Sort(tc.instances)
		pages := map[string]int{"in one page": 100, "in pages of one": 1}
		for how, size := range pages {
			instances := paged(t, size, instanceID, func(from nf.Cursor) iter.Seq2[nf.Instance, error] {
				from.In = tc.in
				return e.InstancesIn(t.Context(), "", from)
			})
			operations := paged(t, size, operationID, func(from nf.Cursor) iter.Seq2[nf.Operation, error] {
				from.In = tc.in
				return e.OperationsIn(t.Context(), from)
			})
			if diff := cmp.Diff([][]string{tc.instances, tc.operations}, [][]string{instances, operations}); diff != "" {
				t.Errorf("%s, %s: %s (-want +got):\n%s", name, how, tc.reason, diff)
			}
		}
	}
	want := []string{red.Subject.ID, usual.Subject.ID}
	slices.Sort(want)
	for name, in := range map[string]func(nf.Scope) bool{"all": nil, "every": func(nf.Scope) bool { return true }} {
		got := paged(t, 1, instanceID, func(from nf.Cursor) iter.Seq2[nf.Instance, error] {
			from.In = in
			return e.InstancesIn(t.Context(), "east", from)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the instances of a region in %s scopes (-want +got):\n%s", name, diff)
		}
	}
	got := paged(t, 1, operationID, func(from nf.Cursor) iter.Seq2[nf.Operation, error] {
		return e.OperationsFrom(t.Context(), blue.Subject.ID, from)
	})
	if diff := cmp.Diff([]string{blue.ID, ended.ID}, got); diff != "" {
		t.Errorf("the operations of an instance (-want +got):\n%s", diff)
	}
}

func instanceID(in nf.Instance) string   { return in.ID }
func operationID(op nf.Operation) string { return op.ID }

// paged returns the ids of a list that is read in pages of a size.
func paged[T any](t *testing.T, size int, id func(T) string, from func(nf.Cursor) iter.Seq2[T, error]) (ids []string) {
	t.Helper()
	for c := (nf.Cursor{Expect: size}); ; {
		read := 0
		for item, err := range from(c) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id(item))
			if c.After, read = id(item), read+1; read == size {
				break
			}
		}
		if read < size {
			return ids
		}
	}
}
