//go:build tacker

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// vnfClient is the client with the commands of one version of the API.
type vnfClient struct {
	tackerClient

	major string
	vim   string // id
	link  string // name of a network
}

// newVNFClient returns the client of a service whose cloud region is the sandbox.
func newVNFClient(t *testing.T, s *testService, major string) vnfClient {
	return vnfClient{
		tackerClient: tackerClient{t, []string{"--os-tacker-api-version", major, "--os-auth-type", "none", "--os-endpoint", s.url}},
		major:        major, vim: nf.Region{ID: "sandbox"}.VIMID(),
	}
}

// file writes a request to a file.
func (c vnfClient) file(content any) string {
	c.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		c.t.Fatal(err)
	}
	name := filepath.Join(c.t.TempDir(), "request.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// vims returns the connections of a request in the form of the version.
func (c vnfClient) vims() any {
	if c.major == "1" {
		return []any{map[string]string{"id": "vim1", "vimId": c.vim, "vimType": "ETSINFV.KUBERNETES.V_1"}}
	}
	return map[string]any{"vim1": map[string]string{"vimId": c.vim, "vimType": "ETSINFV.KUBERNETES.V_1"}}
}

// instantiation returns the file of a request to instantiate with artifacts.
func (c vnfClient) instantiation(parameters map[string]any) string {
	c.t.Helper()
	parameters["namespace"] = clustertest.Namespace(c.t)
	return c.file(map[string]any{"flavourId": "simple", "vimConnectionInfo": c.vims(), "additionalParams": parameters})
}

// connection returns the file of a request that attaches the pods to a network.
func (c vnfClient) connection(network string) string {
	c.t.Helper()
	point := map[string]any{"cpdId": "VDU1_CP1", "cpConfig": map[string]any{"one": map[string]any{}}}
	if c.major == "1" {
		point["cpConfig"] = []any{map[string]any{}}
	}
	return c.file(map[string]any{
		"extVirtualLinks":  []any{map[string]any{"id": "link", "resourceId": network, "extCps": []any{point}}},
		"additionalParams": map[string]any{"cp_map": map[string]string{"VDU1_CP1": "Deployment/web"}},
	})
}

// rows runs a list of occurrences.
func (c vnfClient) rows(reason string, args ...string) []map[string]any {
	c.t.Helper()
	text := c.run(reason, 0, append([]string{"vnflcm", "op", "list", "-f", "json"}, args...)...)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		c.t.Fatalf("%s: %v\n%s", reason, err, text)
	}
	return rows
}

// last waits until the last occurrence of a VNF is in a state, and returns its id.
func (c vnfClient) last(s *testService, vnf string, state nf.OccurrenceState) string {
	c.t.Helper()
	id := ""
	until(c.t, "the occurrence is "+string(state), func() bool {
		for o, err := range s.parts.sol003.OccurrencesFrom(c.t.Context(), nf.Cursor{}) {
			if err != nil {
				c.t.Fatal(err)
			}
			if o.VNF == vnf {
				id = o.ID
			}
		}
		o, err := s.parts.sol003.Occurrence(c.t.Context(), id)
		return err == nil && o.State == state
	})
	return id
}

// components returns the ids of the components of a VNF.
func (c vnfClient) components(s *testService, vnf string) []string {
	c.t.Helper()
	v, err := s.parts.sol003.VNF(c.t.Context(), vnf)
	if err != nil || v.Instantiated == nil || len(v.Instantiated.VNFCs) == 0 {
		c.t.Fatalf("the VNF has no components: %+v, %v", v.Instantiated, err)
	}
	ids := make([]string, 0, len(v.Instantiated.VNFCs))
	for _, one := range v.Instantiated.VNFCs {
		ids = append(ids, one.ID())
	}
	return ids
}

const (
	vnfWorkload = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: registry.example.com/web:1.0}]}}}\n"
	vnfManifest = "Files/kubernetes/web.yaml"
	vnfBroken   = "Files/kubernetes/broken.yaml"
	vnfWaiting  = "Files/kubernetes/waiting.yaml"
	vnfChart    = "Files/kubernetes/sample-0.1.0.tgz"
)

