package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// curl is how kud's scripts ask: curl -d makes a form of everything, and larger
// bodies wait to be asked for.
func curl(t *testing.T) caller {
	t.Helper()
	return newCaller(t, "User-Agent", "curl/7.68.0", "Accept", "*/*")
}

// post is call_api -d, or --data-binary for an archive.
func (c caller) post(reason string, status int, at string, body any) answer {
	c.t.Helper()
	return c.ask(reason, status, "POST "+at, body, "Content-Type", "application/x-www-form-urlencoded", "Expect", "100-continue")
}

// gone is delete_resource: a DELETE, and then a GET that must fail.
func (c caller) gone(reason string, status int, at string) {
	c.t.Helper()
	c.ask(reason, status, "DELETE "+at, nil)
	c.fails(reason, "GET "+at)
}

// connect is call_api -F metadata=... -F file=@...
func (c caller) connect(region, owner string) answer {
	c.t.Helper()
	form, header := c.connection(region, owner, "config")
	return c.ask("A5: a region is a form", http.StatusCreated, "POST /v1/connectivity-info", form, header...)
}

// TestClientKudPlugin is kud's plugin.sh.
func TestClientKudPlugin(t *testing.T) {
	t.Parallel()
	c := curl(t)
	const definition, one = "/v1/rb/definition/test-rbdef/v1", "/v1/rb/definition/test-rbdef/v1/profile/profile1"
	made := c.post("A1: a definition is sent as a form", http.StatusCreated, "/v1/rb/definition",
		` { "rb-name": "test-rbdef", "rb-version": "v1", "chart-name": "vault-consul-dev", "description": "testing resource bundle definition api", "labels": { "vnf_customization_uuid": "ebe353d2-30b7-11e9-9515-525400277b3d" } } `)
	c.keys("A1: five keys come back", made.body, "rb-name", "rb-version", "chart-name", "description", "labels")
	c.post("its chart is a form, too", http.StatusOK, definition+"/content", c.bundle("vault/bundle"))
	c.lists("the definition is listed", "/v1/rb/definition/test-rbdef", "test-rbdef")
	c.post("a profile, with a field that nobody knows", http.StatusCreated, definition+"/profile",
		`{ "profile-name": "profile1", "rb-name": "test-rbdef", "rb-version": "v1", "release-name": "testrelease", "namespace": "`+c.ns+`", "kubernetesversion": "v1.31.5+k3s1", "labels": { "vnf_customization_uuid": "ebe353d2-30b7-11e9-9515-525400277b3d" } }`)
	c.post("its overlay", http.StatusOK, one+"/content", c.tarball("vault/profile"))
	c.lists("the profile is read", one, "profile1")
	c.connected()

	up := c.post("A7: it is brought up", http.StatusCreated, "/v1/instance",
		`{ "cloud-region": "kud", "rb-name":"test-rbdef", "rb-version":"v1", "profile-name":"profile1" }`)
	id := up.text(t, "id")
	deployed := c.there("A7: it is there at once", "apps/v1", "Deployment", "testrelease-vault-consul-dev")
	if got := value(t, deployed, "metadata", "labels", nf.OwnerLabel); got != id {
		t.Errorf("A7: the Deployment's label is %q, not %s", got, id)
	}
	if got := value(t, deployed, "spec", "template", "metadata", "labels", nf.OwnerLabel); got != id {
		t.Errorf("A7: its pods' label is %q, not %s", got, id)
	}
	if value(t, deployed, "metadata", "labels", "vnf_customization_uuid") == "" {
		t.Error("the profile's labels are not on the objects")
	}
	c.there("the file of the profile has taken the place of the chart's", "v1", "Service", "override-vault-consul")
	if c.kubectl("v1", "Service", "vault-consul") != nil {
		t.Error("the chart's own Service is there, too")
	}
	c.lists("the instance is read", "/v1/instance/"+id, id)

	c.gone("A12: the definition goes while its instance runs", http.StatusNoContent, definition)
	c.gone("A12: and the profile", http.StatusNoContent, one)
	c.there("A12: which harms nobody", "apps/v1", "Deployment", "testrelease-vault-consul-dev")
	down := c.ask("A11, A12: the instance goes, though what it was made from has gone", http.StatusAccepted, "DELETE /v1/instance/"+id, nil)
	if len(down.body) != 0 {
		t.Errorf("A11: the answer has a body: %s", down.body)
	}
	c.told("A11: and is gone at once", http.StatusInternalServerError, "GET /v1/instance/"+id, nil, noDocuments)
	c.gone("the region goes at once, too", http.StatusNoContent, "/v1/connectivity-info/kud")
	for _, left := range [][2]string{{"apps/v1 Deployment", "testrelease-vault-consul-dev"}, {"v1 Service", "override-vault-consul"}} {
		version, kind, _ := strings.Cut(left[0], " ")
		if object := c.kubectl(version, kind, left[1]); object != nil && object.GetDeletionTimestamp() == nil {
			t.Errorf("%s %s is left", kind, left[1])
		}
	}
}

// lists asks for what must have a name in it: the script looks no closer.
func (c caller) lists(reason, at, name string) {
	c.t.Helper()
	if a := c.ask(reason, http.StatusOK, "GET "+at, nil); !strings.Contains(string(a.body), name) {
		c.t.Errorf("%s: GET %s: there is no %s in %s", reason, at, name, a.body)
	}
}

