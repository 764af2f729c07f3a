package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// webFlavor is a deployment flavor with one VDU, which can have one to three pods.
const webFlavor = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml]
topology_template:
  substitution_mappings:
    node_type: example.VNF
    properties: {flavour_id: simple}
  node_templates:
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: web, description: web, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}}
  policies:
  - scaling_aspects:
      type: tosca.policies.nfv.ScalingAspects
      properties: {aspects: {front: {name: front, description: pods, max_scale_level: 2, step_deltas: [delta_1]}}}
  - initial:
      type: tosca.policies.nfv.VduInitialDelta
      properties: {initial_delta: {number_of_instances: 1}}
      targets: [VDU1]
  - deltas:
      type: tosca.policies.nfv.VduScalingAspectDeltas
      properties: {aspect: front, deltas: {delta_1: {number_of_instances: 1}}}
      targets: [VDU1]
`

const webWorkload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: example.com/web:1}]}
`

// TestVNFLife creates a VNF, instantiates, scales, heals and terminates it with the engine
// and a real API server, and deletes it.
func TestVNFLife(t *testing.T) {
	t.Parallel()
	s := startService(t)
	files := csartest.Files(map[string]string{"Files/kubernetes/web.yaml": webWorkload})
	delete(files, "sample.mf")
	files["Definitions/df_simple.yaml"] = webFlavor
	files["sample.mf"] = csartest.Manifest(files)
	s.upload("web", files)
	ctx, ns, m := t.Context(), clustertest.Namespace(t), s.parts.sol003
	v, err := m.Create(ctx, nf.VNF{Name: "web", VNFD: nf.VNFD{ID: csartest.VNFD}})
	if err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusConflict, s.do("DELETE", "/v1/packages/web", nil))
	ends := func(what string, o nf.Occurrence, err error) nf.VNF {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for o.State.Running() {
			delay.For(ctx, 100*time.Millisecond, nil)
			if o, err = m.Occurrence(ctx, o.ID); err != nil {
				t.Fatal(err)
			}
		}
		if o.State != nf.OccurrenceCompleted {
			t.Fatalf("%s ended %s: %+v", what, o.State, o.Failure)
		}
		v, err := m.VNF(ctx, o.VNF)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	vim := map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "sandbox"}.VIMID()}}
	o, err := m.Instantiate(ctx, v.ID, nf.InstantiateVNFRequest{Flavor: "simple", VIMs: vim, VNFRequest: nf.VNFRequest{Extra: map[string]any{
		"namespace": ns, "lcm-kubernetes-def-files": []any{"Files/kubernetes/web.yaml"},
	}}})
	v = ends("the instantiation", o, err)
	if in := v.Instantiated; in == nil || len(in.VNFCs) != 1 || in.VNFCs[0].VDU != "VDU1" || in.VNFCs[0].Workload != "Deployment" || in.Namespace != ns || in.MaxScale["front"] != 2 {
		t.Errorf("the VNF is %+v", in)
	}
	s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+v.ID, nil))
	o, err = m.Scale(ctx, v.ID, nf.ScaleVNFRequest{Aspect: "front", Steps: 2})
	if v = ends("the scaling", o, err); len(v.Instantiated.VNFCs) != 3 || v.Instantiated.Scale["front"] != 2 {
		t.Errorf("the scaled VNF is %+v", v.Instantiated)
	}
	former := v.Instantiated.VNFCs[0].ID()
	o, err = m.Heal(ctx, v.ID, nf.HealVNFRequest{VNFCs: []string{former}})
	if v = ends("the heal", o, err); len(v.Instantiated.VNFCs) != 3 {
		t.Errorf("the healed VNF is %+v", v.Instantiated)
	}
	for _, c := range v.Instantiated.VNFCs {
		if c.ID() == former {
			t.Errorf("%s was not replaced", former)
		}
	}
	for name, text := range files {
		files[name] = strings.ReplaceAll(text, csartest.VNFD, otherVNFD)
	}
	files["Files/kubernetes/web.yaml"] = strings.Replace(webWorkload, "replicas: 1", "replicas: 2", 1)
	delete(files, "sample.mf")
	files["sample.mf"] = csartest.Manifest(files)
	s.upload("web-2", files)
	o, err = m.ChangePackage(ctx, v.ID, nf.ChangeVNFPackageRequest{VNFD: otherVNFD})
	if v = ends("the change of the package", o, err); len(v.Instantiated.VNFCs) != 4 || v.Instantiated.Scale["front"] != 2 {
		t.Errorf("with the new package, two steps and two pods, the VNF is %+v", v.Instantiated)
	}
	o, err = m.Scale(ctx, v.ID, nf.ScaleVNFRequest{In: true, Aspect: "front", Steps: 2})
	if v = ends("the scaling in", o, err); len(v.Instantiated.VNFCs) != 2 || v.Instantiated.Scale["front"] != 0 {
		t.Errorf("without steps, the VNF is %+v", v.Instantiated)
	}
	o, err = m.Terminate(ctx, v.ID, nf.TerminateVNFRequest{})
	if v = ends("the termination", o, err); v.Instantiated != nil {
		t.Errorf("the terminated VNF is %+v", v)
	}
	s.want(http.StatusNotFound, s.do("GET", "/v1/vnf_instances/"+v.ID, nil))
	if err := m.Delete(ctx, v.ID); err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/packages/web", nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/packages/web-2", nil))
}
