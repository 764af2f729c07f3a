package lifecycle_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestConnectionPoints makes requests with network parameters in the form of the first
// version of the API.
func TestConnectionPoints(t *testing.T) {
	point := func(fields ...string) map[string]any {
		out := map[string]any{}
		for _, f := range fields {
			name, value, _ := strings.Cut(f, "=")
			out[name] = value
		}
		return out
	}
	cases := map[string]struct {
		reason   string
		network  map[string]any
		declared string
		networks []nf.Attachment
		attached []nf.Attachment
		warning  string
		wrong    string
	}{
		"Attach":   {reason: "a connection point that is a network", network: map[string]any{"oam_ip": point("connection_point=oam", "ip_address=10.1.0.9", "workload_name=web")}, attached: []nf.Attachment{{Network: "oam", Workload: "web", IPs: []string{"10.1.0.9"}}}},
		"Id":       {reason: "the id of a network", network: map[string]any{"b": point("connection_point=east.oam"), "a": point("connection_point=lan")}, attached: []nf.Attachment{{Network: "lan"}, {Network: "oam"}}},
		"Variable": {reason: "no network of the name", network: map[string]any{"a": point("connection_point=missing", "workload_name=web")}, warning: `network_parameters.a: cloud region east has no network "missing", so that this is only a variable`},
		"NoName":   {reason: "what cannot be a network", network: map[string]any{"a": point("connection_point=A b", "workload_name=web")}, warning: `network_parameters.a: cloud region east has no network "A b", so that this is only a variable`},
		"Hidden":   {reason: "a network that the caller does not see", network: map[string]any{"a": point("connection_point=hidden", "workload_name=web")}, warning: `network_parameters.a: cloud region east has no network "hidden", so that this is only a variable`},
		"Neither":  {reason: "no network and no workload", network: map[string]any{"a": point("connection_point=missing", "ip_address=10.1.0.9")}},
		"Others":   {reason: "parameters of other forms", network: map[string]any{"a": "oam", "b": point("connection_point=oam", "vlan=1"), "c": point("ip_address=10.1.0.9"), "d": map[string]any{"connection_point": 1.0}}},
		"Workload": {reason: "a workload that is not there", network: map[string]any{"a": point("connection_point=oam", "workload_name=db")}, wrong: "network_parameters.a.workload_name:"},
		"Address":  {reason: "an address that the driver refuses", network: map[string]any{"a": point("connection_point=lan", "ip_address=none")}, wrong: "network_parameters.a.ip_address:"},
		"Replaces": {reason: "it replaces that of the package", network: map[string]any{"a": point("connection_point=oam", "ip_address=10.1.0.9")}, declared: "oam/a", attached: []nf.Attachment{{Network: "oam", Interface: "a", IPs: []string{"10.1.0.9"}}}},
		"Replaced": {reason: "networks decides", network: map[string]any{"a": point("connection_point=oam", "ip_address=10.1.0.9")}, networks: attachments("oam"), attached: attachments("oam")},
		"Created":  {reason: "the package creates the network", network: map[string]any{"a": point("connection_point=absent", "ip_address=10.1.0.9")}, declared: "absent+", attached: []nf.Attachment{{Network: "absent", IPs: []string{"10.1.0.9"}, Create: &nf.Creation{Driver: "multus", Spec: json.RawMessage(`{"of":"package"}`)}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web", Networks: tc.networks, Inputs: nf.Inputs{Network: tc.network, Parameters: map[string]any{"networks": tc.declared}}}}
			req.MayAttach = func(_ context.Context, n nf.Network, _ bool) error {
				if n.Name == "hidden" {
					return nf.E(nf.NotFound, "get", "network", nil)
				}
				return nil
			}
			op, err := e.Instantiate(t.Context(), req)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			op = e.end(t, op)
			in, err := e.Instance(t.Context(), op.Subject.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.attached, in.Attachments()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			about := slices.DeleteFunc(op.Warnings, func(w string) bool { return !strings.HasPrefix(w, "network_parameters") })
			if diff := cmp.Diff(tc.warning, strings.Join(about, "; ")); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.network, in.Inputs.Network); diff != "" {
				t.Errorf("%s: the parameters remain (-want +got):\n%s", tc.reason, diff)
			}
			configured, err := e.Configure(t.Context(), op.Subject.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error {
				s.Annotations = map[string]string{"a": "b"}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, configured)
			if in, err = e.Instance(t.Context(), op.Subject.ID); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.attached, in.Attachments()); diff != "" {
				t.Errorf("%s: a configuration keeps the attachments (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
