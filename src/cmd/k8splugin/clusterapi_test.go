package main

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestClusterBecomesARegion tells the whole story of a cluster of Cluster API, with three
// control planes. An empty one becomes a management cluster by a package of the providers,
// with the definitions, controllers, rights and webhooks of their modules. An instance
// there creates a cluster, which becomes a region; an instance on it brings its CNI plugin,
// and another one runs there. The cluster is scaled and updated, its credentials are
// rotated, and it goes with everything on it. Then the providers go.
func TestClusterBecomesARegion(t *testing.T) {
	t.Parallel()
	const ns, region = "clusters", "edge-1"
	management, workload := secondPlane(t), secondPlane(t)
	machines := clustertest.RunClusters(t, management, ns, workload)
	received := newReceiver(t)
	s := startBareService(t, func(cfg *Config) { cfg.CallbackAllow, cfg.MaxPackage = "127.0.0.1", 8<<20 })
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "management", "kubeconfig": base64.StdEncoding.EncodeToString(management),
	}))
	s.upload("cluster", edgePackage("small"))
	s.upload("cluster-2", edgePackage("large"))
	s.upload("cni", map[string]string{"metadata.yaml": "resources: {daemonset: [d.yaml]}\n", "d.yaml": cniPlugin})
	s.upload("web", web("registry.example.com/web:1"))
	cluster := map[string]any{
		"cloud_region_id": "management", "csar_id": "cluster", "namespace": ns,
		"workload_clusters": []any{map[string]any{"cluster": "edge", "cloud_region_id": region, "hand_over": received.url}},
	}
	providers := s.becomeManagement(t, cluster)

	up := s.want(http.StatusAccepted, s.async("POST", "/v1/vnf_instances", cluster))
	id := up.text(t, "vnf_id")
	got := s.untilRegion(region)
	if origin, parent := got.text(t, "origin"), got.text(t, "parent.cluster"); origin != "cluster" || parent != "edge" {
		t.Errorf("the region is %s", got.body)
	}
	labels := map[string]any{nf.ParentRegionLabel: "management", nf.ParentNamespaceLabel: ns, nf.ParentClusterLabel: "edge"}
	if diff := cmp.Diff(labels, got.field(t, "labels")); diff != "" {
		t.Errorf("labels of the region (-want +got):\n%s", diff)
	}
	if op := s.do("GET", "/v1/operations/"+up.text(t, "operation_id"), nil); op.text(t, "state") != "running" {
		t.Errorf("nodes without a CNI plugin are not ready: %s", op.body)
	}

	s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": region, "csar_id": "cni", "namespace": "network"}))
	if op := s.operation(up.text(t, "operation_id")); op.text(t, "state") != "succeeded" {
		t.Fatalf("the cluster is not ready: %s", op.body)
	}
	vnf := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": region, "csar_id": "web", "namespace": "apps"})).text(t, "vnf_id")
	s.change(t, id, machines)
	s.rotate(t, region, machines, workload, received)

	refused := s.want(http.StatusConflict, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
	if !strings.Contains(string(refused.body), vnf) {
		t.Errorf("the refusal does not name the instance %s: %s", vnf, refused.body)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id+"?cascade=true", nil))
	for _, gone := range []string{"/v1/vnf_instances/" + id, "/v1/vnf_instances/" + vnf, "/v1/cloud_regions/" + region} {
		s.want(http.StatusNotFound, s.do("GET", gone, nil))
	}
	steps := machines.Steps()
	if last := steps[max(len(steps)-4, 0):]; !slices.Equal(last, []string{"delete machinedeployments", "delete kubeadmcontrolplanes", "delete devclusters", "delete cluster edge"}) {
		t.Errorf("the machines went in the order %v", last)
	}
	if machines.HasTemplate("large") {
		t.Error("the template remains")
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+providers, nil))
	s.want(http.StatusUnprocessableEntity, s.do("POST", "/v1/vnf_instances", cluster))
}

// change scales the cluster of an instance, and then replaces the template of its machines.
func (s *testService) change(t *testing.T, id string, machines *clustertest.ClusterController) {
	t.Helper()
	s.want(http.StatusOK, s.do("POST", "/v1/vnf_instances/"+id+"/scale", map[string]any{"workloads": []any{
		map[string]any{"workload": "MachineDeployment/edge", "replicas": 3}, map[string]any{"workload": "KubeadmControlPlane/edge", "replicas": 3},
	}}))
	s.settled(id)
	if n := machines.Machines("edge"); n != 3 {
		t.Errorf("after the scaling there are %d machines", n)
	}
	s.want(http.StatusOK, s.do("PATCH", "/v1/vnf_instances/"+id, map[string]any{"csar_id": "cluster-2"}))
	s.settled(id)
	if machines.HasTemplate("small") || !machines.HasTemplate("large") {
		t.Error("the upgrade has not replaced the template of the machines")
	}
}

