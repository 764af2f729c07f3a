package site_test

import (
	"context"
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
		if op.State != nf.Succeeded || len(w.started()) != 0 || !slices.ContainsFunc(events, func(e nf.SiteEvent) bool { return strings.Contains(e.Message, "nothing was ever run") }) {
			t.Errorf("it goes, and says why nothing is reset: %+v after %d jobs, %+v", op.Failure, len(w.started()), events)
		}
	})
}

// TestTold: who counts operations is told of each once.
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
		tell := func(what string) func(nf.SiteOperation) {
			return func(op nf.SiteOperation) { told = append(told, what+" "+string(op.Verb)+" "+string(op.State)) }
		}
		hear := func(c *site.Config) { c.Finished, c.Resumed = tell("finished"), tell("resumed") }
		s, stop := w.start(t, hear)
		_, err := s.Create(t.Context(), request())
		must(t, err)
		<-begun
		if all := s.Running(); len(all) != 1 || all[0].State != nf.Running || all[0].Region != "edge" {
			t.Errorf("what runs is %+v", all)
		}
		stop()
		s, _ = w.start(t, hear)
		ops, err := s.Operations(t.Context(), "edge")
		must(t, err)
		end(t, s, ops[0])
		synctest.Wait()
		if diff := cmp.Diff([]string{"resumed build running", "finished build succeeded"}, told); diff != "" {
			t.Errorf("what was told (-want +got):\n%s", diff)
		}
		if all := s.Running(); len(all) != 0 {
			t.Errorf("what has ended runs on: %+v", all)
		}
	})
}
