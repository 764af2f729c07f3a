//go:build tacker

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// kindCSAR is a CSAR whose objects are of one sort.
type kindCSAR struct {
	reason    string
	artifacts map[string]string
	params    map[string]any // without the namespace
	namespace string         // default: a new one
	objects   []string       // kinds that the instance has
}

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// TestTackerClientKinds instantiates, heals and terminates a VNF of each sort of CSAR with
// the real client and both versions: manifests, a chart, custom resources with their
// definition, and a cluster of Cluster API.
func TestTackerClientKinds(t *testing.T) {
	t.Parallel()
	clustertest.ClusterAPI(t, filepath.Join("..", "..", "..", "tools", "clusterapi"))
	s := startService(t)
	clusters := clustertest.Namespace(t)
	clustertest.RunClusters(t, clustertest.Kubeconfig(t), clusters, clustertest.Kubeconfig(t))
	s.upload("cni", map[string]string{"metadata.yaml": "resources: {daemonset: [d.yaml]}\n", "d.yaml": cniPlugin})
	s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "cni", "namespace": clustertest.Namespace(t)}))
	const file, chart = "Files/kubernetes/objects.yaml", "Files/kubernetes/web-1.0.0.tgz"
	group := clustertest.Namespace(t) + ".example.org" // definitions are cluster-wide: one for each run
	named := func(paths ...string) map[string]any { return map[string]any{"lcm-kubernetes-def-files": paths} }
	cases := map[string]kindCSAR{
		"Manifests": {
			reason:    "several objects in one file",
			artifacts: map[string]string{file: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n---\n" + vnfWorkload},
			params:    named(file), objects: []string{"Deployment", "Service"},
		},
		"Chart": {
			reason: "a chart with a workload and a value",
			artifacts: map[string]string{chart: string(rendertest.TarGz(map[string]string{
				"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/values.yaml": "level: low\n", "web/templates/web.yaml": vnfWorkload,
				"web/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-config}\ndata: {level: {{ .Values.level }}}\n",
			}))},
			params: map[string]any{"helm_chart_path": chart}, objects: []string{"ConfigMap", "Deployment"},
		},
		"Custom": {
			reason: "the definition and a resource of it in one package",
			artifacts: map[string]string{
				"Files/kubernetes/definition.yaml": strings.ReplaceAll(gadgets, "GROUP", group),
				file:                               "apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: one}\nspec: {size: 1}\n",
			},
			params: named("Files/kubernetes/definition.yaml", file), objects: []string{"CustomResourceDefinition", "Gadget"},
		},
		"Cluster": {
			reason:    "a cluster that becomes ready when its machines do",
			artifacts: map[string]string{file: strings.ReplaceAll(edgeCluster, "TEMPLATE", "small")},
			params:    named(file), namespace: clusters, objects: []string{"Cluster", "DevCluster", "KubeadmControlPlane", "MachineDeployment"},
		},
	}
	for name, tc := range cases {
		vnfd := nf.UUIDOf("k8splugin.io/tacker/" + name)
		s.onboard(renamed(csartest.Files(tc.artifacts), vnfd))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, major := range []string{"1", "2"} {
				newVNFClient(t, s, major).kind(s, vnfd, tc)
			}
		})
	}
}

// kind instantiates, heals and terminates a VNF.
func (c vnfClient) kind(s *testService, vnfd string, k kindCSAR) {
	c.t.Helper()
	vnf := fmt.Sprint(c.shown(k.reason, "vnflcm", "create", vnfd, "--name", "kind-v"+c.major)["ID"])
	request := map[string]any{"flavourId": "simple", "vimConnectionInfo": c.vims(), "additionalParams": k.params}
	k.params["namespace"] = k.namespace
	if k.namespace == "" {
		k.params["namespace"] = clustertest.Namespace(c.t)
	}
	c.run(k.reason, 0, "vnflcm", "instantiate", vnf, c.file(request))
	c.last(s, vnf, nf.OccurrenceCompleted)
	if shown := fmt.Sprint(c.shown(k.reason, "vnflcm", "show", vnf)); !strings.Contains(shown, "INSTANTIATED") || strings.Contains(shown, "NOT_INSTANTIATED") {
		c.t.Errorf("%s: the VNF is %s", k.reason, shown)
	}
	kinds := s.objectsOf(vnf)
	for _, kind := range k.objects {
		if !strings.HasPrefix(kinds[kind], "Current") {
			c.t.Errorf("%s: %s is %q in %v", k.reason, kind, kinds[kind], kinds)
		}
	}
	c.run(k.reason, 0, "vnflcm", "heal", vnf)
	c.last(s, vnf, nf.OccurrenceCompleted)
	c.run(k.reason, 0, "vnflcm", "terminate", vnf)
	c.last(s, vnf, nf.OccurrenceCompleted)
	c.run(k.reason, 0, "vnflcm", "delete", vnf)
}

