package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/simulator/onap"
)

// founding is the flow of docs/onap-surroundings.md.
type founding struct {
	*onap.Flow

	t      *testing.T
	ns     string
	around *onap.Surroundings
}

func surround(t *testing.T, region string) (*onap.Surroundings, string) {
	t.Helper()
	clustertest.Networks(t)
	around, err := onap.Start(t.Context(), t.TempDir(), onap.Place{Owner: "k8s", Region: region, Tenant: "trial"}, clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(around.Close)
	return around, clustertest.Namespace(t)
}

func newFounding(t *testing.T, around *onap.Surroundings, ns, url string, client *http.Client) *founding {
	t.Helper()
	const cpus = 16 // the nodes that other tests add have fewer
	flow, err := around.Flow(onap.Config{
		CPUs: cpus, Service: url, Sample: os.DirFS(samples + "/vfw-onap"), Namespace: ns, Suffix: "-" + ns, Interval: 100 * time.Millisecond, Client: client,
		Report: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &founding{flow, t, ns, around}
}

// run runs the flow, and looks at the cluster between its steps. At the end, A&AI and the
// cluster are as before.
func (f *founding) run() {
	f.t.Helper()
	step := func(run func(context.Context) error) {
		f.t.Helper()
		if err := run(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
	before := f.objects()
	step(f.Distribute)
	step(f.Place)
	step(f.Create)
	c := caller{testService: &testService{t: f.t}, ns: f.ns}
	networks := value(f.t, c.there("the firewall runs", "apps/v1", "Deployment", "firewall"), "spec", "template", "metadata", "annotations", "k8s.v1.cni.cncf.io/networks")
	if want := fmt.Sprintf("k8splugin-networks/unprotected-%[1]s,k8splugin-networks/protected-%[1]s", f.ns); networks != want {
		f.t.Errorf("the firewall is attached to %s, want %s", networks, want)
	}
	clustertest.Attach(f.t, f.ns, fmt.Sprintf(`[{"name":"cbr0","interface":"eth0","ips":["10.244.0.5"],"default":true},{"name":"k8splugin-networks/unprotected-%s","interface":"net1","ips":["192.168.10.3"],"mac":"02:00:00:00:00:09"}]`, f.ns))
	until(f.t, "A&AI has the addresses", func() bool {
		listed, err := f.SO.Inventory(f.t.Context(), f.VNF)
		if err != nil {
			f.t.Fatal(err)
		}
		for name, addresses := range listed.Addresses {
			if strings.HasPrefix(name, "firewall") && cmp.Equal(addresses, []string{"eth0 10.244.0.5", "net1 192.168.10.3"}) {
				return true
			}
		}
		return false
	})
	step(f.Configure)
	if got := value(f.t, c.there("the rules are set", "v1", "ConfigMap", "vfw-rules"), "data", "allow"); got != "8888" {
		f.t.Errorf("the rules allow %q", got)
	}
	administer(f.t, "-n", f.ns, "delete", "deployment", "sink")
	step(f.Heal)
	c.there("the sink is back", "apps/v1", "Deployment", "sink")
	step(f.Delete)
	var after []string
	for tries := range 100 {
		if after = f.objects(); cmp.Equal(before, after) {
			break
		}
		delay.For(f.t.Context(), delay.Doubled(20*time.Millisecond, time.Second, tries), nil)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		f.t.Errorf("the cluster is not as before (-before +after):\n%s", diff)
	}
	for path, element := range map[string]string{"/network/l3-networks": "l3-network", "/network/generic-vnfs": "generic-vnf", f.place() + "/flavors": "flavor"} {
		if left := f.entries(path, element); left > 0 {
			f.t.Errorf("A&AI still has %d objects of type %s", left, element)
		}
	}
	if wrong := f.around.Violations(); len(wrong) > 0 {
		f.t.Errorf("requests that ONAP takes only in part: %q", wrong)
	}
}

// objects returns the objects of the firewall, and of its networks.
func (f *founding) objects() []string {
	f.t.Helper()
	return slices.DeleteFunc(clustertest.Objects(f.t, f.ns), func(one string) bool { return !strings.Contains(one, f.ns) })
}

// place returns the path of the region in A&AI.
func (f *founding) place() string {
	return "/cloud-infrastructure/cloud-regions/cloud-region/k8s/" + f.VNF.Region
}

// entries returns the number of objects of a collection of A&AI.
func (f *founding) entries(path, element string) int {
	f.t.Helper()
	a := &simulatedAAI{f.t, f.around.AAI, f.around.URLs()["A&AI"]}
	return len(a.list(path, element, "resource-version"))
}

// TestONAP is the founding flow: SDC distributes a firewall, the region is imported from
// A&AI, SO creates the firewall on two networks, A&AI has its addresses, CDS configures it,
// it is healed, and it is deleted.
func TestONAP(t *testing.T) {
	t.Parallel()
	around, ns := surround(t, "onap")
	p := serveProgram(t, t.TempDir(), around.Arguments()...)
	newFounding(t, around, ns, p.url, http.DefaultClient).run()
}

// onapProgram builds k8splugin-onap, and returns a function that runs it.
func onapProgram(t *testing.T) func(args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "k8splugin-onap")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../k8splugin-onap").CombinedOutput(); err != nil {
		t.Fatalf("cannot build k8splugin-onap: %v: %s", err, out)
	}
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), actAsProgram+"=1", "AAI_USER=so", "AAI_PASSWORD=so")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("k8splugin-onap %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
}

// TestONAPProgram runs k8splugin-onap as a user does: everything once, with this program as
// the service, and then flows of SO against another service.
func TestONAPProgram(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	onap := onapProgram(t)
	out := onap("up", "--once", "--kubeconfig", os.Getenv(clustertest.Variable), "--program", self, "--sample", "../../../deployments/samples/vfw-onap")
	for _, line := range []string{"service  http://127.0.0.1:", "- SDC distributes the firewall: ", "- an operator deregisters the region edge"} {
		if !strings.Contains(out, line) {
			t.Errorf("the output has no line %q:\n%s", line, out)
		}
	}
	o := newOrchestra(t, "so-program", "k8s-resource,vserver,network")
	o.want(http.StatusOK, o.do("PATCH", "/v1/cloud_regions/so-program", map[string]any{"aai_tenant": "edge-1"}))
	o.upload("program", map[string]string{"metadata.yaml": "resources:\n- deployment: [router.yaml]\n", "router.yaml": strings.ReplaceAll(routerDeployment, "\n      annotations: {k8s.v1.cni.cncf.io/networks: kube-system/own}", "")})
	links := filepath.Join(t.TempDir(), "links.json")
	if err := os.WriteFile(links, []byte(`{"Network": {"Name": "so-program", "Driver": "multus", "Subnets": ["10.17.0.0/24"], "VLANs": ["17"],
		"Spec": {"type": "bridge", "bridge": "br17", "vlan": 17, "ipam": {"type": "whereabouts", "range": "10.17.0.0/24", "gateway": "10.17.0.1"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	peers := []string{"--service", o.url, "--aai", o.aai.url, "--owner", "acme", "--region", "so-program", "--tenant", "edge-1", "--package", "program", "--namespace", o.ns, "--interval", "100ms"}
	for flow, line := range map[string]string{"native": "SO deletes the VNF: ", "network": "so-program.so-program is gone"} {
		args := append([]string{"so", flow, "--name", "so-program"}, peers...)
		if flow == "network" {
			args = append(args, "--links", links)
		}
		if out := onap(args...); !strings.Contains(out, line) {
			t.Errorf("the output of %s has no line %q:\n%s", flow, line, out)
		}
	}
	o.empty()
}
