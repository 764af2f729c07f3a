package lifecycle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// attaching makes a request attach to networks.
func attaching(networks ...string) func(*nf.InstantiateRequest) {
	return func(req *nf.InstantiateRequest) { req.Networks = attachments(networks...) }
}

func attachments(networks ...string) []nf.Attachment {
	var out []nf.Attachment
	for _, name := range networks {
		out = append(out, nf.Attachment{Network: name})
	}
	return out
}

// onNetworks changes an instance to a package and networks.
func onNetworks(pkg string, onFailure nf.OnFailure, networks ...string) nf.UpgradeRequest {
	return nf.UpgradeRequest{Options: nf.Options{OnFailure: onFailure}, Edit: func(s *nf.Spec) error {
		s.Package, s.Networks = pkg, attachments(networks...)
		return nil
	}}
}

// networksHeld returns the networks that instances hold.
func (s *site) networksHeld() []string {
	s.t.Helper()
	var out []string
	for e, err := range s.kv.List(s.t.Context(), "holds/networks/", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, strings.Split(e.Key, "/")[2])
	}
	slices.Sort(out)
	return out
}

// TestNetworksOfAnInstance follows the holds of an instance through its changes.
func TestNetworksOfAnInstance(t *testing.T) {
	s := newSite(t)
	e := s.start()
	wants := func(reason string, networks ...string) {
		t.Helper()
		if diff := cmp.Diff(networks, s.networksHeld()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	op := e.up(t, "pods.web", named, attaching("oam", "lan"))
	wants("an instance holds its networks", "east.lan", "east.oam")
	change := func(req nf.UpgradeRequest) {
		t.Helper()
		op, err := e.Upgrade(t.Context(), op.Subject.ID, req)
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
	}
	change(onNetworks("pods.web", "", "oam", "wan"))
	wants("an upgrade holds the new ones and releases the others", "east.oam", "east.wan")
	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	change(onNetworks("pods.web_bad", nf.Undo, "oam", "dmz"))
	wants("an undone upgrade releases the new ones", "east.oam", "east.wan")
	change(onNetworks("pods.web_bad", nf.Keep, "oam", "dmz"))
	wants("a kept one does not", "east.dmz", "east.oam", "east.wan")
	s.cluster.refuse("bad", nil)
	change(onNetworks("pods.web", "", "oam"))
	wants("the next upgrade releases all that it does not attach to", "east.oam")
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	wants("a terminated instance holds none")
}

// TestFailedNetwork attaches an instance to a network that cannot be used: the operation
// fails, and is undone.
func TestFailedNetwork(t *testing.T) {
	s := newSite(t)
	e := s.start()
	op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web", Networks: attachments("failed")}})
	if err != nil {
		t.Fatal(err)
	}
	op = e.end(t, op)
	if op.Failure == nil || op.Failure.Kind != nf.Conflict || op.UndoFailure != nil || op.Attempts != 1 {
		t.Errorf("the operation is %s after %d attempts: %+v, and its undo: %+v", op.State, op.Attempts, op.Failure, op.UndoFailure)
	}
	if got := s.networksHeld(); len(got) > 0 {
		t.Errorf("it holds %v", got)
	}
}

// TestOrphansKeepNetworks leaves the objects of an instance in place: a name holds the
// networks, because the pods remain attached.
func TestOrphansKeepNetworks(t *testing.T) {
	s := newSite(t)
	e := s.start()
	op := e.up(t, "pods.web", named, attaching("oam"))
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{Orphan: true})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	for entry, err := range s.kv.List(t.Context(), "holds/networks/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if want := "holds/networks/east.oam/holder/orphans-of-" + op.Subject.ID; entry.Key != want {
			t.Errorf("there is a hold %s, want %s", entry.Key, want)
		}
	}
	if got := s.networksHeld(); len(got) != 1 {
		t.Errorf("%d hold the network", len(got))
	}
}

// TestAttachRefuses makes requests with wrong attachments. Nothing is recorded.
func TestAttachRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		pkg    string
		attach nf.Attachment
		kind   nf.Kind
		field  string
	}{
		"Missing":  {reason: "no such network", pkg: "pods.web", attach: nf.Attachment{Network: "missing"}, kind: nf.NotFound, field: "networks[0].network"},
		"Name":     {reason: "not a name", pkg: "pods.web", attach: nf.Attachment{Network: "A.b"}, kind: nf.Invalid, field: "networks[0].network"},
		"Workload": {reason: "no such workload", pkg: "pods.web", attach: nf.Attachment{Network: "oam", Workload: "db"}, kind: nf.Invalid, field: "networks[0].workload"},
		"Nothing":  {reason: "no object with pods", pkg: "db", attach: nf.Attachment{Network: "oam"}, kind: nf.Invalid, field: "networks[0].workload"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: tc.pkg, Networks: []nf.Attachment{tc.attach}}})
			if v := nf.ViolationsOf(err); nf.KindOf(err) != tc.kind || len(v) != 1 || v[0].Field != tc.field {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if got := s.networksHeld(); len(got) > 0 {
				t.Errorf("%s: it holds %v", tc.reason, got)
			}
		})
	}
}