// TestTackerClientVNFs runs the commands for VNFs of the real client with both versions.
func TestTackerClientVNFs(t *testing.T) {
	t.Parallel()
	artifacts := map[string]string{
		vnfManifest: vnfWorkload, vnfBroken: strings.Replace(vnfWorkload, "registry.example.com/web:1.0", "sandbox.invalid/no-such-image:1", 1),
		vnfWaiting: strings.Replace(vnfWorkload, "containers:", "nodeSelector: {example.com/none: none}, containers:", 1),
		vnfChart:   string(rendertest.TarGz(map[string]string{"sample/Chart.yaml": sampleChart, "sample/templates/sample.yaml": sampleConfig})),
	}
	clustertest.Networks(t)
	callback := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(callback.Close)
	s := startBareService(t, func(c *Config) { c.CallbackAllow, c.VNFNotify.Test = "127.0.0.1", true })
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "sandbox", "kubeconfig": clustertest.Kubeconfig(t)}))
	first := csartest.Scaled(artifacts)
	artifacts[vnfManifest] = strings.Replace(vnfWorkload, "web:1.0", "web:2.0", 1)
	for _, files := range []map[string]string{first, renamed(csartest.Scaled(artifacts), nextVNFD)} {
		s.onboard(files)
	}
	for _, major := range []string{"1", "2"} {
		t.Run("v"+major, func(t *testing.T) {
			c := newVNFClient(t, s, major)
			c.link = "tacker-v" + major
			c.life(s)
			c.failures(s)
			c.subscriptions(callback.URL)
		})
	}
}

// nextVNFD is the id of the descriptor of the package that a VNF changes to.
const nextVNFD = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1178"

// renamed returns the files of a CSAR whose descriptor has another id.
func renamed(files map[string]string, id string) map[string]string {
	delete(files, "sample.mf")
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, csartest.VNFD, id)
	}
	files["sample.mf"] = csartest.Manifest(files)
	return files
}

// subscriptions runs the commands for subscriptions, and with version 2 those for alarms.
func (c vnfClient) subscriptions(callback string) {
	c.t.Helper()
	kinds := [][]string{{"vnflcm", "subsc"}}
	if c.major == "2" {
		kinds = append(kinds, []string{"vnffm", "sub"})
		if text := c.run("no alarm", 0, "vnffm", "alarm", "list", "-f", "value"); strings.TrimSpace(text) != "" {
			c.t.Errorf("the alarms are %q", text)
		}
	}
	request := c.file(map[string]any{"callbackUri": callback})
	for _, kind := range kinds {
		command := func(args ...string) []string { return append(slices.Clone(kind), args...) }
		id := fmt.Sprint(c.shown("a subscription", command("create", request)...)["ID"])
		if shown := fmt.Sprint(c.shown("it is shown", command("show", id)...)); !strings.Contains(shown, callback) {
			c.t.Errorf("the subscription is %s", shown)
		}
		for reason, filter := range map[string][]string{"and listed": nil, "and found": {"--filter", "(eq,id," + id + ")"}} {
			if text := c.run(reason, 0, append(command("list", "-f", "value"), filter...)...); !strings.Contains(text, id) {
				c.t.Errorf("%s: the client prints %q", reason, text)
			}
		}
		c.run("it is deleted", 0, command("delete", id)...)
		if text := c.run("there is none", 1, command("show", id)...); !strings.Contains(text, "does not exist") {
			c.t.Errorf("the client prints %q", text)
		}
	}
}

