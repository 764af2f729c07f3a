package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// The descriptors of the samples of CSARs.
const clusterVNFD = "4f4b9a2e-6a0c-4f3d-9c51-0d2f6c1e7a01"

// vnfs is the API of VNFs of a service.
type vnfs struct {
	*testService

	t *testing.T
}

const (
	vnfInstances = "/vnflcm/v2/vnf_instances"
	occurrences  = "/vnflcm/v2/vnf_lcm_op_occs/"
)

func (v vnfs) ask(status int, method, path string, body any) answer {
	v.t.Helper()
	return v.want(status, v.send(v.t.Context(), method, path, body, "Version", "2.0.0"))
}

// create creates a VNF, and returns its path.
func (v vnfs) create(vnfd string) string {
	v.t.Helper()
	return vnfInstances + "/" + v.ask(http.StatusCreated, "POST", vnfInstances, map[string]any{"vnfdId": vnfd}).text(v.t, "id")
}

// begin begins an occurrence, waits until it is in the state, and returns it.
func (v vnfs) begin(path string, body any, state nf.OccurrenceState) answer {
	v.t.Helper()
	at := v.ask(http.StatusAccepted, "POST", path, body).header.Get("Location")
	return v.ends(at[strings.LastIndex(at, "/")+1:], state)
}

// ends waits until an occurrence no longer runs. It must be in the state then.
func (v vnfs) ends(id string, state nf.OccurrenceState) (last answer) {
	v.t.Helper()
	until(v.t, "the occurrence has ended", func() bool {
		last = v.ask(http.StatusOK, "GET", occurrences+id, nil)
		return !nf.OccurrenceState(last.text(v.t, "operationState")).Running()
	})
	if got := last.text(v.t, "operationState"); got != string(state) {
		v.t.Fatalf("the occurrence is %s, want %s: %s", got, state, last.body)
	}
	return last
}

// again retries an occurrence, or rolls it back.
func (v vnfs) again(o answer, verb string, state nf.OccurrenceState) {
	v.t.Helper()
	id := o.text(v.t, "id")
	v.ask(http.StatusAccepted, "POST", occurrences+id+"/"+verb, nil)
	v.ends(id, state)
}

// The programs that the sample's scripts call on a host. Kubectl reaches the cluster once
// kubeadm has made it.
const (
	fakeKubeadm = `#!/bin/sh
if [ -e "$HOME/fail" ] && [ "$1" != reset ]; then echo 'no route to the registry' >&2; exit 1; fi
echo "$@" >>"$HOME/kubeadm"
case "$1 $2" in
'init --node-name') touch "$HOME/made" ;;
reset*) rm -f "$HOME/made" ;;
'token create') echo 'kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234' ;;
'init phase') echo 0123456789abcdef0123456789abcdef ;;
esac
`
	fakeKubectl = `#!/bin/sh
[ -e "$HOME/made" ] || exit 1
shift 2
exec '%s' --kubeconfig "$HOME/kubeconfig" "$@"
`
)