// rotate replaces the Secret of the cluster and revokes the token of the region. The
// service gives it a new one by itself, at the first request that the region rejects.
func (s *testService) rotate(t *testing.T, region string, machines *clustertest.ClusterController, kubeconfig []byte, received *receiver) {
	t.Helper()
	first := received.wait(t, 1)
	access, err := cluster.Parse(nf.Secret(first.Kubeconfig))
	if err != nil {
		t.Fatalf("the kubeconfig that was handed over cannot be used: %v", err)
	}
	if len(access.Token) == 0 || len(access.Certificate) > 0 {
		t.Error("the region has the credentials of the administrator")
	}
	for _, path := range []string{"/v1/cloud_regions/" + region, "/v1/operations", "/v1/audit"} {
		if strings.Contains(string(s.do("GET", path, nil).body), string(access.Token)) {
			t.Errorf("%s shows the token", path)
		}
	}
	bin := filepath.Join(os.Getenv("K8SPLUGIN_SANDBOX_BIN"), "kubectl")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), bin, "--kubeconfig", file, "-n", "k8splugin-region", "delete", "secret", "k8splugin").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	machines.Rotate(append(slices.Clone(kubeconfig), "# rotated\n"...))
	for n := 0; !received.has(2) && n < 6000; n++ { // the API server remembers a token for some seconds
		s.do("POST", "/v1/vnf_instances?dry_run=true", map[string]any{"cloud_region_id": region, "csar_id": "web", "namespace": "apps-2"})
		delay.For(t.Context(), 50*time.Millisecond, nil)
	}
	second := received.wait(t, 2)
	if second.Region != region || string(second.Kubeconfig) == string(first.Kubeconfig) {
		t.Errorf("the new credentials of %s were not handed over", second.Region)
	}
	if state := s.want(http.StatusOK, s.do("POST", "/v1/vnf_instances?dry_run=true", map[string]any{"cloud_region_id": region, "csar_id": "web", "namespace": "apps-2"})); state.status != http.StatusOK {
		t.Errorf("the region cannot be used with the new credentials: %s", state.body)
	}
}

// untilRegion returns a region once it is registered.
func (s *testService) untilRegion(id string) answer {
	s.t.Helper()
	for n := 0; s.t.Context().Err() == nil && !s.t.Failed() && n < 6000; n++ {
		if got := s.do("GET", "/v1/cloud_regions/"+id, nil); got.status == http.StatusOK {
			return got
		}
		delay.For(s.t.Context(), 50*time.Millisecond, nil)
	}
	s.t.Fatalf("region %s was not registered", id)
	return answer{}
}

// settled waits until no operation runs on an instance, whose last one has succeeded.
func (s *testService) settled(id string) {
	s.t.Helper()
	op := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id, nil)).text(s.t, "operation_id")
	if done := s.operation(op); done.text(s.t, "state") != "succeeded" {
		s.t.Fatalf("the operation has failed: %s", done.body)
	}
}

// secondPlane starts another sandbox until the test ends, and returns its kubeconfig.
func secondPlane(t *testing.T) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plane")
	run := func(args ...string) {
		cmd := exec.Command("go", append([]string{"run", "../sandbox"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sandbox %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() { run("down", "--dir", dir) })
	run("up", "--dir", dir, "--nodes", "2")
	kubeconfig, err := os.ReadFile(filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// receiver is a server that kubeconfigs are handed over to.
type receiver struct {
	url string

	mu  sync.Mutex
	got []handedOver
}

type handedOver struct {
	Region     string `json:"cloud_region_id"`
	Kubeconfig []byte `json:"kubeconfig"`
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var one handedOver
		if err := json.NewDecoder(req.Body).Decode(&one); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, one)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// has reports whether n requests have arrived.
func (r *receiver) has(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got) >= n
}

// wait returns the nth request.
func (r *receiver) wait(t *testing.T, n int) handedOver {
	t.Helper()
	for range 1200 {
		if r.has(n) {
			break
		}
		delay.For(t.Context(), 50*time.Millisecond, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) < n {
		t.Fatalf("kubeconfig %d was not handed over", n)
	}
	return r.got[n-1]
}

// edgePackage is a package with a Cluster of the provider for tests, in memory: one file for
// each kind.
func edgePackage(template string) map[string]string {
	files := map[string]string{}
	for doc := range strings.SplitSeq(strings.ReplaceAll(edgeCluster, "TEMPLATE", template), "---\n") {
		_, rest, _ := strings.Cut(doc, "kind: ")
		kind, _, _ := strings.Cut(rest, "\n")
		files[strings.ToLower(kind)+".yaml"] += "---\n" + doc
	}
	metadata := "resources:\n"
	for _, file := range slices.Sorted(maps.Keys(files)) {
		metadata += "  " + strings.TrimSuffix(file, ".yaml") + ": [" + file + "]\n"
	}
	files["metadata.yaml"] = metadata
	return files
}

const edgeCluster = `apiVersion: v1
kind: Secret
metadata: {name: edge-credentials}
stringData: {user: edge}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: edge}
spec:
  clusterNetwork:
    pods: {cidrBlocks: [10.244.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: edge}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: edge}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevCluster
metadata: {name: edge}
spec: {backend: {inMemory: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: edge}
spec:
  replicas: 1
  version: v1.36.0
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: plane}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: plane}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: TEMPLATE}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: workers}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock"}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: edge}
spec:
  clusterName: edge
  replicas: 2
  selector: {matchLabels: {pool: workers}}
  template:
    metadata: {labels: {pool: workers}}
    spec:
      clusterName: edge
      version: v1.36.0
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: workers}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: TEMPLATE}
`

const cniPlugin = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cni, labels: {cni: "true"}}
spec:
  selector: {matchLabels: {app: cni}}
  template:
    metadata: {labels: {app: cni}}
    spec: {containers: [{name: cni, image: registry.example.com/cni:1}]}
`
