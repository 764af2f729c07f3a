package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestVNFInDescribedVIM instantiates a VNF in a VIM that the request describes. Modifications
// and changes of the package may describe it again.
func TestVNFInDescribedVIM(t *testing.T) {
	t.Parallel()
	s := vnfs{startBareService(t), t}
	s.upload("web", csartest.Scaled(map[string]string{"Files/kubernetes/web.yaml": webWorkload}))
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	described := func(server, token string) map[string]any {
		return map[string]any{"vim1": map[string]any{
			"vimType":       "ETSINFV.KUBERNETES.V_1",
			"interfaceInfo": map[string]string{"endpoint": server, "ssl_ca_cert": string(access.CA)},
			"accessInfo":    map[string]string{"bearer_token": token},
		}}
	}
	connected := func(token string) map[string]any { return described(access.Server, token) }
	vnf, token := s.create(csartest.VNFD), string(access.Token)
	s.begin(vnf+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": connected(token), "additionalParams": map[string]any{"namespace": clustertest.Namespace(t)},
	}, nf.OccurrenceCompleted)
	vim := func() string { return s.ask(http.StatusOK, "GET", vnf, nil).text(t, "vimConnectionInfo.vim1.vimId") }
	made := vim()
	modify := func(status int, connections map[string]any) answer {
		return s.ask(status, "PATCH", vnf, map[string]any{"vnfInstanceName": "web", "vimConnectionInfo": connections})
	}
	refused := modify(http.StatusBadGateway, connected("s3cret-wrong"))
	if strings.Contains(string(refused.body), "s3cret-wrong") {
		t.Errorf("the refusal has the token: %s", refused.body)
	}
	modify(http.StatusConflict, described(strings.Replace(access.Server, "127.0.0.1", "localhost", 1), token))
	if regions := s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions", nil)); strings.Count(string(regions.body), `"cloud_region_id"`) != 1 {
		t.Errorf("a VNF that is not moved registers a VIM: %s", regions.body)
	}
	for _, connections := range []map[string]any{
		connected(token), {"vim1": map[string]any{"vimType": "ETSINFV.KUBERNETES.V_1", "extra": map[string]any{"rack": "r1"}}}, // of the second one, only the data changes
	} {
		at := modify(http.StatusAccepted, connections).header.Get("Location")
		s.ends(at[strings.LastIndex(at, "/")+1:], nf.OccurrenceCompleted)
	}
	changed := s.begin(vnf+"/change_vnfpkg", map[string]any{"vnfdId": csartest.VNFD, "vimConnectionInfo": connected(token), "additionalParams": map[string]any{}}, nf.OccurrenceCompleted)
	if strings.Contains(string(changed.body), token) {
		t.Errorf("the occurrence has the token: %s", changed.body)
	}
	if now, rack := vim(), s.ask(http.StatusOK, "GET", vnf, nil).text(t, "vimConnectionInfo.vim1.extra.rack"); now != made || rack != "r1" {
		t.Errorf("the VIM is %s in rack %q, want %s in r1", now, rack, made)
	}
	s.begin(vnf+"/terminate", map[string]any{"terminationType": "FORCEFUL"}, nf.OccurrenceCompleted)
}
