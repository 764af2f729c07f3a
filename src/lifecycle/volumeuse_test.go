package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// using makes a request use volumes, each with a claim of its name.
func using(volumes ...string) func(*nf.InstantiateRequest) {
	return func(req *nf.InstantiateRequest) {
		for _, name := range volumes {
			req.Volumes = append(req.Volumes, nf.VolumeUse{Volume: name, Claim: name})
		}
	}
}

// onVolumes makes an instance that uses volumes.
func onVolumes(pkg string, volumes ...string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: pkg}, Options: nf.Options{Key: key}}
		using(volumes...)(&req)
		return e.Instantiate(ctx, req)
	}
}

// volumesHeld returns the volumes that are held, and the claims that they are reserved
// for: "east.data ns/data".
func (s *site) volumesHeld() []string {
	s.t.Helper()
	var out []string
	s.volumes.mu.Lock()
	defer s.volumes.mu.Unlock()
	for e, err := range s.kv.List(s.t.Context(), "holds/volumes/", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		id := strings.Split(e.Key, "/")[2]
		out = append(out, strings.TrimSpace(id+" "+s.volumes.claims[id]))
	}
	slices.Sort(out)
	return out
}

// TestVolumesOfAnInstance follows the holds and the reservations of an instance through
// its changes.
func TestVolumesOfAnInstance(t *testing.T) {
	s := newSite(t)
	e := s.start()
	wants := func(reason string, volumes ...string) {
		t.Helper()
		if diff := cmp.Diff(volumes, s.volumesHeld()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	op := e.up(t, "pods.web", named, using("data", "logs"))
	wants("an instance holds its volumes", "east.data ns/data", "east.logs ns/logs")
	if claim := s.cluster.objects[(nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data"}).Key()]; claim == nil || nf.OwnerOf(claim.object.GetLabels()) != op.Subject {
		t.Errorf("the claim of the instance is %+v", claim)
	}
	others := nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
		s.Volumes = []nf.VolumeUse{{Volume: "data", Claim: "data"}, {Volume: "more", Claim: "x"}}
		return nil
	}}
	_, err := e.Upgrade(t.Context(), op.Subject.ID, others)
	if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Conflict || len(v) != 1 {
		t.Errorf("a claim is deleted without a confirmation: %v", err)
	}
	others.Confirm = nf.ConfirmOf(err)
	e.upgrade(t, op.Subject.ID, others)
	wants("an upgrade holds the new one, and frees the other", "east.data ns/data", "east.more ns/x")
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	wants("a terminated instance holds nothing")
	if len(s.volumes.claims) > 0 {
		t.Errorf("volumes remain reserved: %v", s.volumes.claims)
	}
}

// TestVolumesAreReservedAgain has a claim deleted whose volume is no longer reserved for it:
// a new claim needs a new reservation.
func TestVolumesAreReservedAgain(t *testing.T) {
	for name, create := range map[string]func(*testing.T, *site, *engine, string) nf.OperationState{
		"Undo": func(t *testing.T, s *site, e *engine, id string) nf.OperationState {
			s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
			return e.upgrade(t, id, onNetworks("pods.web_bad", nf.Undo)).State
		},
		"Heal": func(t *testing.T, s *site, e *engine, id string) nf.OperationState {
			s.cluster.mu.Lock()
			delete(s.cluster.objects, (nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data"}).Key())
			s.cluster.mu.Unlock()
			return e.act(t, id, nf.ActRequest{Verb: nf.Heal}).State
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			id := e.up(t, "pods.web", named, using("data", "logs")).Subject.ID
			s.volumes.mu.Lock()
			clear(s.volumes.claims)
			s.volumes.mu.Unlock()
			state := create(t, s, e, id)
			s.volumes.mu.Lock()
			defer s.volumes.mu.Unlock()
			if got := s.volumes.claims["east.data"]; got != "ns/data" {
				t.Errorf("the operation %s, and the volume is reserved for %q", state, got)
			}
		})
	}
}

// TestOrphansKeepVolumes leaves the objects of an instance in place: a name holds the
// volumes.
func TestOrphansKeepVolumes(t *testing.T) {
	s := newSite(t)
	e := s.start()
	op := e.up(t, "pods.web", named, using("data"))
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{Orphan: true})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	for entry, err := range s.kv.List(t.Context(), "holds/volumes/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if want := "holds/volumes/east.data/holder/orphans-of-" + op.Subject.ID; entry.Key != want {
			t.Errorf("there is a hold %s, want %s", entry.Key, want)
		}
	}
}

