package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// rewired changes the instance to the networks oam and wan.
func rewired(pkg string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		req := onNetworks(pkg, nf.Undo, "oam", "wan")
		req.Key = key
		return e.Upgrade(ctx, e.only(ctx).ID, req)
	}
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
	e.upgrade(t, op.Subject.ID, onNetworks("pods.web", "", "oam", "wan"))
	wants("an upgrade holds the new ones and releases the others", "east.oam", "east.wan")
	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	e.upgrade(t, op.Subject.ID, onNetworks("pods.web_bad", nf.Undo, "oam", "dmz"))
	wants("an undone upgrade releases the new ones", "east.oam", "east.wan")
	e.upgrade(t, op.Subject.ID, onNetworks("pods.web_bad", nf.Keep, "oam", "dmz"))
	wants("a kept one does not", "east.dmz", "east.oam", "east.wan")
	s.cluster.refuse("bad", nil)
	e.upgrade(t, op.Subject.ID, onNetworks("pods.web", "", "oam"))
	wants("the next upgrade releases all that it does not attach to", "east.oam")
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	wants("a terminated instance holds none")
}

// declaring makes a package declare attachments.
func declaring(networks string) func(*nf.InstantiateRequest) {
	return func(req *nf.InstantiateRequest) { req.Inputs.Parameters = map[string]any{"networks": networks} }
}

// TestNetworksOfAPackage follows the attachments that a package declares through the
// changes of an instance. Those of the request replace them.
func TestNetworksOfAPackage(t *testing.T) {
	s := newSite(t)
	e := s.start()
	op := e.up(t, "pods.web", named, declaring("oam/a lan/b"), attaching("wan"))
	wants := func(reason string, attached []string, held ...string) {
		t.Helper()
		in, err := e.Instance(t.Context(), op.Subject.ID)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range in.Attachments() {
			got = append(got, a.Network+"/"+a.Interface)
		}
		if diff := cmp.Diff(attached, got); diff != "" {
			t.Errorf("%s: attached (-want +got):\n%s", reason, diff)
		}
		if diff := cmp.Diff(held, s.networksHeld()); diff != "" {
			t.Errorf("%s: held (-want +got):\n%s", reason, diff)
		}
	}
	change := func(edit func(*nf.Spec)) {
		t.Helper()
		e.upgrade(t, op.Subject.ID, nf.UpgradeRequest{Edit: func(s *nf.Spec) error { edit(s); return nil }})
	}
	wants("both", []string{"oam/a", "lan/b", "wan/"}, "east.lan", "east.oam", "east.wan")
	change(func(s *nf.Spec) {
		s.Networks = []nf.Attachment{{Network: "dmz", Interface: "b"}, {Network: "oam", MAC: "02:00:00:00:00:09"}}
	})
	wants("the request replaces an interface, and a network", []string{"oam/a", "dmz/b"}, "east.dmz", "east.oam")
	amended, err := e.Configure(t.Context(), op.Subject.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error {
		s.Amendments = []nf.Amendment{{Name: "day2", Package: "pods.web", Inputs: nf.Inputs{Parameters: map[string]any{"networks": "none/c"}}}}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if amended = e.end(t, amended); !slices.ContainsFunc(amended.Warnings, func(w string) bool { return strings.HasPrefix(w, "amendments.day2: networks") }) {
		t.Errorf("the warnings are %q", amended.Warnings)
	}
	wants("a configuration keeps them", []string{"oam/a", "dmz/b"}, "east.dmz", "east.oam")
	if text := fmt.Sprint(s.cluster.objects["Deployment.apps/ns/web"].object.Object); strings.Count(text, `"namespace":"networks"`) != 2 {
		t.Errorf("the amended object is not attached: %s", text)
	}
	change(func(s *nf.Spec) {
		s.Inputs.Parameters, s.Networks, s.Amendments = map[string]any{"networks": "lan"}, nil, nil
	})
	wants("another package", []string{"lan/"}, "east.lan")
	back, err := e.Rollback(t.Context(), op.Subject.ID, nf.RollbackRequest{Revision: 2})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, back)
	wants("a rollback restores them", []string{"oam/a", "dmz/b"}, "east.dmz", "east.oam")
	ended, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	if got := s.networksHeld(); len(got) > 0 {
		t.Errorf("a terminated instance holds %v", got)
	}
}

// TestDeclaredNetworksInForce has an instance hold the networks that only its package
// declares: an undone change keeps them, and a removal releases them.
func TestDeclaredNetworksInForce(t *testing.T) {
	s := newSite(t)
	e := s.start()
	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	wants := func(reason string, networks ...string) {
		t.Helper()
		if diff := cmp.Diff(networks, s.networksHeld()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	first := e.up(t, "pods.web", named, declaring("oam/a"))
	wants("an instance holds the network of its package", "east.oam")
	ended, err := e.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, ended)
	wants("a terminated instance of one revision holds none")
	second := e.up(t, "pods.web", named, declaring("oam/a"))
	if op := e.upgrade(t, second.Subject.ID, onNetworks("pods.web_bad", nf.Undo, "dmz")); op.State != nf.OperationFailed || op.UndoFailure != nil {
		t.Fatalf("the upgrade is %s, its undo: %+v", op.State, op.UndoFailure)
	}
	wants("an undone upgrade keeps the network of the revision in force", "east.oam")
}

// TestDeclaredNetworkIsMissing makes a package declare a network that does not exist, or
// that the caller may not attach to. The violation names the line of the package.
func TestDeclaredNetworkIsMissing(t *testing.T) {
	s := newSite(t)
	e := s.start()
	var asked []string
	request := nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: "pods.web", Inputs: nf.Inputs{Parameters: map[string]any{"networks": "oam missing hidden"}}},
		Options: nf.Options{MayAttach: func(_ context.Context, n nf.Network, _ bool) error {
			if asked = append(asked, n.ID); n.Name == "hidden" {
				return nf.E(nf.NotFound, "get", "network "+n.ID, nil)
			}
			return nil
		}}}
	_, err := e.Instantiate(t.Context(), request)
	var got []string
	for _, v := range nf.ViolationsOf(err) {
		got = append(got, v.String())
	}
	want := []string{`list:7: networks[1].network: cloud region east has no network "missing"`, `list:7: networks[2].network: cloud region east has no network "hidden"`}
	if diff := cmp.Diff(want, got); diff != "" || nf.KindOf(err) != nf.NotFound {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"east.oam", "east.hidden"}, asked); diff != "" {
		t.Errorf("the permission was asked (-want +got):\n%s", diff)
	}
	request.Inputs.Parameters, asked = map[string]any{"networks": "oam"}, nil
	op, err := e.Instantiate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, op)
	again := onNetworks("pods.web", "", "oam", "lan")
	again.MayAttach, asked = request.MayAttach, nil
	e.upgrade(t, op.Subject.ID, again)
	if diff := cmp.Diff([]string{"east.lan"}, asked); diff != "" {
		t.Errorf("for a change, the permission was asked (-want +got):\n%s", diff)
	}
}

