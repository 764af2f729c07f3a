//go:build tacker

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// tackerClient runs OpenStack's client, with its plug-in for Tacker, against a service.
type tackerClient struct {
	t    *testing.T
	auth []string // options
}

// run returns what a command prints, and fails unless its exit code is the one wanted.
func (c tackerClient) run(reason string, code int, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "/usr/bin/openstack", append(append([]string{"--os-tacker-api-version", "1"}, c.auth...), args...)...)
	cmd.Env = []string{"HOME=" + c.t.TempDir(), "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		c.t.Fatalf("%s: cannot run the client; make test-tacker installs it: %v", reason, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("%s: openstack %s: exit code %d, want %d\n%s", reason, strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// vim runs a command that shows a VIM.
func (c tackerClient) vim(reason string, args ...string) map[string]any {
	c.t.Helper()
	var out map[string]any
	text := c.run(reason, 0, append(args, "-f", "json")...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Fatalf("%s: %v\n%s", reason, err, text)
	}
	if strings.Contains(text, "s3cret") || strings.Contains(text, "BEGIN") {
		c.t.Errorf("%s: the client shows a secret:\n%s", reason, text)
	}
	return out
}

// configFile writes a configuration as Tacker's documents show it.
func configFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "vim.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestTackerClientVIMs runs the commands for VIMs of the real client.
func TestTackerClientVIMs(t *testing.T) {
	t.Parallel()
	access, err := cluster.Parse(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	s := startBareService(t)
	c := tackerClient{t, []string{"--os-auth-type", "none", "--os-endpoint", s.url}}
	kubernetes := func(rest string) string {
		return configFile(t, fmt.Sprintf("auth_url: %q\nproject_name: \"default\"\ntype: \"kubernetes\"\n%s", access.Server, rest))
	}
	token := fmt.Sprintf("bearer_token: %q\n", string(access.Token))
	folded := kubernetes(token + "ssl_ca_cert: \"" + string(access.CA) + "\"\n")
	unverified := kubernetes(token + "ssl_ca_cert: None\n")

	made := c.vim("the certificate is folded to one line", "vim", "register", "--config-file", folded, "--description", "the east", "--is-default", "vim-kubernetes")
	if made["name"] != "vim-kubernetes" || made["is_default"] != true || made["status"] != "ACTIVE" || made["tls_verified"] != true {
		t.Errorf("the VIM is %v", made)
	}
	if text := c.run("another default", 1, "vim", "register", "--config-file", folded, "--is-default", "second"); !strings.Contains(text, "it is VIM "+made["id"].(string)) {
		t.Errorf("the client prints %q", text)
	}
	if text := c.run("a wrong token", 1, "vim", "register", "--config-file", kubernetes("bearer_token: \"wrong\"\nssl_ca_cert: \"none\"\n"), "wrong"); !strings.Contains(text, "does not accept the region's credential") {
		t.Errorf("the client prints %q", text)
	}
	if got := c.vim("no verification", "vim", "register", "--config-file", unverified, "unverified"); got["tls_verified"] != false {
		t.Errorf("the VIM is %v", got)
	}
	_, cloud := newCloud(t, "vim-openstack")
	openStack := configFile(t, fmt.Sprintf("auth_url: %q\nusername: \"nfv\"\npassword: \"s3cret-cloud\"\nproject_name: \"edge\"\nproject_domain_name: \"Default\"\nuser_domain_name: \"Default\"\ncert_verify: \"False\"\n", cloud["auth_url"]))
	if got := c.vim("openstack is the default type", "vim", "register", "--config-file", openStack, "vim-openstack"); got["type"] != "openstack" {
		t.Errorf("the VIM is %v", got)
	}
	for _, name := range []string{"vim-kubernetes", made["id"].(string)} {
		if got := c.vim("by name and by id", "vim", "show", name); got["id"] != made["id"] {
			t.Errorf("the VIM is %v", got)
		}
	}
	if got := c.vim("it is renamed", "vim", "set", "--name", "vim-east", "--is-default", "False", "vim-kubernetes"); got["name"] != "vim-east" || got["is_default"] != false {
		t.Errorf("the VIM is %v", got)
	}
	if got := c.vim("its access is changed", "vim", "set", "--config-file", unverified, "vim-east"); got["tls_verified"] != false {
		t.Errorf("the VIM is %v", got)
	}
	if text := c.run("lists", 0, "vim", "list", "--long", "-f", "value", "-c", "Name", "-c", "Status"); text != "unverified ACTIVE\nvim-east ACTIVE\nvim-openstack UNKNOWN\n" {
		t.Errorf("the client prints %q", text)
	}
	if text := c.run("there is none", 1, "vim", "show", "vim-kubernetes"); !strings.Contains(text, "Unable to find vim with name 'vim-kubernetes'") {
		t.Errorf("the client prints %q", text)
	}
	c.run("they are deleted", 0, "vim", "delete", "vim-east", "unverified", "vim-openstack")
	c.legacy(s, folded)
	if text := c.run("none is left", 0, "vim", "list", "-f", "value"); text != "" {
		t.Errorf("the client prints %q", text)
	}
}

// legacy registers and deletes a VIM with the earlier command of Tacker.
func (c tackerClient) legacy(s *testService, file string) {
	c.t.Helper()
	for _, args := range [][]string{{"vim-register", "--config-file", file, "vim-kubernetes"}, {"vim-delete", "vim-kubernetes"}} {
		cmd := exec.CommandContext(c.t.Context(), "/usr/bin/tacker", append([]string{"--os-auth-strategy", "noauth", "--os-url", s.url}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("tacker %s: %v\n%s", args[0], err, out)
		}
		if args[0] == "vim-register" {
			s.want(200, s.do("GET", "/v1.0/vims/"+nf.Region{ID: "vim-kubernetes"}.VIMID(), nil))
		}
	}
}

// TestTackerClientAuthenticates runs the client with each form of authentication
// against a service that has access rules.
func TestTackerClientAuthenticates(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("s3cret"), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	rules := accesstest.YAML() + "- {subjects: ['user:ann'], role: viewer, projects: ['*'], regions: ['*']}\nusers: [{name: ann, password_hash: '" + string(hash) + "'}]\n"
	file := configFile(t, rules)
	s := startBareService(t, func(c *Config) { c.AccessFile = file })
	cases := map[string]struct {
		reason string
		auth   []string
		code   int
	}{
		"None":  {"the rules know no anonymous caller", []string{"--os-auth-type", "none"}, 1},
		"Token": {"a service token", []string{"--os-auth-type", "admin_token", "--os-token", accesstest.Token("viewer-all")}, 0},
		"Wrong": {"an unknown token", []string{"--os-auth-type", "admin_token", "--os-token", "k8spt_wrong"}, 1},
		"Basic": {"a user and a password", []string{"--os-auth-type", "http_basic", "--os-username", "ann", "--os-password", "s3cret"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tackerClient{t, append(tc.auth, "--os-endpoint", s.url)}
			text := c.run(tc.reason, tc.code, "vim", "list")
			if tc.code != 0 && !strings.Contains(text, "cannot authenticate the request: ") {
				t.Errorf("%s: the client prints %q", tc.reason, text)
			}
		})
	}
}
