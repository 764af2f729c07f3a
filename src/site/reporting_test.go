package site_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// TestUntouched: a site whose hosts were never changed goes without them.
func TestUntouched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.reach = func(nf.SiteHost) (string, error) { return "", &nf.Error{Kind: nf.Unreachable, Reason: "unauthorized"} }
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), request())
		must(t, err)
		if op, _ = end(t, s, op); op.State != nf.OperationFailed {
			t.Fatalf("hosts that let nobody in cannot be built: %s", op.State)
		}
		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		must(t, err)
		op, events := end(t, s, op)
		if op.State != nf.Succeeded || len(w.started()) != 0 || !slices.ContainsFunc(events, func(e nf.LogEntry) bool { return strings.Contains(e.Message, "nothing was ever run") }) {
			t.Errorf("it goes, and says why nothing is reset: %+v after %d jobs, %+v", op.Failure, len(w.started()), events)
		}
	})
}

// TestTold: each operation is counted once.
func TestTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		begun := make(chan struct{})
		first := true
		w.play = func(ctx context.Context, _ site.Job, _ teller) error {
			if !first {
				return nil
			}
			first = false
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}
		var told []string
		hear := func(c *config) { c.Work.Meter = &meter{&told} }
		s, stop := w.start(t, hear)
		_, err := s.Create(t.Context(), request())
		must(t, err)
		<-begun
		if all := w.ledger.Running(); len(all) != 1 || all[0].State != nf.Running || all[0].Region != "edge" {
			t.Errorf("what runs is %+v", all)
		}
		stop()
		s, _ = w.start(t, hear)
		ops, err := operationsOf(t, s, "edge")
		must(t, err)
		end(t, s, ops[0])
		synctest.Wait()
		if diff := cmp.Diff([]string{"resumed build running", "finished build succeeded"}, told); diff != "" {
			t.Errorf("what was told (-want +got):\n%s", diff)
		}
		if all := w.ledger.Running(); len(all) != 0 {
			t.Errorf("what has ended runs on: %+v", all)
		}
	})
}

// meter keeps which operations were resumed and which have ended.
type meter struct{ told *[]string }

// Finished implements operation.Meter.
func (m *meter) Finished(op nf.Operation) { m.tell("finished", op) }

// Resumed implements operation.Meter.
func (m *meter) Resumed(op nf.Operation) { m.tell("resumed", op) }

func (m *meter) tell(what string, op nf.Operation) {
	*m.told = append(*m.told, what+" "+string(op.Verb)+" "+string(op.State))
}

// traced keeps the reports of an operation.
type traced struct{ told []string }

type spanKey struct{}

// Operation implements operation.Trace.
func (l *traced) Operation(ctx context.Context, op nf.Operation) (context.Context, func(nf.Operation, error)) {
	name := fmt.Sprintf("%s#%d in %s", op.Verb, op.Attempts, op.Trace)
	l.told = append(l.told, name)
	return context.WithValue(ctx, spanKey{}, name), func(op nf.Operation, _ error) {
		l.told = append(l.told, fmt.Sprintf("%s#%d is %s", op.Verb, op.Attempts, op.State))
	}
}

// Step implements operation.Trace.
func (l *traced) Step(ctx context.Context, step nf.Step) (context.Context, func(error)) {
	name := step.Title()
	return context.WithValue(ctx, spanKey{}, name), func(err error) {
		what := "is done"
		if err != nil {
			what = "is " + nf.KindOf(err).String()
		}
		l.told = append(l.told, "  "+name+" "+what)
	}
}

