package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	onapaai "github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/broker"
)

// esr stores cloud regions in a simulator of A&AI.
type esr struct {
	aai  *simulatedAAI
	save func(c *Config) // makes a service use it
}

func startESR(t *testing.T, publish func([]byte)) esr {
	t.Helper()
	a := newAAI(t, publish)
	connection := a.connection()
	return esr{a, func(c *Config) {
		c.AAI = connection
		c.AAIRegions = aaiRegionSettings{Mode: aaiRegionsOnDemand, Period: time.Hour, Types: "k8s", Prefixes: true}
	}}
}

// as sends a request about cloud regions, and returns the body of the response.
func (e esr) as(method, path string, body any) map[string]any {
	e.aai.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		e.aai.Fatal(err)
	}
	status, out := e.aai.as(method, "/cloud-infrastructure/cloud-regions/cloud-region/k8s/"+path, string(content))
	if status > 299 {
		e.aai.Fatalf("%s %s: status %d", method, path, status)
	}
	return out
}

// region creates a cloud region with a system of ESR.
func (e esr) region(id string, system map[string]any) {
	e.aai.Helper()
	e.as("PUT", id, map[string]any{"cloud-type": "k8s", "cloud-region-version": "1.0"})
	e.as("PUT", id+"/esr-system-info-list/esr-system-info/vim-1", system)
}

// administer runs kubectl as an administrator of the sandbox.
func administer(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("K8SPLUGIN_SANDBOX_BIN"), "kubectl"), append([]string{"--kubeconfig", os.Getenv(clustertest.Variable)}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// account creates an administrator of the sandbox, and returns a token of it.
func account(t *testing.T, namespace, name string) string {
	t.Helper()
	administer(t, "-n", namespace, "create", "serviceaccount", name)
	binding := namespace + "-" + name
	administer(t, "create", "clusterrolebinding", binding, "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":"+name)
	t.Cleanup(func() {
		// The context of the test has ended.
		cmd := exec.Command(filepath.Join(os.Getenv("K8SPLUGIN_SANDBOX_BIN"), "kubectl"), "--kubeconfig", os.Getenv(clustertest.Variable), "delete", "clusterrolebinding", binding)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("cannot delete the binding: %v: %s", err, out)
		}
	})
	return administer(t, "-n", namespace, "create", "token", name)
}

// TestRegionsFromInventory runs instances on regions that only A&AI knows: by the native
// API, and by ONAP's broker. The credentials are rotated, and the regions vanish.
func TestRegionsFromInventory(t *testing.T) {
	t.Parallel()
	aai := startESR(t, nil)
	s := startBareService(t, aai.save)
	onap := caller{testService: s, ns: clustertest.Namespace(t)}
	broker := caller{
		testService: &testService{t: t, url: s.url, client: http.DefaultClient, db: s.db, parts: s.parts}, ns: onap.ns, // swagger.yaml has paths without a prefix
		header: []string{"Content-Type", "application/json", "Project", "tenant-1"},
	}
	kubeconfig := clustertest.Kubeconfig(t)
	stored := map[string]any{"user-name": "kubeconfig", "password": base64.StdEncoding.EncodeToString(kubeconfig), "system-type": "VIM"}
	aai.region("native", stored)
	aai.region("broker", stored)
	aai.region("bare", map[string]any{"user-name": "user", "password": "pass", "system-type": "VIM", "service-url": "http://10.0.0.1"})
	s.upload("config", map[string]string{
		"metadata.yaml": "resources: {configmap: [c.yaml]}\n",
		"c.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n",
	})

	wanted := func(region string) map[string]any {
		return map[string]any{"cloud_region_id": region, "csar_id": "config", "namespace": onap.ns}
	}
	s.want(http.StatusNotFound, s.do("POST", "/v1/vnf_instances", wanted("none")))
	bare := s.want(http.StatusBadGateway, s.do("POST", "/v1/vnf_instances", wanted("bare")))
	if got := bare.text(t, "reason"); got != nf.ReasonNoAccess || !strings.Contains(string(bare.body), "service-url is not an https:// URL") {
		t.Errorf("without an access: %s", bare.body)
	}
	if got := s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/bare", nil)); got.text(t, "state.reason") != nf.ReasonNoAccess || got.text(t, "aai.reason") == "" {
		t.Errorf("the region does not show why: %s", got.body)
	}
	vnf := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", wanted("native"))).text(t, "vnf_id")
	region := s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/native", nil))
	if region.text(t, "origin") != "aai" || region.text(t, "aai.place") != "esr-system-info vim-1: password" || region.text(t, "aai.resource_version") == "" {
		t.Errorf("the region is %s", region.body)
	}

	onap.define("invariant-1", "customization-1", "vfw")
	made := broker.ask("a workload is created through the broker", http.StatusCreated, "POST /api/multicloud/v0/k8s_broker/infra_workload", stackRequest)
	workload := made.text(t, "workload_id")
	if got := broker.ask("the region is registered", http.StatusOK, "GET /api/multicloud-k8s/v1/k8s/broker/registry", nil); got.text(t, "status") != "registered" {
		t.Errorf("the registry says %s", got.body)
	}

	followRotation(t, aai, broker)
	regionVanishes(t, aai, broker, vnf)
	broker.ask("the workload is deleted", http.StatusAccepted, "DELETE /api/multicloud/v1/k8s/broker/infra_workload/"+workload, nil)
}

