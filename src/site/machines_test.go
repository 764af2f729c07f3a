package site_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

const cloudPassword = "cloud-pa55word"

// withSky adds a cloud to the world, and its region.
func (w *world) withSky() *world {
	w.sky = newSky()
	w.regions["cloud"] = nf.Region{ID: "cloud", Type: nf.OpenStackRegion, VIM: &nf.VIM{OpenStack: &nf.OpenStack{AuthURL: "https://cloud.example.com", Password: nf.Secret(cloudPassword)}}}
	w.regions["east"] = nf.Region{ID: "east", Type: nf.KubernetesRegion}
	return w
}

// machines asks for a site of machines.
func machines(edit ...func(*nf.SiteRequest)) nf.SiteRequest {
	return request(append([]func(*nf.SiteRequest){func(r *nf.SiteRequest) {
		r.Site.Machines = &nf.Machines{Cloud: "cloud", Image: "debian", Flavor: "medium", Networks: []string{"management"}, KeyPair: "ops"}
		r.Site.Hosts, r.Site.FirstUse = nf.MachineHosts("debian", 1, 2), true
	}}, edit...)...)
}

// succeed waits for the success of an operation.
func succeed(t *testing.T, s *site.Sites, op nf.Operation, err error) {
	t.Helper()
	must(t, err)
	if op, _ = end(t, s, op); op.State != nf.Succeeded {
		t.Fatalf("the operation ended %s: %+v", op.State, op.Failure)
	}
}

func wantMachines(t *testing.T, reason string, w *world, want ...string) {
	t.Helper()
	if got := w.sky.names(); !slices.Equal(got, want) {
		t.Errorf("%s: the machines are %q, want %q", reason, got, want)
	}
}

// wantHeld checks whether the site prevents the removal of the cloud's region.
func wantHeld(t *testing.T, w *world, held bool) {
	t.Helper()
	if err := w.RemoveRegion(t.Context(), "cloud"); (err != nil) != held {
		t.Errorf("the cloud is deregistered: %v, want that the site prevents it: %t", err, held)
	}
}

func hostNames(t *testing.T, s *site.Sites) []string {
	t.Helper()
	in, err := s.Site(t.Context(), "edge")
	must(t, err)
	var out []string
	for _, h := range in.Hosts {
		out = append(out, fmt.Sprintf("%s %s %s %s", h.Name, h.Address, h.State, h.Machine))
		if h.Key == "" {
			t.Errorf("the key of %s is not pinned", h.Name)
		}
	}
	return out
}

// TestMachines follows a site with machines from its build to its removal.
func TestMachines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld().withSky()
		waits := map[string]int{"worker1": 3} // a machine accepts no login at first
		w.reach = func(h nf.SiteHost) (string, error) {
			if waits[h.Name] > 0 {
				waits[h.Name]--
				return "", &nf.Error{Kind: nf.Unreachable, Op: "connect to", Subject: h.Name, Reason: nf.ReasonTCP}
			}
			return hostKey, nil
		}
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), machines())
		succeed(t, s, op, err)
		want := []string{"master1 master1.1.example.com present master1-id-1", "worker1 worker1.1.example.com present worker1-id-1", "worker2 worker2.1.example.com present worker2-id-1"}
		if got := hostNames(t, s); !slices.Equal(got, want) {
			t.Errorf("the hosts are %q, want %q", got, want)
		}
		in, err := s.Site(t.Context(), "edge")
		must(t, err)
		if g := w.sky.groups[0]; g.Owner != in.UID || g.Name != "edge" || g.Spec.Image != "debian" {
			t.Errorf("the machines are those of %+v", g)
		}

		wantHeld(t, w, true)
		change := func(workers int) {
			op, err := s.Change(t.Context(), "edge", nf.SiteChangeRequest{Workers: &workers})
			succeed(t, s, op, err)
		}
		change(3)
		wantMachines(t, "a worker is added", w, "master1-id-1", "worker1-id-1", "worker2-id-1", "worker3-id-1")
		change(1)
		wantMachines(t, "the last workers are removed", w, "master1-id-1", "worker1-id-1")
		jobs := w.started()
		if shrink := jobs[len(jobs)-2]; shrink.Action != site.Shrink || !slices.Equal(shrink.Targets, []string{"worker2", "worker3"}) {
			t.Errorf("the run before the last is %s of %q, want that workers leave the cluster before their machines are deleted", shrink.Action, shrink.Targets)
		}

		w.sky.lose("worker1")
		change(1)
		wantMachines(t, "a lost worker is replaced", w, "master1-id-1", "worker1-id-2")
		if got := hostNames(t, s); got[1] != "worker1 worker1.2.example.com present worker1-id-2" {
			t.Errorf("the hosts are %q, want the new address", got)
		}
		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		succeed(t, s, op, err)
		wantMachines(t, "the site is removed", w)
		wantHeld(t, w, false)
		if jobs := w.started(); jobs[len(jobs)-1].Action == site.Reset {
			t.Error("machines are reset before they are deleted")
		}
	})
}

