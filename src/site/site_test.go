package site_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.play = func(_ context.Context, job site.Job, tell teller) error {
			tell(site.Event{LogEntry: nf.LogEntry{Kind: nf.EventChanged, Task: "install", Host: "n1", Message: "done for " + string(job.Action)}})
			return nil
		}
		s, _ := w.start(t)
		build(t, s)
		in, err := s.Site(t.Context(), "edge")
		must(t, err)
		if in.State != nf.SiteReady || in.Busy != "" || !in.Registered || in.Hosts[1].State != nf.HostPresent {
			t.Errorf("a site that was built is %+v", in)
		}
		if got := w.regions["edge"]; string(got.Access.Kubeconfig) != kubeconfig {
			t.Errorf("the region was registered as %+v", got)
		}

		op, err := s.Change(t.Context(), "edge", nf.SiteChangeRequest{
			Edit: func(in *nf.Site) error { in.Roles = []string{"multus", "ovn"}; return nil },
			Add:  []nf.SiteHost{host("n3", nf.Worker)}, Remove: []string{"n2"},
		})
		must(t, err)
		op, events := end(t, s, op)
		if op.State != nf.Succeeded || len(events) == 0 {
			t.Fatalf("the change ended %s with %d events: %+v", op.State, len(events), op.Failure)
		}
		in, err = s.Site(t.Context(), "edge")
		must(t, err)
		if names := hosts(in); names != "n1 present, n3 present" {
			t.Errorf("after the change the hosts are %s", names)
		}
		jobs := w.started()
		if got := jobs[1]; got.Action != site.Shrink || !slices.Equal(got.Targets, []string{"n2"}) {
			t.Errorf("the worker that leaves is taken out with %+v", got)
		}
		if got := jobs[2]; got.Action != site.Build || !slices.Equal(got.Site.Roles, []string{"multus", "ovn"}) {
			t.Errorf("the change is built with %+v", got.Site)
		}

		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		must(t, err)
		if op, _ = end(t, s, op); op.State != nf.Succeeded {
			t.Fatalf("the removal ended %s: %+v", op.State, op.Failure)
		}
		if _, err := s.Site(t.Context(), "edge"); nf.KindOf(err) != nf.NotFound {
			t.Errorf("a site that was removed is still there: %v", err)
		}
		if len(w.regions) != 0 || w.started()[3].Action != site.Reset {
			t.Errorf("regions %v are left, and the last job was %s", w.regions, w.started()[3].Action)
		}
		if left := keys(t, w, "sitesecrets/"); len(left) != 0 {
			t.Errorf("secrets of a site that is gone are kept: %v", left)
		}
		if _, err := s.Operations().Operation(t.Context(), "edge", op.ID); err != nil {
			t.Errorf("what became of a removal can be read afterwards: %v", err)
		}
	})
}

func hosts(in nf.Site) string {
	var out []string
	for _, h := range in.Hosts {
		out = append(out, h.Name+" "+string(h.State))
	}
	return strings.Join(out, ", ")
}

func keys(t *testing.T, w *world, prefix string) []string {
	t.Helper()
	var out []string
	for e, err := range w.kv.List(t.Context(), prefix, "") {
		must(t, err)
		out = append(out, e.Key)
	}
	return out
}

