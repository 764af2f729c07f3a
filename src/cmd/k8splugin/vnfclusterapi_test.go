package main

import (
	"encoding/base64"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestVNFOfClusterAPI instantiates a VNF whose VNF package has a cluster of Cluster API: it
// becomes a VIM, which another VNF runs on, and goes with its VNF.
func TestVNFOfClusterAPI(t *testing.T) {
	t.Parallel()
	const ns, region = "clusters", "edge-vnf"
	management, workload := secondPlane(t), secondPlane(t)
	clustertest.RunClusters(t, management, ns, workload)
	s := vnfs{startBareService(t, func(cfg *Config) { cfg.MaxPackage = 8 << 20 }), t}
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "management", "kubeconfig": base64.StdEncoding.EncodeToString(management)}))
	native := edgePackage("small")
	s.upload("cluster-native", native)
	workloads := []any{map[string]any{"cluster": "edge", "cloud_region_id": region, "ready_when": "usable"}}
	s.becomeManagement(t, map[string]any{"cloud_region_id": "management", "csar_id": "cluster-native", "namespace": ns, "workload_clusters": workloads})

	artifacts := map[string]string{}
	for name, content := range native {
		if name != "metadata.yaml" {
			artifacts["Files/kubernetes/"+name] = content
		}
	}
	files := csartest.Files(artifacts)
	files["Definitions/top.yaml"] = strings.ReplaceAll(files["Definitions/top.yaml"], csartest.VNFD, clusterVNFD)
	files["sample.mf"] = csartest.Manifest(without(files, "sample.mf"))
	s.upload("cluster", files)
	s.upload("web", csartest.Scaled(map[string]string{"Files/kubernetes/web.yaml": webWorkload}))
	vim := func(of string) map[string]any {
		return map[string]any{"vim1": map[string]any{"vimId": nf.Region{ID: of}.VIMID(), "vimType": "ETSINFV.KUBERNETES.V_1"}}
	}
	a, b := s.create(clusterVNFD), s.create(csartest.VNFD)
	s.begin(a+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": vim("management"), "additionalParams": map[string]any{"namespace": ns, "workload_clusters": workloads},
	}, nf.OccurrenceCompleted)
	made := s.ask(http.StatusOK, "GET", a, nil)
	if made.text(t, "vimConnectionInfo."+region+".vimId") != (nf.Region{ID: region}).VIMID() || made.text(t, "vimConnectionInfo."+region+".interfaceInfo.endpoint") == "" {
		t.Errorf("the connections of the VNF are %s", made.body)
	}
	s.begin(b+"/instantiate", map[string]any{"flavourId": "simple", "vimConnectionInfo": vim(region), "additionalParams": map[string]any{"namespace": "apps"}}, nf.OccurrenceCompleted)
	s.ask(http.StatusConflict, "POST", a+"/terminate", map[string]any{"terminationType": "GRACEFUL"})
	s.begin(b+"/terminate", map[string]any{"terminationType": "GRACEFUL"}, nf.OccurrenceCompleted)
	s.begin(a+"/terminate", map[string]any{"terminationType": "GRACEFUL"}, nf.OccurrenceCompleted)
	s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/"+region, nil))
}

// without returns files without one.
func without(files map[string]string, name string) map[string]string {
	files = maps.Clone(files)
	delete(files, name)
	return files
}
