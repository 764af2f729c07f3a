package openstack_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
)

const hot = `heat_template_version: 2018-08-31
description: two VDUs, of which one is a group
parameters:
  nfv: {type: json}
  label: {type: string, default: none}
resources:
  VDU1:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      desired_capacity: {get_param: [nfv, VDU, VDU1, desired_capacity]}
      resource:
        type: VDU1.yaml
        properties:
          flavor: {get_param: [nfv, VDU, VDU1, computeFlavourId]}
          image: {get_param: [nfv, VDU, VDU1, vcImageId]}
          net: {get_param: [nfv, CP, VDU1_CP1, network]}
  VDU2_CP1:
    type: OS::Neutron::Port
    properties:
      network: {get_param: [nfv, CP, VDU2_CP1, network]}
      fixed_ips:
      - ip_address: {get_param: [nfv, CP, VDU2_CP1, fixed_ips, 0, ip_address]}
  VDU2:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: [nfv, VDU, VDU2, computeFlavourId]}
      image: {get_param: [nfv, VDU, VDU2, vcImageId]}
      availability_zone: {get_param: [nfv, VDU, VDU2, locationConstraints]}
      networks: [{port: {get_resource: VDU2_CP1}}]
`

const nested = `heat_template_version: 2018-08-31
parameters:
  flavor: {type: string}
  image: {type: string}
  net: {type: string}
resources:
  VDU1:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      networks: [{port: {get_resource: VDU1_CP1}}]
  VDU1_CP1:
    type: OS::Neutron::Port
    properties:
      network: {get_param: net}
`

// stackOf returns the stack of an attempt, with a number of servers of VDU1.
func stackOf(attempt string, count int, edit ...func(*nf.Stack)) nf.Stack {
	s := nf.Stack{
		Name: "vnf-1", Attempt: attempt, Template: []byte(hot), Files: map[string][]byte{"VDU1.yaml": []byte(nested)},
		Params: nf.StackParams{
			VDUs:   map[string]nf.StackVDU{"VDU1": {Flavor: "medium", Count: count}, "VDU2": {Flavor: "medium", Zone: "nova", Count: 1}},
			Images: map[string]string{"VDU1": "debian-12", "VDU2": "debian-12"},
			Points: map[string]nf.StackPoint{"VDU1_CP1": {Network: "management"}, "VDU2_CP1": {Network: "net-2", IPs: []string{"192.0.2.9"}}},
			Given:  map[string]any{"label": "x", "other": "y"},
		},
	}
	for _, f := range edit {
		f(&s)
	}
	return s
}

// applied applies a stack, and waits until Heat has changed it.
func applied(ctx context.Context, c *openstack.Clouds, s nf.Stack) error {
	if err := c.ApplyStack(ctx, cloud(), s); err != nil {
		return err
	}
	_, err := c.AwaitStack(ctx, cloud(), s.Name, false)
	return err
}

func serversOf(t *testing.T, c *openstack.Clouds) (ids []string, all []nf.VNFC) {
	t.Helper()
	all, err := c.StackServers(t.Context(), cloud(), "vnf-1")
	must(t, err)
	for _, one := range all {
		ids = append(ids, one.Resource)
	}
	slices.Sort(ids)
	return ids, all
}

func TestStackLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.clouds()
		must(t, applied(t.Context(), c, stackOf("a", 1)))
		first, all := serversOf(t, c)
		for _, one := range all {
			network, prefix := one.VDU+"_CP1", map[string]string{"VDU1": "10.0.0.", "VDU2": "192.0.2.9"}[one.VDU]
			if len(one.Points) != 1 || one.Points[0].Point != network || one.Points[0].MAC == "" || len(one.Points[0].IPs) != 1 || !strings.HasPrefix(one.Points[0].IPs[0], prefix) || one.Workload != "OS::Nova::Server" {
				t.Errorf("%s is %+v, want a port on its network", one.VDU, one)
			}
		}
		_ = w.Journal()
		must(t, c.ApplyStack(t.Context(), cloud(), stackOf("a", 1)))
		for _, e := range w.Journal() {
			if e.Method != http.MethodGet && !strings.HasSuffix(e.URI, "/auth/tokens") {
				t.Errorf("an attempt that is repeated sends %s %s", e.Method, e.URI)
			}
		}
		must(t, applied(t.Context(), c, stackOf("b", 3)))
		scaled, _ := serversOf(t, c)
		if len(scaled) != 4 || !slices.Contains(scaled, first[0]) || !slices.Contains(scaled, first[1]) {
			t.Errorf("scaling out makes the servers %v of %v, want two more", scaled, first)
		}
		must(t, applied(t.Context(), c, stackOf("c", 3, func(s *nf.Stack) { s.Replace = []string{first[0], "gone"} })))
		healed, _ := serversOf(t, c)
		if len(healed) != 4 || slices.Contains(healed, first[0]) || !slices.Contains(healed, first[1]) {
			t.Errorf("healing makes the servers %v of %v, want %s replaced", healed, scaled, first[0])
		}
		must(t, applied(t.Context(), c, stackOf("d", 1)))
		if ids, _ := serversOf(t, c); len(ids) != 2 {
			t.Errorf("scaling in leaves %v", ids)
		}
		must(t, c.DeleteStack(t.Context(), cloud(), "vnf-1"))
		must(t, c.DeleteStack(t.Context(), cloud(), "vnf-1"))
		if _, err := c.AwaitStack(t.Context(), cloud(), "vnf-1", false); nf.KindOf(err) != nf.NotFound {
			t.Errorf("the deleted stack: %v", err)
		}
		if left := slices.Concat(w.Servers(), w.Ports(), w.Stacks()); len(left) > 0 {
			t.Errorf("%v remain", left)
		}
		must(t, c.DeleteStack(t.Context(), cloud(), "vnf-1"))
	})
}

