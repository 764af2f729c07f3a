package script_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// The programs that the sample calls on a host, which record their arguments. The node w1 is
// ready, w2 is not, and the others do not exist.
var programs = map[string]string{
	"id": "#!/bin/sh\necho 0\n",
	"kubeadm": `#!/bin/sh
echo "kubeadm $*" >>"$HOME/calls"
`,
	"kubectl": `#!/bin/sh
shift 2 # --kubeconfig
case "$1 $2 $3" in
'get node w1') case "$*" in *jsonpath*) echo True ;; *) echo node/w1 ;; esac ;;
'get node w2') echo False ;;
'get '*) ;;
*) echo "kubectl $*" >>"$HOME/calls" ;;
esac
`,
}

// sample returns a job with the script of the sample package on a host that has the programs.
// The folder of Kubernetes is in the home of the host.
func sample(t *testing.T) (site.Job, *sitetest.Host) {
	t.Helper()
	content, err := os.ReadFile("../../../deployments/samples/csar/cluster/Scripts/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	h := sitetest.New(t)
	for name, program := range programs {
		write(t, filepath.Join(h.Home, "bin", name), program)
	}
	j := job(h, strings.ReplaceAll(string(content), "/etc/kubernetes", filepath.Join(h.Home, "kubernetes")))
	j.Secrets.Options, j.Site.EveryHost = nil, true
	return j, h
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestSampleShrinks: the sample removes the nodes of the workers that leave, and no other one.
// A node that is not ready cannot be drained.
func TestSampleShrinks(t *testing.T) {
	t.Parallel()
	j, h := sample(t)
	j.Action = site.Shrink
	for name, state := range map[string]nf.SiteHostState{"w1": nf.HostLeaving, "w2": nf.HostLeaving, "w3": nf.HostLeaving, "w4": ""} {
		j.Site.Hosts = append(j.Site.Hosts, nf.SiteHost{Name: name, Role: nf.Worker, State: state})
	}
	if lines, _, err := run(t.Context(), j); err != nil {
		t.Fatalf("%v: %s", err, lines)
	}
	calls := string(read(t, h, "calls"))
	for _, want := range []string{
		"kubectl drain w1 --ignore-daemonsets --delete-emptydir-data --force --timeout 300s\nkubectl delete node w1 --ignore-not-found\n",
		"kubectl delete node w2 --ignore-not-found\n", "kubectl delete node w3 --ignore-not-found\n",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("the script does not call\n%s", want)
		}
	}
	if n := strings.Count(calls, "\n"); n != 4 {
		t.Errorf("the script calls %d programs, want 4:\n%s", n, calls)
	}
}

// TestSampleRejoins: a worker that has left and is added again joins again.
func TestSampleRejoins(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"w1": "", // it is in the cluster
		"w3": "kubeadm reset --force\nkubeadm join 10.0.0.1:6443 --node-name w3 --token t --discovery-token-ca-cert-hash h\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, h := sample(t)
			write(t, filepath.Join(h.Home, "kubernetes", "kubelet.conf"), "")
			write(t, filepath.Join(h.Home, "calls"), "")
			j.Secrets.Script = nf.Secret(strings.Replace(string(j.Secrets.Script), "document=$(cat)", `document='{"join": {"server": "10.0.0.1:6443", "token": "t", "hash": "h"}}'`, 1))
			j.Action, j.Site.Hosts[0].Name, j.Site.Hosts[0].Role = site.Build, name, nf.Worker
			_, _, err := run(t.Context(), j)
			if nf.ReasonOf(err) != nf.ReasonResult { // the first host has none, as it has joined
				t.Errorf("the run ends with %v", err)
			}
			if diff := cmp.Diff(want, string(read(t, h, "calls"))); diff != "" {
				t.Errorf("the script calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSampleRefuses: the sample does nothing for an action that it does not know.
func TestSampleRefuses(t *testing.T) {
	t.Parallel()
	j, h := sample(t)
	j.Action = site.Run
	if _, _, err := run(t.Context(), j); err == nil || !strings.Contains(err.Error(), "unknown SITE_ACTION run") {
		t.Errorf("the run ends with %v", err)
	}
	if _, err := os.Stat(filepath.Join(h.Home, "calls")); err == nil {
		t.Errorf("the script calls %s", read(t, h, "calls"))
	}
}