// TestMachineFailures builds or changes sites whose machines fail.
func TestMachineFailures(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(w *world) // the build
		after  func(w *world) // the build, before a change without changes
		text   string         // of the failure of the build or, with after, of the change
	}{
		"Start":        {"Nova's message is reported", func(w *world) { w.sky.broken["worker2"] = true }, nil, "No valid host"},
		"ControlPlane": {"the state of a cluster cannot be repaired", nil, func(w *world) { w.sky.lose("master1") }, "the cluster's state is lost"},
		"Cloud":        {"the cloud is deregistered", nil, func(w *world) { delete(w.regions, "cloud") }, "does not exist"},
		"Secret": {"the password of the cloud is masked", func(w *world) {
			w.regions["cloud"] = nf.Region{ID: "cloud", Type: nf.OpenStackRegion, VIM: &nf.VIM{OpenStack: &nf.OpenStack{Password: nf.Secret(cloudPassword)}}}
		}, nil, "the password is " + nf.Masked},
		"Login": {"a machine that never accepts a login fails the build", func(w *world) {
			w.reach = func(nf.SiteHost) (string, error) {
				return "", &nf.Error{Kind: nf.Unreachable, Op: "connect to", Subject: "the host", Reason: nf.ReasonTimeout}
			}
		}, nil, "connect to the host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld().withSky()
				if tc.before != nil {
					tc.before(w)
				}
				s, _ := w.start(t)
				begin := time.Now()
				op, err := s.Create(t.Context(), machines())
				must(t, err)
				op, _ = end(t, s, op)
				if tc.after != nil {
					tc.after(w)
					op, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{})
					must(t, err)
					op, _ = end(t, s, op)
				}
				if op.Failure == nil || !strings.Contains(op.Failure.Message, tc.text) || strings.Contains(op.Failure.Message, cloudPassword) || time.Since(begin) > time.Hour {
					t.Errorf("%s: the failure is %+v, want %q", tc.reason, op.Failure, tc.text)
				}
			})
		})
	}
}

// TestMachineRepair builds a site again after a machine has failed, and removes one
// that was never built.
func TestMachineRepair(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld().withSky()
		w.sky.broken["worker2"] = true
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), machines())
		must(t, err)
		_, _ = end(t, s, op)
		w.sky.change(func() { w.sky.broken["worker2"] = false })
		op, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{})
		succeed(t, s, op, err)
		wantMachines(t, "only the failed machine is replaced", w, "master1-id-1", "worker1-id-1", "worker2-id-2")
		w.sky.change(func() { w.sky.broken["worker3"] = true })
		op, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{Workers: new(3)})
		must(t, err)
		_, _ = end(t, s, op)
		op, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{Remove: []string{"worker3"}})
		succeed(t, s, op, err)
		wantMachines(t, "a machine that never ran is deleted without a run", w, "master1-id-1", "worker1-id-1", "worker2-id-2")
		for _, job := range w.started() {
			if job.Action == site.Shrink {
				t.Errorf("a run removes %q, which never were part of the cluster", job.Targets)
			}
		}
		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{KeepHosts: true})
		succeed(t, s, op, err)
		wantMachines(t, "hosts are kept", w, "master1-id-1", "worker1-id-1", "worker2-id-2")
		wantHeld(t, w, false)
	})
}

// TestMachinesWithoutCloud removes a site whose cloud was deregistered before the site
// held it.
func TestMachinesWithoutCloud(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld().withSky()
		s, _ := w.start(t, func(c *config) { c.Holds = late{w} })
		op, err := s.Create(t.Context(), machines())
		must(t, err)
		if op, _ = end(t, s, op); op.Failure == nil || op.Failure.Kind != nf.NotFound || len(w.sky.names()) > 0 {
			t.Errorf("the build ended with %+v and the machines %q", op.Failure, w.sky.names())
		}
		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		succeed(t, s, op, err)
	})
}