// TestStackDeath cuts the service off at each request, before and after Heat executes it,
// and lets it continue: there is one stack, which one attempt has changed once.
func TestStackDeath(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			alive := false
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.death, w.after = at, after
				c := w.clouds()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				alive = applied(ctx, c, stackOf("a", 1)) == nil
				cancel()
				w.death = 0
				must(t, applied(t.Context(), c, stackOf("a", 1)))
				changes := 0
				for _, e := range w.Journal() {
					if e.Status < 300 && (e.Method == http.MethodPost || e.Method == http.MethodPut) && strings.Contains(e.URI, "/stacks") {
						changes++
					}
				}
				if got := w.Stacks(); changes != 1 || !slices.Equal(got, []string{"vnf-1 CREATE_COMPLETE"}) || len(w.Servers()) != 2 {
					t.Errorf("death at request %d (executed: %t): %d changes, stacks %v, servers %v", at, after, changes, got, w.Servers())
				}
			})
			if alive || t.Failed() {
				break
			}
		}
	}
}

func TestStackFaults(t *testing.T) {
	t.Parallel()
	with := func(edit func(*nf.Stack)) func(context.Context, *openstack.Clouds) error {
		return func(ctx context.Context, c *openstack.Clouds) error { return applied(ctx, c, stackOf("a", 1, edit)) }
	}
	cases := map[string]struct {
		reason string
		fault  simulator.Fault
		fail   string // the message with which VDU2 fails
		call   func(context.Context, *openstack.Clouds) error
		kind   nf.Kind
		text   string
		heals  bool // another attempt succeeds
	}{
		"Template": {reason: "it is a HOT", call: with(func(s *nf.Stack) { s.Template = []byte("a: b\n") }), kind: nf.Invalid, text: "heat_template_version"},
		"YAML":     {reason: "it is YAML", call: with(func(s *nf.Stack) { s.Template = []byte("[") }), kind: nf.Invalid, text: "not YAML"},
		"Missing":  {reason: "a value that the template uses is missing", call: with(func(s *nf.Stack) { s.Params.Images = nil }), kind: nf.Invalid, text: "additionalParams.nfv.VDU.VDU1.vcImageId: is used by the template; the node template has no sw_image_data"},
		"Network":  {reason: "a connection point has no network", call: with(func(s *nf.Stack) { delete(s.Params.Points, "VDU2_CP1") }), kind: nf.Invalid, text: "nfv.CP.VDU2_CP1.network: is used by the template; extVirtualLinks"},
		"Image":    {reason: "Heat says which resource fails", call: with(func(s *nf.Stack) { s.Params.Images["VDU2"] = "none" }), kind: nf.Failed, text: "CREATE_FAILED: Resource CREATE failed: resources.VDU2: ", heals: true},
		"File":     {reason: "Heat refuses a template that is not there", call: with(func(s *nf.Stack) { s.Files = nil }), kind: nf.Failed, text: "VDU1.yaml"},
		"Type": {reason: "and a type that it does not know", call: with(func(s *nf.Stack) {
			s.Template = []byte(strings.Replace(hot, "OS::Nova::Server", "OS::Nova::Serwer", 1))
		}), kind: nf.Failed, text: "OS::Nova::Serwer"},
		"Server": {reason: "a server that does not start fails the stack", fail: "no valid host was found", kind: nf.Failed, text: "no valid host was found", heals: true},
		"Outage": {reason: "an outage while Heat works only takes time", fault: simulator.Fault{Method: http.MethodGet, Path: "/stacks", Times: 3, Status: 503}, call: func(ctx context.Context, c *openstack.Clouds) error {
			_, err := c.AwaitStack(ctx, cloud(), "vnf-1", false)
			return err
		}, kind: nf.NotFound},
		"Refused": {reason: "a stack is not created during an outage", fault: simulator.Fault{Method: http.MethodPost, Path: "/stacks", Status: 503}, kind: nf.Unreachable, heals: true},
		"Lost":    {reason: "its response is lost", fault: simulator.Fault{Method: http.MethodPost, Path: "/stacks", Cut: true}, kind: nf.Unreachable, heals: true},
		"Login": {reason: "a wrong password", call: func(ctx context.Context, c *openstack.Clouds) error {
			o := cloud()
			o.Password = nf.Secret("x")
			return c.ApplyStack(ctx, o, stackOf("a", 1))
		}, kind: nf.Forbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c := w.clouds()
				if tc.fault.Method != "" {
					w.Script(tc.fault)
				}
				w.Fail("VDU2", tc.fail)
				call := tc.call
				if call == nil {
					call = with(func(*nf.Stack) {})
				}
				err := call(t.Context(), c)
				if nf.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: %v (%s), want %s with %q", tc.reason, err, nf.KindOf(err), tc.kind, tc.text)
				}
				wantNoSecret(t, err)
				w.Fail("VDU2", "")
				if tc.heals {
					must(t, applied(t.Context(), c, stackOf("b", 1)))
				}
			})
		})
	}
}