// kubeadmHost starts a host with these programs, for the cluster of a kubeconfig.
func kubeadmHost(t *testing.T, kubeconfig []byte) *sitetest.Host {
	t.Helper()
	h := sitetest.New(t)
	kubectl := fmt.Sprintf(fakeKubectl, filepath.Join(os.Getenv("K8SPLUGIN_SANDBOX_BIN"), "kubectl"))
	for name, content := range map[string]string{"bin/kubeadm": fakeKubeadm, "bin/kubectl": kubectl, "kubeconfig": string(kubeconfig)} {
		file := filepath.Join(h.Home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// hostOf returns a host as a request names it.
func hostOf(h *sitetest.Host) map[string]any {
	in := h.Site()
	return map[string]any{"address": in.Address, "port": in.Port, "host_key": in.Key, "username": in.User}
}

// TestVNFMakesACluster tells the two stages of a VNF that makes a cluster on hosts, with the
// sample: its script runs on a control plane and a worker with credentials of their own, the
// cluster becomes a VIM, another VNF runs there, and both go.
func TestVNFMakesACluster(t *testing.T) {
	t.Parallel()
	kubeconfig := secondPlane(t)
	master, worker := kubeadmHost(t, kubeconfig), kubeadmHost(t, kubeconfig)
	s := vnfs{startBareService(t), t}
	s.upload("cluster", sample(t, "csar/cluster"))
	s.upload("web", csartest.Scaled(map[string]string{"Files/kubernetes/web.yaml": webWorkload}))

	workerHost, masterHost := hostOf(worker), hostOf(master)
	workerHost["private_key"], masterHost["password"] = string(worker.Secrets().PrivateKey), sitetest.Password
	install := map[string]any{"flavourId": "simple", "additionalParams": map[string]any{"k8s_cluster_installation_param": map[string]any{
		"vim_name": "edge", "script_options": []string{"--admin"},
		"master_node": map[string]any{"pod_cidr": "10.244.0.0/16", "cluster_cidr": "10.96.0.0/16", "hosts": []any{masterHost}},
		"worker_node": map[string]any{"hosts": []any{workerHost}},
		"proxy":       map[string]any{"no_proxy": "localhost", "k8s_node_cidr": "10.0.0.0/24"},
	}}}
	a := s.create(clusterVNFD)
	id := a[strings.LastIndex(a, "/")+1:]
	fail := filepath.Join(master.Home, "fail")
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := s.begin(a+"/instantiate", install, nf.OccurrenceFailedTemp)
	if !strings.Contains(string(failed.body), "no route to the registry") || strings.Contains(string(failed.body), sitetest.Password) {
		t.Errorf("the failure is %s", failed.body)
	}
	s.want(http.StatusOK, s.do("GET", "/v1/sites/"+id, nil))
	s.again(failed, "rollback", nf.OccurrenceRolledBack)
	s.want(http.StatusNotFound, s.do("GET", "/v1/sites/"+id, nil))

	failed = s.begin(a+"/instantiate", install, nf.OccurrenceFailedTemp)
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	s.again(failed, "retry", nf.OccurrenceCompleted)
	made := s.ask(http.StatusOK, "GET", a, nil)
	vim := made.text(t, "vimConnectionInfo.edge.vimId")
	if vim != (nf.Region{ID: "edge"}).VIMID() || made.text(t, "vimConnectionInfo.edge.vimType") != "ETSINFV.KUBERNETES.V_1" || !strings.HasPrefix(made.text(t, "vimConnectionInfo.edge.interfaceInfo.endpoint"), "https://127.0.0.1:") {
		t.Errorf("the connections of the VNF are %s", made.body)
	}
	for _, component := range []string{`"masterNode-master1"`, `"workerNode-worker1"`} {
		if !strings.Contains(string(made.body), component) {
			t.Errorf("the VNF has no component %s: %s", component, made.body)
		}
	}
	for file, want := range map[string]string{
		filepath.Join(master.Home, "kubeadm"): "init --node-name master1 --control-plane-endpoint 127.0.0.1:6443 --pod-network-cidr 10.244.0.0/16 --service-cidr 10.96.0.0/16\n",
		filepath.Join(worker.Home, "kubeadm"): "join 10.0.0.1:6443 --node-name worker1 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234\n",
	} {
		if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("kubeadm was called with\n%s, want %s: %v", got, want, err)
		}
	}
	for key, value := range s.records() {
		if strings.Contains(value, sitetest.Password) && strings.HasPrefix(key, "vnfs/") {
			t.Errorf("%s has a password", key)
		}
	}
	s.begin(a+"/heal", map[string]any{}, nf.OccurrenceCompleted)

	b := s.create(csartest.VNFD)
	s.begin(b+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]any{"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1"}},
		"additionalParams": map[string]any{"namespace": "apps"},
	}, nf.OccurrenceCompleted)
	terminate := map[string]any{"terminationType": "GRACEFUL"}
	refused := s.ask(http.StatusConflict, "POST", a+"/terminate", terminate)
	if want := "VNF instance " + b[strings.LastIndex(b, "/")+1:]; !strings.Contains(string(refused.body), want) {
		t.Errorf("the refusal does not name %s: %s", want, refused.body)
	}
	terminate["additionalParams"] = map[string]any{"cascade": true}
	s.begin(a+"/terminate", terminate, nf.OccurrenceCompleted)
	for _, path := range []string{a, b} {
		gone := s.ask(http.StatusOK, "GET", path, nil)
		if gone.text(t, "instantiationState") != "NOT_INSTANTIATED" || strings.Contains(string(gone.body), "vimConnectionInfo") {
			t.Errorf("a terminated VNF is %s", gone.body)
		}
		s.ask(http.StatusNoContent, "DELETE", path, nil)
	}
	s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/edge", nil))
	s.want(http.StatusNotFound, s.do("GET", "/v1/sites/"+id, nil))
	for _, h := range []*sitetest.Host{master, worker} {
		if got, err := os.ReadFile(filepath.Join(h.Home, "kubeadm")); err != nil || !strings.HasSuffix(string(got), "reset --force\n") {
			t.Errorf("a host was not reset: %s, %v", got, err)
		}
	}
}
