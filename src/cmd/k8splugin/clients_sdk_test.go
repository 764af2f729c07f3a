package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClientPythonSDK is what tests that are written with the python SDK ask: it
// reads back what it has made, and takes what it needs out of an answer by name.
func TestClientPythonSDK(t *testing.T) {
	t.Parallel()
	c := newCaller(t, "User-Agent", "python-requests/2.28.1", "Accept", "application/json", "Accept-Encoding", "identity", "Content-Type", "application/json", "x-fromappid", "AAI")
	c.told("a region that the test has to make", http.StatusInternalServerError, "GET /v1/connectivity-info/RegionOne", nil, noDocuments)
	form, header := c.connection("RegionOne", "acme", "file")
	c.ask("the region, with its metadata as a nameless file", http.StatusCreated, "POST /v1/connectivity-info", form, header...)
	c.take("ConnectivityInfo", c.ask("is read back", http.StatusOK, "GET /v1/connectivity-info/RegionOne", nil), "cloud-region", "cloud-owner", "other-connectivity-list", "kubeconfig")

	c.sdkBundle()
	id := c.sdkInstance()
	c.sdkConfiguration(id)
	c.sdkUpgrade(id)
	c.gone("the instance", http.StatusAccepted, "/v1/instance/"+id)
	c.gone("the template", http.StatusNoContent, "/v1/rb/definition/fw/v1/config-template/ssh")
	c.gone("the profile", http.StatusNoContent, "/v1/rb/definition/fw/v1/profile/edge")
	c.gone("the definition", http.StatusNoContent, "/v1/rb/definition/fw/v1")
	c.gone("the region", http.StatusNoContent, "/v1/connectivity-info/RegionOne")
}

// take fails the test unless an answer has all that the SDK takes out of it: a
// name that is missing is a KeyError.
func (c caller) take(reason string, a answer, names ...string) {
	c.t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal(a.body, &object); err != nil {
		c.t.Fatalf("%s: %v in %s", reason, err, a.body)
	}
	c.taken(reason, object, names)
}

func (c caller) taken(reason string, object map[string]any, names []string) {
	c.t.Helper()
	for _, name := range names {
		if _, ok := object[name]; !ok {
			c.t.Errorf("%s: KeyError: %s in %v", reason, name, object)
		}
	}
}

// iterate is take for each of a list.
func (c caller) iterate(reason, at string, n int, names ...string) []map[string]any {
	c.t.Helper()
	all := c.list(reason, c.ask(reason, http.StatusOK, "GET "+at, nil))
	if len(all) != n {
		c.t.Fatalf("%s: there are %d, not %d: %v", reason, len(all), n, all)
	}
	for _, object := range all {
		c.taken(reason, object, names)
	}
	return all
}