// TestStackStops ends a change early.
func TestStackStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.clouds()
		must(t, c.ApplyStack(t.Context(), cloud(), stackOf("a", 1)))
		if attempt, err := c.AwaitStack(t.Context(), cloud(), "vnf-1", true); attempt != "a" || nf.KindOf(err) != nf.Failed || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("the stopped creation: %q, %v", attempt, err)
		}
		must(t, applied(t.Context(), c, stackOf("b", 2)))
		must(t, c.DeleteStack(t.Context(), cloud(), "vnf-1"))
		if _, err := c.AwaitStack(t.Context(), cloud(), "vnf-1", true); nf.KindOf(err) != nf.NotFound {
			t.Errorf("a deletion is not stopped: %v", err)
		}
	})
}

// TestParameters has the values of the parameter nfv.
func TestParameters(t *testing.T) {
	t.Parallel()
	got, err := openstack.Parameters(stackOf("a", 2, func(s *nf.Stack) {
		s.Params.Given["nfv"] = map[string]any{"VDU": map[string]any{"VDU1": map[string]any{"computeFlavourId": "large"}}, "more": map[string]any{"z": 1, "none": nil}}
	}))
	must(t, err)
	want := map[string]any{"label": "x", "nfv": map[string]any{
		"VDU": map[string]any{
			"VDU1": map[string]any{"computeFlavourId": "large", "vcImageId": "debian-12", "desired_capacity": 2},
			"VDU2": map[string]any{"computeFlavourId": "medium", "vcImageId": "debian-12", "locationConstraints": "nova"},
		},
		"CP":   map[string]any{"VDU1_CP1": map[string]any{"network": "management"}, "VDU2_CP1": map[string]any{"network": "net-2", "fixed_ips": []any{map[string]any{"ip_address": "192.0.2.9"}}}},
		"more": map[string]any{"z": 1},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the parameters (-want +got):\n%s", diff)
	}
	plain, err := openstack.Parameters(nf.Stack{Template: []byte("heat_template_version: 2018-08-31\nresources: {a: {type: b}}\n")})
	if err != nil || len(plain) > 0 {
		t.Errorf("a template without parameters gets %v, %v", plain, err)
	}
}

// FuzzParameters reads any template.
func FuzzParameters(f *testing.F) {
	f.Add([]byte(hot))
	f.Add([]byte("heat_template_version: 1\nparameters: {nfv: {}}\nresources: {a: {get_param: [nfv, CP, a, fixed_ips, 0]}, b: {get_param: [nfv, CP, a, fixed_ips]}}\n"))
	f.Add([]byte("heat_template_version: 1\nparameters: {nfv: {}}\nresources: {a: [{get_param: [nfv, VDU, a, b, c]}, {get_param: [nfv, VDU, a, b]}]}\n"))
	f.Fuzz(func(t *testing.T, template []byte) {
		got, err := openstack.Parameters(stackOf("a", 1, func(s *nf.Stack) { s.Template = template }))
		if err != nil && nf.KindOf(err) != nf.Invalid {
			t.Errorf("the error is %v", err)
		}
		if err == nil && got == nil {
			t.Error("there are no parameters")
		}
	})
}