// TestFailures: each failure ends the operation with an error that says which it
// is, and leaves nothing registered.
func TestFailures(t *testing.T) {
	cases := map[string]struct {
		reason  string
		arrange func(*world)
		kind    nf.Kind
		why     string // of the failure
		step    string
		message string
	}{
		"WrongPassword": {
			"a host that does not let us in", func(w *world) {
				w.reach = func(h nf.SiteHost) (string, error) {
					return "", &nf.Error{Kind: nf.Unreachable, Op: "connect to", Subject: "host " + h.Name, Reason: "unauthorized", Err: errors.New("hunter22 is wrong")}
				}
			}, nf.Unreachable, "unauthorized", "check hosts", nf.Masked + " is wrong",
		},
		"AnotherHost": {
			"a host that is not the one that was pinned", func(w *world) {
				w.reach = func(nf.SiteHost) (string, error) { return "", &nf.Error{Kind: nf.Unreachable, Reason: "host-key"} }
			}, nf.Unreachable, "host-key", "check hosts", "",
		},
		"Task": {
			"a task that fails", func(w *world) {
				w.play = func(context.Context, site.Job, teller) error {
					return &nf.Error{Kind: nf.Failed, Op: "run", Subject: `task "init" on host n1`, Reason: "task", Err: errors.New("login with s3cret-registry")}
				}
			}, nf.Failed, "task", "build cluster", `task "init" on host n1: login with ` + nf.Masked,
		},
		"NoKubeconfig": {
			"a run that leaves nothing behind", func(w *world) { w.mute = true }, nf.Failed, "", "build cluster", "did not write a kubeconfig",
		},
		"NoCluster": {
			"a cluster that this service does not reach", func(w *world) {
				w.probe = &nf.Error{Kind: nf.Unreachable, Op: "register", Subject: "cloud region edge", Reason: "tcp"}
			}, nf.Unreachable, "tcp", "register region", "",
		},
		"Timeout": {
			"a run that takes too long", func(w *world) {
				w.play = func(ctx context.Context, _ site.Job, _ teller) error { <-ctx.Done(); return ctx.Err() }
			}, nf.Timeout, "", "build cluster", "timed out after 2h",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				tc.arrange(w)
				s, _ := w.start(t)
				op, err := s.Create(t.Context(), request())
				must(t, err)
				op, _ = end(t, s, op)
				f := op.Failure
				if op.State != nf.OperationFailed || f == nil || f.Kind != tc.kind || f.Reason != tc.why || f.Step != tc.step || !strings.Contains(f.Message, tc.message) {
					t.Errorf("%s: the operation is %s, and its failure %+v", tc.reason, op.State, f)
				}
				in, err := s.Site(t.Context(), "edge")
				must(t, err)
				if len(w.regions) != 0 || in.Registered || in.State != nf.SiteFailed || in.Busy != "" {
					t.Errorf("%s: regions %v, site %s, busy with %q", tc.reason, w.regions, in.State, in.Busy)
				}
				last := op.Steps[len(op.Steps)-1]
				if !last.Failed || last.Finished.IsZero() {
					t.Errorf("%s: the last step is %+v, and has not failed", tc.reason, last)
				}
			})
		})
	}
}

func TestRunsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		wrong := true
		w.play = func(_ context.Context, job site.Job, _ teller) error {
			if wrong {
				return nf.E(nf.Failed, "run", "it", nil)
			}
			if got := string(job.Secrets.Password); got != "another one" {
				t.Errorf("the run has the password %q", got)
			}
			return nil
		}
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), request())
		must(t, err)
		end(t, s, op)
		wrong = false
		op, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{Secrets: func(m *nf.SiteSecrets) error { m.Password = nf.Secret("another one"); return nil }})
		must(t, err)
		if op, _ = end(t, s, op); op.State != nf.Succeeded || len(w.regions) != 1 {
			t.Errorf("a change that changes the credential completes the build: %+v", op)
		}
		if left := keys(t, w, "sitesecrets/"); len(left) != 1 {
			t.Errorf("the former secrets are kept: %v", left)
		}
	})
}

func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		begun := make(chan struct{})
		w.play = func(ctx context.Context, _ site.Job, _ teller) error { close(begun); <-ctx.Done(); return ctx.Err() }
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), request())
		must(t, err)
		<-begun
		if _, err := s.Change(t.Context(), "edge", nf.SiteChangeRequest{}); nf.KindOf(err) != nf.Busy || nf.OperationOf(err) != op.ID {
			t.Errorf("a second change while one runs is refused, naming that: %v", err)
		}
		_, err = s.Operations().Cancel(t.Context(), "edge", op.ID)
		must(t, err)
		op, _ = end(t, s, op)
		if op.State != nf.OperationCancelled || op.Failure.Kind != nf.Cancelled || op.Failure.Step != "build cluster" {
			t.Errorf("the operation is %s: %+v", op.State, op.Failure)
		}
		if w.underWay() != 0 || len(w.regions) != 0 {
			t.Errorf("%d runs go on, and regions %v are registered", w.underWay(), w.regions)
		}
		_, err = s.Operations().Cancel(t.Context(), "edge", op.ID)
		wantKind(t, "what has ended cannot be cancelled", err, nf.Conflict)
	})
}

// TestDeath: a process that dies is followed by another that runs everything
// again; a service that stops gives its operations back at once.
func TestDeath(t *testing.T) {
	cases := map[string]struct {
		reason string
		within time.Duration
		after  time.Duration
	}{
		"Stopped": {"what was given back is taken at once", 6 * time.Second, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				first := true
				w.play = func(ctx context.Context, _ site.Job, _ teller) error {
					if first {
						first = false
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				s, stop := w.start(t)
				op, err := s.Create(t.Context(), request())
				must(t, err)
				synctest.Wait()
				stop()
				began := time.Now()
				next, _ := w.start(t)
				op, _ = end(t, next, op)
				if op.State != nf.Succeeded || op.Attempts != 2 || len(w.regions) != 1 {
					t.Errorf("%s: it is %s after %d attempts: %+v", tc.reason, op.State, op.Attempts, op.Failure)
				}
				if took := time.Since(began); took > tc.within {
					t.Errorf("%s: that took %s", tc.reason, took)
				}
			})
		})
	}
}