func (c caller) sdkBundle() {
	c.t.Helper()
	const all, one = "/v1/rb/definition", "/v1/rb/definition/fw/v1"
	fields := []string{"rb-name", "rb-version", "chart-name", "description", "labels"}
	c.ask("Definition.create", http.StatusCreated, "POST "+all, `{"rb-name": "fw", "rb-version": "v1", "chart-name": "", "description": "Test", "labels": {}}`)
	c.take("Definition", c.ask("is read back", http.StatusOK, "GET "+one, nil), fields...)
	c.ask("upload_artifact, without a type", http.StatusOK, "POST "+one+"/content", c.bundle("firewall/bundle"), "Content-Type", "")
	c.iterate("Definition.get_all", all, 1, fields...)
	updated := c.ask("Definition.update", http.StatusCreated, "PUT "+one, `{"rb-name": "fw", "rb-version": "v1", "chart-name": "firewall", "description": "Other", "labels": {"a": "b"}}`)
	c.take("Definition.update", updated, fields...)

	fields = []string{"rb-name", "rb-version", "profile-name", "namespace", "release-name", "kubernetes-version", "labels", "extra-resource-types"}
	profile := `{"rb-name": "fw", "rb-version": "v1", "profile-name": "edge", "release-name": "fw-edge", "namespace": "` + c.ns + `", "kubernetes-version": "", "labels": {}, "extra-resource-types": `
	c.told("a profile that the test has to make", http.StatusNotFound, "GET "+one+"/profile/edge", nil, noDocuments)
	c.ask("create_profile", http.StatusCreated, "POST "+one+"/profile", profile+`[]}`)
	c.take("Profile", c.ask("is read back", http.StatusOK, "GET "+one+"/profile/edge", nil), fields...)
	c.ask("upload_artifact of it", http.StatusOK, "POST "+one+"/profile/edge/content", c.tarball("firewall/profile"), "Content-Type", "")
	c.ask("Profile.update, with an object for a list", http.StatusOK, "PUT "+one+"/profile/edge", profile+`{}}`)
	c.iterate("get_all_profiles, with the one that comes by itself", one+"/profile", 2, fields...)

	c.ask("create_configuration_template", http.StatusCreated, "POST "+one+"/config-template", `{"template-name": "ssh", "description": "Test"}`)
	c.take("ConfigurationTemplate", c.ask("is read back", http.StatusOK, "GET "+one+"/config-template/ssh", nil), "template-name", "description", "chart-name", "has-content")
	c.iterate("get_all_configuration_templates", one+"/config-template", 1, "template-name", "description")
}

func (c caller) sdkInstance() string {
	c.t.Helper()
	request := `{"cloud-region": "RegionOne", "profile-name": "edge", "rb-name": "fw", "rb-version": "v1", "override-values": {"vnf-name": "fw-1"}, "labels": {"custom": "1"}}`
	for old, refused := range map[string]struct {
		fresh, text string
		status      int
	}{
		`"RegionOne"`: {`""`, "CreateVnfRequest bad request: Invalid/Missing CloudRegion in POST request", http.StatusUnprocessableEntity},
		`"fw-1"`:      {`1`, "override-values.vnf-name: a string is needed, not a number", http.StatusUnprocessableEntity},
		`"edge"`:      {`"none"`, "Unable to find Profile to create instance", http.StatusInternalServerError},
	} {
		c.told("A6: a request that is wrong", refused.status, "POST /v1/instance", strings.Replace(request, old, refused.fresh, 1), refused.text)
	}
	fields := []string{"id", "namespace", "request", "resources"}
	made := c.ask("Instance.create", http.StatusCreated, "POST /v1/instance", request)
	c.take("Instance.create", made, fields...)
	id := made.text(c.t, "id")
	c.take("Instance.get_by_id", c.ask("is read back", http.StatusOK, "GET /v1/instance/"+id, nil), fields...)
	for _, in := range c.iterate("Instance.get_all", "/v1/instance", 1, "id", "namespace", "request") {
		asked, _ := in["request"].(map[string]any)
		c.taken("InstantiationRequest", asked, []string{"cloud-region", "profile-name", "rb-name", "rb-version", "override-values", "labels"})
	}
	return id
}

// sdkUpgrade changes the values of an instance, and reads its status.
func (c caller) sdkUpgrade(id string) {
	c.t.Helper()
	up := c.ask("Instance.upgrade", http.StatusCreated, "POST /v1/instance/"+id+"/upgrade",
		`{"cloud-region": "RegionOne", "profile-name": "edge", "rb-name": "fw", "rb-version": "v1", "override-values": {"vnf-name": "fw-2"}, "labels": {}}`)
	c.take("Instance.upgrade", up, "id", "namespace", "request", "resources")
	if got := value(c.t, c.there("it is upgraded at once", "v1", "ConfigMap", "ssh-service"), "data", "vnf"); got != "fw-2" {
		c.t.Errorf("the VNF's name is %q", got)
	}
	c.take("Instance.get_status", c.ask("the status", http.StatusOK, "GET /v1/instance/"+id+"/status", nil), "request", "resourceCount", "ready", "resourcesStatus")
	c.iterate("an upgrade ends the configurations", "/v1/instance/"+id+"/config", 0)
}