// late deregisters the cloud before a site holds it.
type late struct{ *world }

func (l late) Hold(ctx context.Context, h nf.Holding) error {
	l.mu.Lock()
	delete(l.regions, h.Region)
	l.mu.Unlock()
	return l.world.Hold(ctx, h)
}

// TestMachineRequests makes requests that are rejected.
func TestMachineRequests(t *testing.T) {
	create := func(edit func(*nf.SiteRequest)) func(context.Context, *site.Sites) error {
		return func(ctx context.Context, s *site.Sites) error { _, err := s.Create(ctx, machines(edit)); return err }
	}
	cases := map[string]struct {
		reason string
		sky    bool
		call   func(context.Context, *site.Sites) error
		kind   nf.Kind
		field  string
	}{
		"NoClouds":   {"a service without a driver makes no machines", false, create(func(*nf.SiteRequest) {}), nf.Unsupported, ""},
		"Absent":     {"the cloud must exist", true, create(func(r *nf.SiteRequest) { r.Site.Machines.Cloud = "none" }), nf.Invalid, "machines.cloud_region_id"},
		"Kubernetes": {"and be one of OpenStack", true, create(func(r *nf.SiteRequest) { r.Site.Machines.Cloud = "east" }), nf.Invalid, "machines.cloud_region_id"},
		"Image":      {"machines have an image", true, create(func(r *nf.SiteRequest) { r.Site.Machines.Image = "" }), nf.Invalid, "machines.image"},
		"Networks":   {"and a network", true, create(func(r *nf.SiteRequest) { r.Site.Machines.Networks = nil }), nf.Invalid, "machines.networks"},
		"User":       {"and a user", true, create(func(r *nf.SiteRequest) { r.Site.Hosts = nf.MachineHosts("", 1, 0) }), nf.Invalid, "user"},
		"Masters":    {"and a control plane", true, create(func(r *nf.SiteRequest) { r.Site.Hosts = nf.MachineHosts("debian", 0, 1) }), nf.Invalid, "machines.control_planes"},
		"Workers":    {"their number is limited", true, create(func(r *nf.SiteRequest) { r.Site.Hosts = nf.MachineHosts("debian", 1, 1000) }), nf.Invalid, "machines.workers"},
		"FirstUse":   {"their keys are not known", true, create(func(r *nf.SiteRequest) { r.Site.FirstUse = false }), nf.Invalid, "trust_on_first_use"},
		"Scale": {"hosts that are not machines cannot be scaled", true, func(ctx context.Context, s *site.Sites) error {
			if _, err := s.Create(ctx, request()); err != nil {
				return err
			}
			_, err := s.Change(ctx, "edge", nf.SiteChangeRequest{Workers: new(-1)})
			return err
		}, nf.Invalid, "machines.workers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld().withSky()
				if !tc.sky {
					w.sky = nil
				}
				s, _ := w.start(t)
				err := tc.call(t.Context(), s)
				wantKind(t, tc.reason, err, tc.kind)
				if v := nf.ViolationsOf(err); tc.field != "" && !slices.ContainsFunc(v, func(one nf.Violation) bool { return one.Field == tc.field }) {
					t.Errorf("%s: the violations are %v, want one of %s", tc.reason, v, tc.field)
				}
			})
		})
	}
}

// TestMachineChanges changes sites in ways that their hosts do not allow.
func TestMachineChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld().withSky()
		s, _ := w.start(t)
		op, err := s.Create(t.Context(), machines())
		succeed(t, s, op, err)
		_, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{Add: []nf.SiteHost{host("n3", nf.Worker)}})
		wantKind(t, "a host is added to a site of machines", err, nf.Invalid)
		build := request(func(r *nf.SiteRequest) { r.Site.ID, r.Site.Region = "other", "other" })
		op, err = s.Create(t.Context(), build)
		succeed(t, s, op, err)
		_, err = s.Change(t.Context(), "other", nf.SiteChangeRequest{Workers: new(1)})
		wantKind(t, "a site of given hosts is scaled", err, nf.Invalid)
	})
}