// creating returns attachments that create their networks.
func creating(networks ...string) []nf.Attachment {
	out := attachments(networks...)
	for i := range out {
		out[i].Create = &nf.Creation{Driver: "multus", Spec: json.RawMessage(`{"of":"request"}`)}
	}
	return out
}

// TestCreatedNetworks makes requests whose attachments create networks.
func TestCreatedNetworks(t *testing.T) {
	cases := map[string]struct {
		reason   string
		declared string
		networks []nf.Attachment
		asked    []string // of the permission: those that exist, and "+" those to create
		attached []string // with the spec
		held     []string
		wrong    string
	}{
		"Create":   {reason: "a network that is absent", networks: creating("absent"), asked: []string{"+absent"}, attached: []string{`absent {"of":"request"}`}, held: []string{"east.absent"}},
		"Join":     {reason: "one that exists and is equal", networks: creating("oam"), asked: []string{"oam", "+oam"}, attached: []string{`oam {"of":"request"}`}, held: []string{"east.oam"}},
		"Package":  {reason: "a package creates one", declared: "absent+ lan", asked: []string{"+absent", "lan"}, attached: []string{`absent {"of":"package"}`, "lan "}, held: []string{"east.absent", "east.lan"}},
		"Replaced": {reason: "a request replaces the attachment, and keeps the network of the package", declared: "absent+", networks: []nf.Attachment{{Network: "absent", MAC: "02:00:00:00:00:01"}}, asked: []string{"+absent"}, attached: []string{`absent {"of":"package"}`}, held: []string{"east.absent"}},
		"Request":  {reason: "the request decides on the network", declared: "absent+", networks: creating("absent"), asked: []string{"+absent"}, attached: []string{`absent {"of":"request"}`}, held: []string{"east.absent"}},
		"Other":    {reason: "a network that only a replaced attachment names is not created", declared: "absent+/a", networks: []nf.Attachment{{Network: "oam", Interface: "a"}}, asked: []string{"oam"}, attached: []string{"oam "}, held: []string{"east.oam"}},
		"Hidden":   {reason: "another project has a network of the name", networks: creating("hidden"), asked: []string{"hidden", "+hidden"}, wrong: "networks[0].create: a network has the name"},
		"Denied":   {reason: "the caller may not create networks", networks: creating("denied"), asked: []string{"denied", "+denied"}, wrong: "denied"},
		"Wrong":    {reason: "the field of the spec is named", networks: []nf.Attachment{{Network: "absent", Create: &nf.Creation{Spec: json.RawMessage("wrong")}}}, asked: []string{"+absent"}, wrong: "networks[0].create.spec.type: is wrong"},
		"Twice":    {reason: "a request says once how it is created", networks: append(creating("oam"), creating("oam")...), wrong: "networks[1].create: networks[0] creates the network already"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			var asked []string
			req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web", Networks: tc.networks, Inputs: nf.Inputs{Parameters: map[string]any{"networks": tc.declared}}}}
			req.MayAttach = func(_ context.Context, n nf.Network, create bool) error {
				if create {
					asked = append(asked, "+"+n.Name)
				} else {
					asked = append(asked, n.Name)
				}
				switch {
				case n.Name == "hidden" && !create:
					return nf.E(nf.NotFound, "get", "network", nil)
				case n.Name == "denied" && create:
					return nf.E(nf.Forbidden, "create", "network", errors.New("denied"))
				}
				return nil
			}
			op, err := e.Instantiate(t.Context(), req)
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("%s: the permission was asked (-want +got):\n%s", tc.reason, diff)
			}
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) || len(s.networksHeld()) > 0 {
					t.Errorf("%s: %v; it holds %v", tc.reason, err, s.networksHeld())
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if op = e.end(t, op); op.Failure != nil {
				t.Fatalf("%s: %v", tc.reason, op.Failure)
			}
			in, err := e.Instance(t.Context(), op.Subject.ID)
			if err != nil {
				t.Fatal(err)
			}
			var attached []string
			for _, a := range in.Attachments() {
				text := a.Network + " "
				if a.Create != nil {
					text += string(a.Create.Spec)
				}
				attached = append(attached, text)
			}
			if diff := cmp.Diff(tc.attached, attached); diff != "" {
				t.Errorf("%s: attached (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.held, s.networksHeld()); diff != "" {
				t.Errorf("%s: held (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
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