// TestVolumesRefuse makes requests with wrong volumes. Nothing is recorded.
func TestVolumesRefuse(t *testing.T) {
	use := func(pairs ...string) (out []nf.VolumeUse) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, nf.VolumeUse{Volume: pairs[i], Claim: pairs[i+1]})
		}
		return out
	}
	cases := map[string]struct {
		reason string
		uses   []nf.VolumeUse
		kind   nf.Kind
		field  string
	}{
		"Missing": {"no such volume", use("missing", "a"), nf.NotFound, "volumes[0].volume"},
		"Name":    {"not a name", use("A.b", "a"), nf.Invalid, "volumes[0].volume"},
		"Claim":   {"not the name of a claim", use("data", "A b"), nf.Invalid, "volumes[0].claim"},
		"Twice":   {"a volume binds one claim", use("data", "a", "data", "b"), nf.Invalid, "volumes[1].volume"},
		"Same":    {"a claim binds one volume", use("data", "a", "logs", "a"), nf.Invalid, "volumes[1].claim"},
		"Busy":    {"another claim is bound to it", use("data", "a", "busy", "b"), nf.Conflict, "volumes[1].volume"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web", Volumes: tc.uses}})
			if v := nf.ViolationsOf(err); nf.KindOf(err) != tc.kind || len(v) != 1 || v[0].Field != tc.field {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if got := s.volumesHeld(); len(got) > 0 {
				t.Errorf("%s: it holds %v", tc.reason, got)
			}
		})
	}
}