// connected registers the region twice, which is once too many.
func (c caller) connected() {
	c.t.Helper()
	made := c.connect("kud", "localhost")
	c.has("A5: what comes back is the file", made, "kubeconfig", base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(c.t)))
	form, header := c.connection("kud", "localhost", "config")
	again := c.ask("A5: it is there already", http.StatusInternalServerError, "POST /v1/connectivity-info", form, header...)
	if string(again.body) != "Connection already exists\n" {
		c.t.Errorf("A5: it says %q", again.body)
	}
}

// TestClientKudEdgex is kud's plugin_edgex.sh: a chart of another age, and a
// profile whose name could name no object.
func TestClientKudEdgex(t *testing.T) {
	t.Parallel()
	c := curl(t)
	const definition, one = "/v1/rb/definition/edgex/plugin_test", "/v1/rb/definition/edgex/plugin_test/profile/test_profile"
	c.post("the definition", http.StatusCreated, "/v1/rb/definition", "{\n    \"rb-name\": \"edgex\",\n    \"rb-version\": \"plugin_test\",\n    \"chart-name\": \"edgex\"\n}")
	c.post("its chart", http.StatusOK, definition+"/content", c.bundle("edgex/bundle"))
	c.post("a profile with a _ in its name", http.StatusCreated, definition+"/profile",
		`{"rb-name": "edgex", "rb-version": "plugin_test", "profile-name": "test_profile", "release-name": "test-release", "namespace": "`+c.ns+`"}`)
	c.post("its overlay", http.StatusOK, one+"/content", c.tarball("edgex/profile"))
	c.connect("kud", "localhost")
	up := c.post("it is brought up", http.StatusCreated, "/v1/instance",
		`{"rb-name": "edgex", "rb-version": "plugin_test", "profile-name": "test_profile", "cloud-region": "kud"}`)
	c.has("the release is the profile's", up, "release-name", "test-release")
	c.has("and was not asked for", up, "request.release-name", "")
	c.there("it is there at once", "apps/v1", "Deployment", "edgex-core-command")
	c.there("all of it is", "v1", "Service", "edgex-core-command")
	id := up.text(t, "id")
	c.lists("the instance is read", "/v1/instance/"+id, id)
	c.gone("the instance", http.StatusAccepted, "/v1/instance/"+id)
	c.gone("the profile", http.StatusNoContent, one)
	c.gone("the definition", http.StatusNoContent, definition)
	c.gone("the region", http.StatusNoContent, "/v1/connectivity-info/kud")
}

// TestClientKudFirewall is kud's plugin_fw.sh: values and a name of the
// instance's own.
func TestClientKudFirewall(t *testing.T) {
	t.Parallel()
	c := curl(t)
	const definition, one = "/v1/rb/definition/vfw/plugin_test", "/v1/rb/definition/vfw/plugin_test/profile/test_profile"
	c.post("the definition", http.StatusCreated, "/v1/rb/definition", `{"rb-name": "vfw", "rb-version": "plugin_test", "chart-name": "firewall"}`)
	c.post("its chart", http.StatusOK, definition+"/content", c.bundle("firewall/bundle"))
	c.post("a profile", http.StatusCreated, definition+"/profile",
		`{"rb-name": "vfw", "rb-version": "plugin_test", "profile-name": "test_profile", "release-name": "dummy", "namespace": "`+c.ns+`"}`)
	c.post("its overlay", http.StatusOK, one+"/content", c.tarball("firewall/profile"))
	c.connect("kud", "localhost")
	up := c.post("it is brought up", http.StatusCreated, "/v1/instance", `{
    "rb-name": "vfw", "rb-version": "plugin_test", "profile-name": "test_profile", "release-name": "test-release", "cloud-region": "kud",
    "labels": {"testCaseName": "plugin_fw.sh"},
    "override-values": {"global.onapPrivateNetworkName": "onap-private-net-test"}
}`)
	id := up.text(t, "id")
	net := c.there("the nested value counts, and so does the kind that came with the chart", c.ns+"."+networkGroup+"/v1alpha1", "Network", "onap-private-net-test")
	if got := value(t, net, "metadata", "labels", nf.OwnerLabel); got != id {
		t.Errorf("the network's label is %q, not %s", got, id)
	}
	for _, app := range []string{"sink", "firewall", "packetgen"} {
		if got := value(t, c.there("each is there", "apps/v1", "Deployment", app), "metadata", "labels", "release"); got != "test-release" {
			t.Errorf("the release of %s is %q: the request's name counts more than the profile's", app, got)
		}
	}
	status := c.poll("all pods start", "GET /v1/instance/"+id+"/status", func(a answer) bool { return a.field(t, "ready") == true })
	pods := map[string]bool{}
	for _, r := range status.field(t, "resourcesStatus").([]any) {
		object := r.(map[string]any)["status"].(map[string]any)
		if object["kind"] == "Pod" {
			pods[object["metadata"].(map[string]any)["labels"].(map[string]any)["app"].(string)] = true
		}
	}
	if len(pods) != 3 {
		t.Errorf("the status has the pods of %v", pods)
	}
	got := c.ask("the instance is read", http.StatusOK, "GET /v1/instance/"+id, nil)
	c.has("its label is kept", got, "request.labels.testCaseName", "plugin_fw.sh")
	c.has("and the name that was asked for", got, "request.release-name", "test-release")
	c.gone("the instance", http.StatusAccepted, "/v1/instance/"+id)
	c.gone("the profile", http.StatusNoContent, one)
	c.gone("the definition", http.StatusNoContent, definition)
	c.gone("the region", http.StatusNoContent, "/v1/connectivity-info/kud")
}
