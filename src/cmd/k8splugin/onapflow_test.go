package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
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