// TestVolumesOfAPackage follows the volumes that a package names through the changes of an
// instance. Those of the request replace them.
func TestVolumesOfAPackage(t *testing.T) {
	s := newSite(t)
	e := s.start()
	naming := func(volumes string) map[string]any { return map[string]any{"volumes": volumes} }
	op := e.up(t, "pods.web", named, using("logs"), func(req *nf.InstantiateRequest) { req.Inputs.Parameters = naming("data/db spool/spool") })
	wants := func(reason string, bound []string, held ...string) {
		t.Helper()
		in, err := e.Instance(t.Context(), op.Subject.ID)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range in.VolumeUses() {
			got = append(got, u.Volume+"/"+u.Claim)
		}
		if diff := cmp.Diff(bound, got); diff != "" {
			t.Errorf("%s: bound (-want +got):\n%s", reason, diff)
		}
		if diff := cmp.Diff(held, s.volumesHeld()); diff != "" {
			t.Errorf("%s: held (-want +got):\n%s", reason, diff)
		}
	}
	change := func(edit func(*nf.Spec)) {
		t.Helper()
		req := nf.UpgradeRequest{Edit: func(s *nf.Spec) error { edit(s); return nil }}
		_, err := e.Upgrade(t.Context(), op.Subject.ID, req)
		if req.Confirm = nf.ConfirmOf(err); req.Confirm == "" {
			t.Fatalf("a claim is deleted without a confirmation: %v", err)
		}
		e.upgrade(t, op.Subject.ID, req)
	}
	wants("both", []string{"data/db", "spool/spool", "logs/logs"}, "east.data ns/db", "east.logs ns/logs", "east.spool ns/spool")
	change(func(s *nf.Spec) { s.Volumes = []nf.VolumeUse{{Volume: "other", Claim: "spool"}} })
	wants("a request replaces the volume of a claim", []string{"data/db", "other/spool"}, "east.data ns/db", "east.other ns/spool")
	amended, err := e.Configure(t.Context(), op.Subject.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error {
		s.Amendments = []nf.Amendment{{Name: "day2", Package: "pods.web", Inputs: nf.Inputs{Parameters: naming("missing/none")}}}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if amended = e.end(t, amended); !slices.ContainsFunc(amended.Warnings, func(w string) bool { return strings.HasPrefix(w, "amendments.day2: volumes") }) {
		t.Errorf("the warnings are %q", amended.Warnings)
	}
	wants("a configuration keeps them", []string{"data/db", "other/spool"}, "east.data ns/db", "east.other ns/spool")
	change(func(s *nf.Spec) { s.Inputs.Parameters, s.Volumes, s.Amendments = naming("spool/spool"), nil, nil })
	wants("other variables", []string{"spool/spool"}, "east.spool ns/spool")
	back, err := e.Rollback(t.Context(), op.Subject.ID, nf.RollbackRequest{Revision: 2})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, back)
	wants("a rollback restores them", []string{"data/db", "other/spool"}, "east.data ns/db", "east.other ns/spool")
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	if got := s.volumesHeld(); len(got) > 0 || len(s.volumes.claims) > 0 {
		t.Errorf("a terminated instance holds %v, and reserves %v", got, s.volumes.claims)
	}
}

// TestVolumesOfAPackageRefuse makes packages name wrong volumes. The violation names the
// line of the package, and nothing is recorded.
func TestVolumesOfAPackageRefuse(t *testing.T) {
	cases := map[string]struct {
		reason   string
		declared string
		request  nf.InstantiateRequest
		kind     nf.Kind
		want     string
	}{
		"Missing": {reason: "no such volume", declared: "data/a missing/b", kind: nf.NotFound, want: `list:9: volumes[1].volume: cloud region east has no volume "missing"`},
		"Hidden": {
			reason: "the caller may not use it", declared: "data/a", kind: nf.NotFound, want: `list:9: volumes[0].volume: cloud region east has no volume "data"`,
			request: nf.InstantiateRequest{Options: nf.Options{MayUse: func(_ context.Context, v nf.Volume) error { return nf.E(nf.NotFound, "get", "volume "+v.ID, nil) }}},
		},
		"Busy": {reason: "another claim is bound to it", declared: "busy/a", kind: nf.Conflict, want: "list:9: volumes[0].volume: cannot use volume east.busy: it is in use by the claim "},
		"Claim": {
			reason: "a claim of the package does not fit", declared: "data/big", kind: nf.Invalid,
			want: "list:9: volumes[0].claim: PersistentVolumeClaim big has the access mode ReadWriteMany, and the volume has [ReadWriteOnce]",
		},
		"Many": {
			reason: "more than an instance may have, together with those of the request", declared: "data/data", kind: nf.Invalid, want: "volumes: and the volumes of the package are 33, and at most 32 are allowed",
			request: nf.InstantiateRequest{Spec: nf.Spec{Volumes: manyUses(nf.MaxVolumes)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			req := tc.request
			req.Region, req.Namespace, req.Package, req.Inputs.Parameters = "east", "ns", "pods.web-PersistentVolumeClaim.big", map[string]any{"volumes": tc.declared}
			_, err := e.Instantiate(t.Context(), req)
			var got []string
			for _, v := range nf.ViolationsOf(err) {
				got = append(got, v.String())
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" || nf.KindOf(err) != tc.kind {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if held, live := s.volumesHeld(), s.cluster.live(); len(held)+len(live) > 0 {
				t.Errorf("%s: it holds %v, and has created %v", tc.reason, held, live)
			}
		})
	}
}

// manyUses returns uses of as many volumes.
func manyUses(n int) (out []nf.VolumeUse) {
	for i := range n {
		name := fmt.Sprintf("v%d", i)
		out = append(out, nf.VolumeUse{Volume: name, Claim: name})
	}
	return out
}
