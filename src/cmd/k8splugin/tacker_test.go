package main

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// vimOf returns a request for a VIM that is the sandbox, with its certificate in one
// line, and the token in it.
func vimOf(t *testing.T, name, namespace string) (request map[string]any, token string) {
	t.Helper()
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"vim": map[string]any{
		"name": name, "type": "kubernetes", "auth_url": access.Server, "vim_project": map[string]string{"name": namespace},
		"auth_cred": map[string]string{"bearer_token": string(access.Token), "ssl_ca_cert": strings.ReplaceAll(string(access.CA), "\n", " ")},
	}}, string(access.Token)
}

// TestVIMRunsInstances registers a VIM, creates an instance in its namespace, and
// deletes both. The store and the answers have no secret.
func TestVIMRunsInstances(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	ns, one := clustertest.Namespace(t), "/v1.0/vims/"+nf.Region{ID: "vim-kubernetes"}.VIMID()
	request, token := vimOf(t, "vim-kubernetes", ns)
	s.want(http.StatusCreated, s.do("POST", "/v1.0/vims", request))
	_, cloud := newCloud(t, "vim-openstack")
	delete(cloud, "type") // it is the default
	s.want(http.StatusCreated, s.do("POST", "/v1.0/vims", map[string]any{"vim": cloud}))
	cloud["name"], cloud["auth_cred"] = "wrong", map[string]string{"username": "nfv", "password": "s3cret-other", "cert_verify": "False"}
	if wrong := s.want(http.StatusBadGateway, s.do("POST", "/v1.0/vims", map[string]any{"vim": cloud})); !strings.Contains(string(wrong.body), "VimUnauthorizedException") {
		t.Errorf("a password that the cloud rejects: %s", wrong.body)
	}
	s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/wrong", nil))
	s.upload("one", map[string]string{
		"metadata.yaml": "resources:\n- configMap: [cm.yaml]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n",
	})
	made := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "vim-kubernetes", "csar_id": "one"}))
	if got := made.text(t, "namespace"); got != ns {
		t.Errorf("the instance is in the namespace %s, want that of the VIM: %s", got, ns)
	}
	refused := s.want(http.StatusUnprocessableEntity, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "vim-openstack", "csar_id": "one"}))
	if !strings.Contains(string(refused.body), "it is an OpenStack VIM") {
		t.Errorf("an OpenStack VIM runs no instances: %s", refused.body)
	}
	for e, err := range s.db.db.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(e.Value, []byte(token)) || bytes.Contains(e.Value, []byte("s3cret")) || bytes.Contains(e.Value, []byte("czNjcmV0")) {
			t.Errorf("the record %s is not encrypted", e.Key)
		}
	}
	used := s.want(http.StatusConflict, s.do("DELETE", one, nil))
	if !strings.Contains(string(used.body), "VimInUseException") {
		t.Errorf("the VIM is in use: %s", used.body)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+made.text(t, "vnf_id"), nil))
	s.want(http.StatusNoContent, s.do("DELETE", one, nil))
	s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/vim-kubernetes", nil))
}

// TestVIMOutbound checks that the operator's rules hold for the URLs of VIMs.
func TestVIMOutbound(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	for name, vim := range map[string]map[string]any{
		"of an API server": {"type": "kubernetes", "auth_url": "https://169.254.169.254", "auth_cred": map[string]string{"bearer_token": "t"}},
		"of Keystone":      {"type": "openstack", "auth_url": "http://169.254.169.254/v3", "auth_cred": map[string]string{"username": "u:v", "password": "p"}, "vim_project": map[string]string{"name": "nfv"}},
		"of a provider":    {"type": "kubernetes", "auth_url": "https://203.0.113.1", "auth_cred": map[string]string{"oidc_token_url": "https://169.254.169.254", "client_id": "c", "username": "u", "password": "p"}},
	} {
		vim["name"] = "v"
		got := s.want(http.StatusBadRequest, s.do("POST", "/v1.0/vims", map[string]any{"vim": vim}))
		field := map[bool]string{true: "auth_cred.oidc_token_url: ", false: "auth_url: "}[name == "of a provider"]
		if !strings.Contains(string(got.body), field) || !strings.Contains(string(got.body), "--allowed-region-hosts") {
			t.Errorf("the URL %s: %s", name, got.body)
		}
	}
}

// TestOpenStackAuthentication sends the headers of OpenStack's clients.
func TestOpenStackAuthentication(t *testing.T) {
	t.Parallel()
	w := &roleWorld{testService: startBareService(t, func(c *Config) { c.AccessFile = accesstest.File(t) })}
	get := func(header ...string) answer {
		return w.send(t.Context(), "GET", "/v1.0/vims.json", nil, header...)
	}
	w.want(http.StatusOK, get("X-Auth-Token", accesstest.Token("viewer-all")))
	for _, token := range []string{"notused", "", "k8spt_wrong"} {
		got := w.want(http.StatusUnauthorized, get("X-Auth-Token", token))
		if !slices.Contains(got.header.Values("WWW-Authenticate"), `Bearer realm="k8splugin"`) || !strings.Contains(string(got.body), `"detail":`) {
			t.Errorf("with the token %q: %s", token, got.body)
		}
	}
	request, _ := vimOf(t, "v", "default")
	got := w.want(http.StatusForbidden, w.as("viewer-all", "POST", "/v1.0/vims.json", request))
	if !strings.Contains(string(got.body), `{"TackerError":{"type":"PolicyNotAuthorized"`) {
		t.Errorf("a viewer registers a VIM: %s", got.body)
	}
}