func TestTakeover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		stalled := &stalledKV{KV: w.kv}
		begun := make(chan struct{}, 2)
		w.play = func(ctx context.Context, _ site.Job, _ teller) error {
			begun <- struct{}{}
			if stalled.is() {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		s, _ := w.start(t, func(c *config) { c.KV = stalled })
		op, err := s.Create(t.Context(), request())
		must(t, err)
		<-begun
		stalled.stall() // from here on the first replica no longer reaches its store
		began := time.Now()
		next, _ := w.start(t)
		op, _ = end(t, next, op)
		if op.State != nf.Succeeded || op.Attempts != 2 {
			t.Errorf("it is %s after %d attempts: %+v", op.State, op.Attempts, op.Failure)
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("a lease that is kept was taken after %s", took)
		}
		if w.underWay() != 0 {
			t.Error("the run of the replica that lost its lease goes on")
		}
	})
}

func TestRemoveRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		w.use("vnf-1", "vnf-2")
		_, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1"}})
		wantKind(t, "a region that is used stays", err, nf.Conflict)
		if err == nil || !strings.Contains(err.Error(), "vnf-2") || strings.Contains(err.Error(), "vnf-1") {
			t.Errorf("the refusal names what is in the way: %v", err)
		}
		if diff := cmp.Diff([]nf.Mentioned{{Instance: "vnf-2"}}, nf.TextOf(err).Mentions); diff != "" {
			t.Errorf("the instances that the error names are listed (-want +got):\n%s", diff)
		}
		w.busy = map[string]string{"vnf-2": "op-9"}
		op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1", "vnf-2"}})
		must(t, err)
		op, events := end(t, s, op)
		if op.State != nf.Succeeded {
			t.Errorf("with its instances the site goes: %+v", op.Failure)
		}
		var told []string
		var listed []nf.Mentioned
		for _, e := range events {
			if strings.Contains(e.Said().String(), "vnf-") {
				told, listed = append(told, e.Said().String()), append(listed, e.Mentions...)
			}
		}
		if diff := cmp.Diff([]nf.Mentioned{{Instance: "vnf-1"}, {Instance: "vnf-2"}, {Instance: "vnf-2"}}, listed); diff != "" {
			t.Errorf("the instances that the events name are listed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{
			"VNF instance vnf-1 is being terminated", "VNF instance vnf-2 is being terminated", "waiting for operation op-9 on VNF instance vnf-2",
		}, told); diff != "" {
			t.Errorf("what was told (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"vnf-1", "vnf-2"}, w.terminated); diff != "" {
			t.Errorf("what was terminated (-want +got):\n%s", diff)
		}
	})
}

func TestKeepHosts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		w.reach = func(nf.SiteHost) (string, error) { return "", &nf.Error{Kind: nf.Unreachable, Reason: "tcp"} }
		op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		must(t, err)
		if op, _ = end(t, s, op); op.State != nf.OperationFailed || len(w.regions) != 0 {
			t.Errorf("hosts that are gone cannot be reset, and the region goes first: %s, %v", op.State, w.regions)
		}
		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{KeepHosts: true})
		must(t, err)
		if op, _ = end(t, s, op); op.State != nf.Succeeded || len(w.started()) != 1 {
			t.Errorf("without its hosts the site goes: %+v after %d jobs", op.Failure, len(w.started()))
		}
	})
}

func TestDeadWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		w.reach = func(h nf.SiteHost) (string, error) {
			if h.Name == "n2" {
				return "", &nf.Error{Kind: nf.Unreachable, Op: "connect to", Subject: "host n2", Reason: "tcp"}
			}
			return hostKey, nil
		}
		op, err := s.Change(t.Context(), "edge", nf.SiteChangeRequest{Remove: []string{"n2"}})
		must(t, err)
		if op, _ = end(t, s, op); op.State != nf.Succeeded {
			t.Fatalf("a worker that is gone can be removed: %+v", op.Failure)
		}
		if got := w.started()[1]; !slices.Equal(got.Dead, []string{"n2"}) {
			t.Errorf("the runner is told who is dead: %v", got.Dead)
		}
	})
}

func TestFirstUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Site.FirstUse, r.Site.Hosts[0].Key = true, "" }))
		must(t, err)
		end(t, s, op)
		in, err := s.Site(t.Context(), "edge")
		must(t, err)
		if in.Hosts[0].Key != hostKey || w.started()[0].Site.Hosts[0].Key != hostKey {
			t.Errorf("a key that is seen for the first time is pinned, and what runs gets it: %+v", in.Hosts[0])
		}
	})
}