// life runs the commands that succeed.
func (c vnfClient) life(s *testService) {
	c.t.Helper()
	for _, args := range [][]string{{}, {"--major-version", "1"}, {"--major-version", "2"}} {
		if text := c.run("versions", 0, append([]string{"vnflcm", "versions"}, args...)...); !strings.Contains(text, ".0.0") && !strings.Contains(text, "1.3.0") {
			c.t.Errorf("the client prints %q", text)
		}
	}
	made := c.shown("a VNF", "vnflcm", "create", csartest.VNFD, "--name", "fw", "--description", "a firewall")
	vnf := fmt.Sprint(made["ID"])
	if made["Instantiation State"] != "NOT_INSTANTIATED" {
		c.t.Errorf("the VNF is %v", made)
	}
	accepted := func(reason string, state nf.OccurrenceState, args ...string) {
		c.t.Helper()
		if text := c.run(reason, 0, append([]string{"vnflcm"}, args...)...); !strings.Contains(text, "has been accepted") {
			c.t.Errorf("%s: the client prints %q", reason, text)
		}
		c.last(s, vnf, state)
	}
	accepted("by a manifest", nf.OccurrenceCompleted, "instantiate", vnf, c.instantiation(map[string]any{"lcm-kubernetes-def-files": []string{vnfManifest}}))
	if shown := fmt.Sprint(c.shown("with its components", "vnflcm", "show", vnf)); !strings.Contains(shown, "VDU1-web-") {
		c.t.Errorf("the VNF is %s", shown)
	}
	if text := c.run("a list", 0, "vnflcm", "list", "-f", "value"); !strings.Contains(text, vnf) {
		c.t.Errorf("the client prints %q", text)
	}
	accepted("scale out", nf.OccurrenceCompleted, "scale", "--type", "SCALE_OUT", "--aspect-id", "vdu1_aspect", "--number-of-steps", "1", vnf)
	accepted("scale in", nf.OccurrenceCompleted, "scale", "--type", "SCALE_IN", "--aspect-id", "vdu1_aspect",
		"--additional-param-file", c.file(map[string]any{"additionalParams": map[string]any{"reason": "night"}}), vnf)
	accepted("heal one component", nf.OccurrenceCompleted, "heal", vnf, "--cause", "it hangs", "--vnfc-instance", c.components(s, vnf)[0])
	accepted("heal all", nf.OccurrenceCompleted, "heal", vnf, "--additional-param-file", c.file(map[string]any{"additionalParams": map[string]any{"all": true}}))
	c.run("update", 0, "vnflcm", "update", "--I", c.file(map[string]any{"vnfInstanceName": "fw-2", "metadata": map[string]string{"site": "east"}}), vnf)
	c.last(s, vnf, nf.OccurrenceCompleted)
	if shown := fmt.Sprint(c.shown("it is renamed", "vnflcm", "show", vnf)); !strings.Contains(shown, "fw-2") {
		c.t.Errorf("the VNF is %s", shown)
	}
	if c.major == "2" { // the client has the command in version 2 only
		accepted("change the package", nf.OccurrenceCompleted, "change-vnfpkg", vnf, c.file(map[string]any{
			"vnfdId": nextVNFD, "additionalParams": map[string]any{"upgrade_type": "RollingUpdate", "lcm-kubernetes-def-files": []string{vnfManifest}},
		}))
		if shown := fmt.Sprint(c.shown("it has the other package", "vnflcm", "show", vnf)); !strings.Contains(shown, nextVNFD) {
			c.t.Errorf("the VNF is %s", shown)
		}
	}
	accepted("a link to no network", nf.OccurrenceRolledBack, "change-ext-conn", vnf, c.connection("none"))
	disconnect := c.network(s)
	accepted("a link to a network", nf.OccurrenceCompleted, "change-ext-conn", vnf, c.connection(c.link))
	c.attached(s, vnf)
	if rows := c.rows("a filter", "--filter", "(eq,operation,SCALE)"); len(rows) < 2 {
		c.t.Errorf("the occurrences are %v", rows)
	}
	c.rows("without an attribute", "--exclude-fields", "operationParams")
	c.rows("with an attribute", "--fields", "operationParams")
	charted := c.instantiated("by a chart", c.instantiation(map[string]any{"helm_chart_path": vnfChart}))
	c.last(s, charted, nf.OccurrenceCompleted)
	c.run("the one of the chart is terminated and deleted", 0, "vnflcm", "terminate", "--termination-type", "GRACEFUL", "--graceful-termination-timeout", "5", "--D", charted)
	c.run("it is terminated and deleted", 0, "vnflcm", "terminate", "--D", vnf)
	disconnect()
	if text := c.run("there is none", 1, "vnflcm", "show", vnf); !strings.Contains(text, "it does not exist") {
		c.t.Errorf("the client prints %q", text)
	}
}

