package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// fakeDirectory is a directory that has an instance until its record says that it is to
// have nothing; it then needs some time.
type fakeDirectory struct {
	needs   time.Duration
	writer  func(instance string) nf.AAIWriter
	journal []string
}

func (d *fakeDirectory) Gone(ctx context.Context, instance string) bool {
	d.journal = append(d.journal, string("gone? the writer is "+d.writer(instance)))
	timer := time.NewTimer(max(d.needs, time.Nanosecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// TestDirectory terminates an instance that a directory has.
func TestDirectory(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		needs  time.Duration
		warns  bool
	}{
		"soon": {"the operation ends when the directory has nothing", time.Second, false},
		"away": {"a directory that does not respond does not fail an operation", time.Hour, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				d := &fakeDirectory{needs: tc.needs}
				e := s.start(func(c *config) { c.Directory = d })
				defer e.stop()
				d.writer = func(id string) nf.AAIWriter {
					in, err := e.Instance(t.Context(), id)
					if err != nil {
						t.Error(err)
					}
					return in.AAIInForce().Writer
				}
				up := e.up(t, "web")
				began := time.Now()
				op, err := e.Terminate(t.Context(), up.Subject.ID, nf.TerminateRequest{})
				if err != nil {
					t.Fatal(err)
				}
				op = e.end(t, op)
				if warned := len(op.Warnings) > 0 && strings.Contains(op.Warnings[0], "A&AI"); op.State != nf.Succeeded || warned != tc.warns {
					t.Errorf("%s: %s, warnings %q", tc.reason, op.State, op.Warnings)
				}
				if took := time.Since(began); took < min(tc.needs, 30*time.Second) || took > 40*time.Second {
					t.Errorf("%s: it took %v", tc.reason, took)
				}
				if diff := cmp.Diff([]string{"gone? the writer is none"}, d.journal); diff != "" {
					t.Errorf("the record must say it first (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDirectoryAfterFailedTermination rolls an instance back whose termination has failed
// after the directory was told to remove it: the directory has it again.
func TestDirectoryAfterFailedTermination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDirectory{needs: time.Hour, writer: func(string) nf.AAIWriter { return "" }}
		e := newSite(t).start(func(c *config) { c.Directory = d })
		defer e.stop()
		id := e.up(t, "web").Subject.ID
		op, err := e.Terminate(t.Context(), id, nf.TerminateRequest{Options: nf.Options{Timeout: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		op = e.end(t, op)
		if in := e.only(t.Context()); op.State != nf.OperationFailed || in.AAIInForce().Writer != nf.AAINone {
			t.Errorf("the termination is %s, and the writer %q", op.State, in.AAIInForce().Writer)
		}
		back, err := e.Rollback(t.Context(), id, nf.RollbackRequest{Revision: 1})
		if err != nil {
			t.Fatal(err)
		}
		back = e.end(t, back)
		if in := e.only(t.Context()); back.State != nf.Succeeded || in.State != nf.Ready || in.AAIInForce().Writer != "" {
			t.Errorf("the rollback is %s, the instance %s, and the writer %q", back.State, in.State, in.AAIInForce().Writer)
		}
	})
}

// emptyDirectory has nothing of any instance.
type emptyDirectory struct{}

func (emptyDirectory) Gone(context.Context, string) bool { return true }

var _ lifecycle.Directory = (*fakeDirectory)(nil)

// TestHandOver hands an instance over while an operation changes it.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newSite(t).start()
		defer e.stop()
		up := e.up(t, "web")
		op, err := e.Upgrade(t.Context(), up.Subject.ID, nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
			s.AAI.Writer = nf.AAIService
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := lifecycle.HandOver(t.Context(), e.Engine, up.Subject.ID); err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Fatal(op.State)
		}
		in, err := e.Instance(t.Context(), up.Subject.ID)
		if err != nil || in.AAIInForce().Writer != nf.AAIAdapter || in.Revision != 2 {
			t.Errorf("a revision that is older than the subscription must not change the writer: %+v, %v", in.AAIInForce(), err)
		}
		if err := lifecycle.HandOver(t.Context(), e.Engine, "unknown"); nf.KindOf(err) != nf.NotFound {
			t.Errorf("an unknown instance: %v", err)
		}
	})
}