// followRotation gives the region native a token by A&AI, and another one when the first
// is revoked.
func followRotation(t *testing.T, aai esr, broker caller) {
	t.Helper()
	s := broker.testService
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	first, second := account(t, broker.ns, "first"), account(t, broker.ns, "second")
	const system = "native/esr-system-info-list/esr-system-info/vim-1"
	aai.as("PATCH", system, map[string]any{"service-url": access.Server, "password": first, "ssl-cacert": string(access.CA)})
	broker.ask("ESR has the region read", http.StatusAccepted, "POST /api/multicloud/v1/k8s/native/registry", `{"defaultTenant":"default"}`)
	stored := func() string {
		region, err := s.parts.catalog.Region(t.Context(), "native")
		if err != nil {
			t.Fatal(err)
		}
		return string(region.Access.Token)
	}
	if stored() != first {
		t.Fatal("the region does not have the token of A&AI")
	}
	aai.as("PATCH", system, map[string]any{"password": second})
	administer(t, "-n", broker.ns, "delete", "serviceaccount", "first")
	preview := map[string]any{"cloud_region_id": "native", "csar_id": "config", "namespace": broker.ns + "-2"}
	for n := 0; stored() != second && n < 2000; n++ { // the API server remembers a token for some seconds
		s.do("POST", "/v1/vnf_instances?dry_run=true", preview)
		delay.For(t.Context(), 50*time.Millisecond, nil)
	}
	s.want(http.StatusOK, s.do("POST", "/v1/vnf_instances?dry_run=true", preview))
	for _, path := range []string{"/v1/cloud_regions/native", "/v1/cloud_regions", "/v1/audit"} {
		if shown := string(s.do("GET", path, nil).body); strings.Contains(shown, second) || strings.Contains(shown, first) {
			t.Errorf("%s shows a token", path)
		}
	}
}

// regionVanishes deletes the region native from A&AI. It stays while it is used.
func regionVanishes(t *testing.T, aai esr, broker caller, vnf string) {
	t.Helper()
	s := broker.testService
	version, _ := aai.as("GET", "native", nil)["resource-version"].(string)
	aai.as("DELETE", "native?resource-version="+version, nil)
	broker.ask("the region is compared", http.StatusAccepted, "POST /api/multicloud/v1/k8s/native/registry", `{}`)
	if got := broker.ask("it is marked", http.StatusOK, "GET /api/multicloud/v1/k8s/native/registry", nil); got.text(t, "status") != "vanished" {
		t.Errorf("the registry says %s", got.body)
	}
	if got := s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/native", nil)); got.text(t, "aai.vanished_at") == "" {
		t.Errorf("the region is %s", got.body)
	}
	broker.ask("it is in use", http.StatusConflict, "DELETE /api/multicloud/v1/k8s/native", nil)
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+vnf, nil))
	broker.ask("it is not used any longer", http.StatusNoContent, "DELETE /api/multicloud/v0/k8s_native", nil)
	broker.ask("it is gone", http.StatusNotFound, "GET /api/multicloud/v1/k8s/native/registry", nil)
}

// TestEventsOfInventory has a region follow A&AI by its events alone: the next comparison
// of all regions is an hour away.
func TestEventsOfInventory(t *testing.T) {
	t.Parallel()
	const user, password, group = "k8splugin", "kafka-s3cret", "regions"
	kafka, err := broker.Start(broker.Config{Secret: "own", User: user, Password: password, Group: group, Prefix: onapaai.EventTopic, Topics: []string{onapaai.EventTopic}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	aai := startESR(t, func(event []byte) {
		if err := kafka.Send(t.Context(), onapaai.EventTopic, "AAI", event); err != nil {
			t.Error(err)
		}
	})
	jaas := filepath.Join(t.TempDir(), "jaas")
	login := fmt.Sprintf("org.apache.kafka.common.security.scram.ScramLoginModule required username=%q password=%q;", user, password)
	if err := os.WriteFile(jaas, []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startBareService(t, aai.save, func(c *Config) {
		c.AAIRegions.Group = group
		c.SDC.Kafka = kafkaSettings{Brokers: strings.Join(kafka.Addresses(), ","), Security: "SASL_PLAINTEXT", JAASFile: jaas}
	})
	aai.region("edge", map[string]any{"user-name": "kubeconfig", "password": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)), "system-type": "VIM"})
	onap := caller{testService: &testService{t: t, url: s.url, client: http.DefaultClient, db: s.db, parts: s.parts}, header: []string{"Content-Type", "application/json"}}
	onap.ask("the region is imported", http.StatusAccepted, "POST /api/multicloud/v1/k8s/edge/registry", "{}")
	shown := func(text string) bool {
		return strings.Contains(string(s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/edge", nil)).body), text)
	}
	// The group begins at the end of the topic, at a moment that only Kafka knows.
	changes, version := 0, ""
	until(t, "the region follows the events", func() bool {
		if version != "" && shown(version) {
			return true
		}
		changes++
		aai.as("PATCH", "edge", map[string]any{"cloud-region-version": fmt.Sprint(changes)})
		version = fmt.Sprintf("%q", aai.as("GET", "edge", nil)["resource-version"])
		return false
	})
	aai.as("DELETE", "edge?resource-version="+strings.Trim(version, `"`), nil)
	until(t, "the region is marked", func() bool { return shown(`"vanished_at"`) })
}