// sdkConfiguration configures an instance, with its versions and tags.
func (c caller) sdkConfiguration(id string) {
	c.t.Helper()
	all := "/v1/instance/" + id + "/config"
	one := all + "/ssh"
	fields := []string{"template-name", "description", "config-version", "config-tag", "values"}
	c.iterate("get_all_configurations, before there is one", all, 0)
	body := func(port string) string {
		return `{"config-name": "ssh", "template-name": "ssh", "description": "Test", "values": {"ssh": {"port": "` + port + `"}}}`
	}
	c.ask("create_configuration", http.StatusCreated, "POST "+all, body("1001"))
	c.take("Configuration", c.ask("is read back", http.StatusOK, "GET "+one, nil), append(fields, "config-name")...)
	updated := c.ask("Configuration.update", http.StatusCreated, "PUT "+one, body("1002"))
	c.has("its version is in the answer", updated, "config-version", float64(2))
	c.ask("tag_config_version", http.StatusOK, "POST "+one+"/tagit", `{"tag-name": "golden"}`)
	c.ask("Configuration.update", http.StatusCreated, "PUT "+one, body("1003"))
	c.iterate("get_config_tags", one+"/tag", 1, "config-tag", "config-version")
	c.take("get_config_by_tag", c.ask("by its tag", http.StatusOK, "GET "+one+"/tag/golden", nil), fields...)
	var ports []any
	for _, v := range c.iterate("get_config_versions", one+"/version", 3, fields...) {
		values, _ := v["values"].(map[string]any)
		ssh, _ := values["ssh"].(map[string]any)
		ports = append(ports, ssh["port"])
	}
	if diff := cmp.Diff([]any{"1001", "1002", "1003"}, ports); diff != "" {
		c.t.Errorf("each version has its own values (-want +got):\n%s", diff)
	}
	port := func(reason, want string) {
		c.t.Helper()
		if got := value(c.t, c.there(reason, "v1", "ConfigMap", "ssh-service"), "data", "port"); got != want {
			c.t.Errorf("%s: the port is %q, not %q", reason, got, want)
		}
	}
	port("the last counts", "1003")
	result := c.ask("A14: rollback_to a version, which is a text", http.StatusOK, "POST "+one+"/rollback", `{"config-version": "1"}`, "Content-Type", "")
	c.has("A14: it is the next one", result, "config-version", float64(4))
	port("A14: with the values of the first", "1001")
	c.ask("rollback_to a tag", http.StatusOK, "POST "+one+"/rollback", `{"config-tag": "golden"}`, "Content-Type", "")
	port("with the values that were tagged", "1002")
	c.iterate("get_all_configurations", all, 1, append(fields, "config-name")...)
	c.take("create_delete_version", c.ask("create_delete_version", http.StatusOK, "POST "+one+"/delete", nil), fields...)
	port("what it applied is gone", "22")
	c.iterate("get_all_configurations, after the deletion", all, 1, append(fields, "config-name")...)
	c.iterate("get_config_versions, after the deletion", one+"/version", 6, fields...)
	c.take("get_config_by_version", c.ask("the deletion", http.StatusOK, "GET "+one+"/version/6", nil), fields...)
	c.ask("rollback_to a version before the deletion", http.StatusOK, "POST "+one+"/rollback", `{"config-version": "2"}`, "Content-Type", "")
	port("brings its values back", "1002")
	c.ask("Configuration.delete", http.StatusAccepted, "DELETE "+one, nil)
	port("what the bundle says counts again", "22")
	c.fails("it is not there then", "GET "+one)
	c.ask("once more, for the upgrade to end", http.StatusCreated, "POST "+all, body("1004"))
}