// TestTraced: an operation belongs to the trace of its request, also when
// another process ends it, and what it does belongs to its steps.
func TestTraced(t *testing.T) {
	const first, registered = "build#1 in t1", "  register region is done"
	checked := "  check hosts is done"
	cases := map[string]struct {
		reason string
		play   func(ctx context.Context, attempt int, s *site.Sites, op nf.Operation, stop func()) error
		want   []string
		stops  bool // the process, in its first attempt
	}{
		"Succeeded": {
			"each step is told with its end", func(context.Context, int, *site.Sites, nf.Operation, func()) error { return nil },
			[]string{first, checked, "  build cluster is done", registered, "build#1 is succeeded"},
			false,
		},
		"Failed": {
			"so is one that failed",
			func(context.Context, int, *site.Sites, nf.Operation, func()) error {
				return nf.E(nf.Failed, "build", "site edge", errors.New("no"))
			},
			[]string{first, checked, "  build cluster is failed", "build#1 is failed"},
			false,
		},
		"Cancelled": {
			"what somebody wished has not failed",
			func(ctx context.Context, _ int, s *site.Sites, op nf.Operation, _ func()) error {
				_, err := s.Operations().Cancel(ctx, op.Subject.ID, op.ID)
				<-ctx.Done()
				return errors.Join(err, ctx.Err())
			},
			[]string{first, checked, "  build cluster is cancelled", "build#1 is cancelled"},
			false,
		},
		"Late": {
			"what takes too long has",
			func(ctx context.Context, _ int, _ *site.Sites, _ nf.Operation, _ func()) error {
				<-ctx.Done()
				return ctx.Err()
			},
			[]string{first, checked, "  build cluster is timeout", "build#1 is failed"},
			false,
		},
		"Interrupted": {
			"a later process goes on with the trace",
			func(ctx context.Context, attempt int, _ *site.Sites, _ nf.Operation, stop func()) error {
				if attempt > 1 {
					return nil
				}
				go stop()
				<-ctx.Done()
				return ctx.Err()
			},
			[]string{
				first, checked, "  build cluster is cancelled", "build#1 is running",
				"build#2 in t1", checked, "  build cluster is done", registered, "build#2 is succeeded",
			},
			true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, l := newWorld(), &traced{}
				hear := func(c *config) { c.Work.Trace = l }
				s, stop := w.start(t, hear)
				accepted, attempts := make(chan nf.Operation, 2), 0
				w.play = func(ctx context.Context, _ site.Job, _ teller) error {
					attempts++
					if in := ctx.Value(spanKey{}); in != "build cluster" {
						t.Errorf("the playbook runs in %v, want it in its step", in)
					}
					op := <-accepted
					accepted <- op
					return tc.play(ctx, attempts, s, op, stop)
				}
				op, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Trace = "t1" }))
				must(t, err)
				accepted <- op
				if tc.stops {
					synctest.Wait()
					s, _ = w.start(t, hear)
				}
				end(t, s, op)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, l.told); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestLogged: an operation's beginning and end are a line of the log each, which
// contains no secret.
func TestLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.play = func(context.Context, site.Job, teller) error {
			return nf.E(nf.Failed, "build", "site edge", errors.New("sudo does not take hunter22"))
		}
		var log bytes.Buffer
		s, stop := w.start(t, func(c *config) { c.Work.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		op, err := s.Create(t.Context(), request())
		must(t, err)
		end(t, s, op)
		stop()
		said := log.String()
		wantNoSecret(t, "the log", said)
		for _, want := range []string{
			`msg="operation accepted" operation=` + op.ID + ` verb=site_build site=edge region=edge`,
			`level=WARN msg="operation failed" operation=` + op.ID + ` verb=site_build site=edge step="build cluster" kind=failed error="cannot build site edge: sudo does not take ********"`,
			`msg="operation ended" operation=` + op.ID + ` verb=site_build site=edge state=failed seconds=`,
		} {
			if strings.Count(said, want) != 1 {
				t.Errorf("the log does not say %q once:\n%s", want, said)
			}
		}
	})
}

// TestQuotedSecret lets a program repeat a password in the quotes of JSON.
func TestQuotedSecret(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.play = func(context.Context, site.Job, teller) error {
			return nf.E(nf.Failed, "build", "site edge", errors.New(`{"msg": "sudo does not take hunter\"22\\"}`))
		}
		s, _ := w.start(t)
		req := request()
		req.Secrets.Password = nf.Secret(`hunter"22\`)
		op, err := s.Create(t.Context(), req)
		must(t, err)
		op, _ = end(t, s, op)
		if want := `{"msg": "sudo does not take ` + nf.Masked + `"}`; op.Failure == nil || !strings.Contains(op.Failure.Message, want) {
			t.Errorf("the failure is %+v, want it to contain %s", op.Failure, want)
		}
	})
}