// TestTackerClientPages lists more VNFs and packages than a page has: the client follows
// the links.
func TestTackerClientPages(t *testing.T) {
	t.Parallel()
	const many = 101
	s := startBareService(t)
	c := newVNFClient(t, s, "1")
	s.onboard(csartest.Files(map[string]string{"Files/a.yaml": sampleConfig}))
	for range many {
		s.want(http.StatusCreated, s.do("POST", "/vnfpkgm/v1/vnf_packages", map[string]any{}))
		s.want(http.StatusCreated, s.send(t.Context(), "POST", "/vnflcm/v1/vnf_instances", map[string]any{"vnfdId": csartest.VNFD}, "Version", "1.3.0", "Content-Type", "application/json"))
	}
	if got := c.column("all packages", "Id"); len(got) != many+1 {
		t.Errorf("the client lists %d packages, want %d", len(got), many+1)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(c.run("all VNFs", 0, "vnflcm", "list", "-f", "json")), &rows); err != nil || len(rows) != many {
		t.Errorf("the client lists %d VNFs, want %d: %v", len(rows), many, err)
	}
}

// TestTackerClientAlarms has the client show and acknowledge the alarm of a component whose
// image another client has replaced by one that does not exist.
func TestTackerClientAlarms(t *testing.T) {
	t.Parallel()
	s := startService(t)
	c := newVNFClient(t, s, "2")
	s.onboard(csartest.Scaled(map[string]string{vnfManifest: strings.Replace(vnfWorkload, "spec: {", "spec: {strategy: {type: Recreate}, ", 1)}))
	params := map[string]any{"lcm-kubernetes-def-files": []string{vnfManifest}}
	vnf := c.instantiated("a VNF", c.instantiation(params))
	c.last(s, vnf, nf.OccurrenceCompleted)
	clustertest.Unblock(t, fmt.Sprint(params["namespace"]), "web", "sandbox.invalid/no-such-image:1")
	var rows []map[string]any
	until(t, "the alarm is raised", func() bool {
		err := json.Unmarshal([]byte(c.run("alarms", 0, "vnffm", "alarm", "list", "-f", "json", "--filter", "(eq,managedObjectId,"+vnf+")")), &rows)
		return err == nil && len(rows) == 1
	})
	id := fmt.Sprint(rows[0]["ID"])
	if shown := c.shown("the alarm", "vnffm", "alarm", "show", id); shown["Ack State"] != "UNACKNOWLEDGED" || shown["Perceived Severity"] != "CRITICAL" {
		t.Errorf("the alarm is %v", shown)
	}
	c.run("it is acknowledged", 0, "vnffm", "alarm", "update", "--ack-state", "ACKNOWLEDGED", id)
	if shown := c.shown("the alarm", "vnffm", "alarm", "show", id); shown["Ack State"] != "ACKNOWLEDGED" {
		t.Errorf("the alarm is %v", shown)
	}
	c.run("the VNF is terminated", 0, "vnflcm", "terminate", "--termination-type", "FORCEFUL", "--D", vnf)
}

// TestTackerClientServers runs the client with a VNF of virtual machines on a simulated
// OpenStack cloud, with both versions.
func TestTackerClientServers(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	cloud, vim := startCloud(t, s)
	s.onboard(serverCSAR(t))
	for _, major := range []string{"1", "2"} {
		c := newVNFClient(t, s, major)
		request, point := onServers(vim), map[string]any{"cpdId": "VDU1_CP1", "cpConfig": map[string]any{"one": map[string]any{}}}
		if major == "1" {
			request["vimConnectionInfo"] = []any{map[string]string{"id": "vim1", "vimId": vim, "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}}
			point["cpConfig"] = []any{map[string]any{}}
		}
		request["extVirtualLinks"] = []any{map[string]any{"id": "link", "resourceId": "provider", "extCps": []any{point}}}
		vnf := c.instantiated("on a cloud", c.file(request))
		c.last(s, vnf, nf.OccurrenceCompleted)
		if shown := fmt.Sprint(c.shown("it has a server", "vnflcm", "show", vnf)); !strings.Contains(shown, "OS::Nova::Server") || !strings.Contains(shown, "192.0.2.") {
			t.Errorf("the VNF is %s", shown)
		}
		c.run("scale out", 0, "vnflcm", "scale", "--type", "SCALE_OUT", "--aspect-id", "front", vnf)
		c.last(s, vnf, nf.OccurrenceCompleted)
		former := c.components(s, vnf)
		c.run("heal", 0, "vnflcm", "heal", vnf, "--vnfc-instance", former[0])
		c.last(s, vnf, nf.OccurrenceCompleted)
		if now := c.components(s, vnf); len(now) != 2 || slices.Contains(now, former[0]) {
			t.Errorf("the components are %v, want two, and %s replaced", now, former[0])
		}
		c.run("terminate", 0, "vnflcm", "terminate", "--D", vnf)
		if left := slices.Concat(cloud.Stacks(), cloud.Servers(), cloud.Ports()); len(left) > 0 {
			t.Errorf("%v remain", left)
		}
	}
}