// instantiated creates and instantiates a VNF by one command, and returns its id. The
// client says that before it shows the VNF.
func (c vnfClient) instantiated(reason, request string) string {
	c.t.Helper()
	text := c.run(reason, 0, "vnflcm", "create", "--I", request, csartest.VNFD, "-f", "json")
	said, document, _ := strings.Cut(text, "{")
	var made map[string]any
	if err := json.Unmarshal([]byte("{"+document), &made); err != nil || !strings.Contains(said, "has been accepted") {
		c.t.Fatalf("%s: %v\n%s", reason, err, text)
	}
	return fmt.Sprint(made["ID"])
}

// failures runs the commands for occurrences that have failed.
func (c vnfClient) failures(s *testService) {
	c.t.Helper()
	fails := c.instantiation(map[string]any{"lcm-kubernetes-def-files": []string{vnfBroken}})
	vnf := c.instantiated("created and instantiated by one command", fails)
	id := c.last(s, vnf, nf.OccurrenceFailedTemp)
	if shown := c.shown("the failure", "vnflcm", "op", "show", id); !strings.Contains(fmt.Sprint(shown), "FAILED_TEMP") {
		c.t.Errorf("the occurrence is %v", shown)
	}
	c.run("retry", 0, "vnflcm", "op", "retry", id)
	c.last(s, vnf, nf.OccurrenceFailedTemp)
	c.run("roll back", 0, "vnflcm", "op", "rollback", id)
	c.last(s, vnf, nf.OccurrenceRolledBack)
	c.run("again", 0, "vnflcm", "instantiate", vnf, fails)
	id = c.last(s, vnf, nf.OccurrenceFailedTemp)
	if text := c.run("give it up", 0, "vnflcm", "op", "fail", id); !strings.Contains(text, "FAILED") {
		c.t.Errorf("the client prints %q", text)
	}
	c.run("what is left is terminated", 0, "vnflcm", "terminate", "--termination-type", "FORCEFUL", "--D", vnf)
	if c.major == "1" { // the client has the command in version 1 only
		c.cancels(s, id)
	}
}

// cancels cancels an occurrence that has ended, which is refused, and one that waits for
// a pod that no node can run. After its request was accepted, the client fails by a defect
// of its own.
func (c vnfClient) cancels(s *testService, ended string) {
	c.t.Helper()
	if text := c.run("it has ended", 1, "vnflcm", "op", "cancel", "--cancel-mode", "FORCEFUL", ended); !strings.Contains(text, "it is FAILED") {
		c.t.Errorf("the client prints %q", text)
	}
	vnf := c.instantiated("it waits", c.instantiation(map[string]any{"lcm-kubernetes-def-files": []string{vnfWaiting}}))
	id := c.last(s, vnf, nf.OccurrenceProcessing)
	if text := c.run("it is cancelled", 1, "vnflcm", "op", "cancel", "--cancel-mode", "FORCEFUL", id); !strings.Contains(text, "has been accepted") {
		c.t.Errorf("the client prints %q", text)
	}
	c.last(s, vnf, nf.OccurrenceFailedTemp)
	c.run("and rolled back", 0, "vnflcm", "op", "rollback", id)
	c.last(s, vnf, nf.OccurrenceRolledBack)
	c.run("so that it can be deleted", 0, "vnflcm", "delete", vnf)
}

// network creates the network that the client links VNFs to, and returns the function that
// deletes it.
func (c vnfClient) network(s *testService) (disconnect func()) {
	c.t.Helper()
	s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{
		"cloud_region_id": "sandbox", "name": c.link, "driver": "multus", "spec": map[string]any{"type": "bridge", "bridge": "br0"}, "holder": "ann",
	}))
	return func() {
		c.t.Helper()
		s.want(http.StatusNoContent, s.do("DELETE", "/v1/networks/sandbox."+c.link+"?holder=ann", nil))
	}
}

// attached fails unless the pods of a VNF are attached to the client's network.
func (c vnfClient) attached(s *testService, vnf string) {
	c.t.Helper()
	if got := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+vnf, nil)); !strings.Contains(fmt.Sprint(got.field(c.t, "networks")), c.link) {
		c.t.Errorf("the networks of the VNF are not those of the request: %s", got.body)
	}
}
