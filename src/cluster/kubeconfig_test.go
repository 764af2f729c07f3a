package cluster

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const secret = "s3cr3t-t0k3n"

// testConfig is a kubeconfig into which a test writes more of a cluster or user.
func testConfig(cluster, user string) string {
	return `
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: east, user: admin}}]
clusters: [{name: east, cluster: {` + cluster + `}}]
users: [{name: admin, user: {` + user + `}}]
`
}

// accessTo returns the access that a kubeconfig describes.
func accessTo(t testing.TB, kubeconfig []byte) nf.Access {
	t.Helper()
	access, err := Parse(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func TestParseRefuses(t *testing.T) {
	const fine, token = `server: "https://127.0.0.1:6443"`, `token: ` + secret
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	cases := map[string]struct {
		reason string
		config string
		field  string
	}{
		"not YAML":            {"a broken document", "a: b: c: " + secret, "kubeconfig"},
		"a list":              {"another document", "[" + secret + "]", "kubeconfig"},
		"another kind":        {"another object", "kind: Secret", "kubeconfig: kind"},
		"empty":               {"no context to use", "", "kubeconfig: current-context"},
		"wrong type":          {"a number for a name", "current-context: [" + secret + "]", "kubeconfig: current-context"},
		"dangling context":    {"a context that is not there", "current-context: x", "kubeconfig: current-context"},
		"dangling cluster":    {"a cluster that is not there", "{current-context: x, contexts: [{name: x, context: {cluster: z}}]}", "kubeconfig: contexts[x].context.cluster"},
		"dangling user":       {"a user that is not there", strings.Replace(testConfig(fine, token), "user: admin", "user: x", 1), "kubeconfig: contexts[here].context.user"},
		"exec":                {"would run a program", testConfig(fine, `exec: {command: `+secret+`}`), "kubeconfig: users[admin].user.exec"},
		"auth-provider":       {"would run a program", testConfig(fine, `auth-provider: {name: gcp}`), "kubeconfig: users[admin].user.auth-provider"},
		"certificate file":    {"would read a file", testConfig(fine, `client-certificate: /etc/passwd`), "kubeconfig: users[admin].user.client-certificate"},
		"key file":            {"would read a file", testConfig(fine, `client-key: /etc/passwd`), "kubeconfig: users[admin].user.client-key"},
		"token file":          {"would read a file", testConfig(fine, `tokenFile: /etc/passwd`), "kubeconfig: users[admin].user.tokenFile"},
		"ca file":             {"would read a file", testConfig(fine+`, certificate-authority: /etc/passwd`, token), "kubeconfig: clusters[east].cluster.certificate-authority"},
		"no server":           {"nowhere to go", testConfig(``, token), "kubeconfig: clusters[east].cluster.server"},
		"server scheme":       {"a server must speak HTTP", testConfig(`server: "unix:///run/`+secret+`"`, token), "kubeconfig: clusters[east].cluster.server"},
		"server without host": {"a server has a host", testConfig(`server: "https:///x"`, token), "kubeconfig: clusters[east].cluster.server"},
		"server with user":    {"a password in a URL would be shown", testConfig(`server: "https://u:`+secret+`@host"`, token), "kubeconfig: clusters[east].cluster.server"},
		"proxy scheme":        {"a proxy of an unknown kind", testConfig(fine+`, proxy-url: "ftp://u:`+secret+`@x"`, token), "kubeconfig: clusters[east].cluster.proxy-url"},
		"ca not base64":       {"broken data", testConfig(fine+`, certificate-authority-data: "`+secret+`!"`, token), "kubeconfig: clusters[east].cluster.certificate-authority-data"},
		"ca not PEM":          {"broken data", testConfig(fine+`, certificate-authority-data: `+encoded, token), "kubeconfig: clusters[east].cluster.certificate-authority-data"},
		"key without cert":    {"half a pair", testConfig(fine, `client-key-data: `+encoded), "kubeconfig: users[admin].user.client-certificate-data"},
		"pair not PEM":        {"broken data", testConfig(fine, `client-key-data: `+encoded+`, client-certificate-data: `+encoded), "kubeconfig: users[admin].user.client-certificate-data"},
		"token and user":      {"which of them?", testConfig(fine, token+`, username: u`), "kubeconfig: users[admin].user.token"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.config))
			wantKind(t, err, nf.Invalid)
			if v := nf.ViolationsOf(err); len(v) != 1 || v[0].Field != tc.field {
				t.Errorf("%s: violations are %v, want one of field %q", tc.reason, v, tc.field)
			}
			if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, encoded) {
				t.Errorf("%s: the error shows a secret: %s", tc.reason, text)
			}
		})
	}
}

func TestParseOtherEntries(t *testing.T) {
	config := testConfig(`server: "https://127.0.0.1:6443"`, `token: t`) +
		"extensions: []\n"
	config = strings.Replace(config, "users: [", "users: [{name: other, user: {exec: {command: sh}}}, ", 1)
	_, err := Parse([]byte(config))
	if v := nf.ViolationsOf(err); len(v) != 1 || v[0].Field != "kubeconfig: users[other].user.exec" {
		t.Errorf("an entry that the current context does not use is checked too: %v", err)
	}
}

func TestParse(t *testing.T) {
	cfg, err := configure(accessTo(t, []byte(testConfig(
		`server: "https://127.0.0.1:6443/k8s/c1", insecure-skip-tls-verify: true, tls-server-name: api, proxy-url: "socks5://127.0.0.1:1"`,
		`token: t, as: root, as-groups: [g]`))))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{cfg.Host, cfg.Insecure, cfg.ServerName, cfg.BearerToken, cfg.Impersonate.UserName, cfg.Impersonate.Groups, cfg.QPS, cfg.Proxy != nil, cfg.Timeout == 0}
	want := []any{"https://127.0.0.1:6443/k8s/c1", true, "api", "t", "root", []string{"g"}, float32(-1), true, true}
	diff(t, "what the kubeconfig says is what is used, and nothing cuts a watch short", want, got)

	if _, err := Parse(clustertest.Kubeconfig(t)); err != nil {
		t.Errorf("the sandbox's own kubeconfig is good: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(testConfig(`server: "https://127.0.0.1:6443"`, `token: t`)))
	f.Add([]byte(`{"users": [{"user": {"exec": null, "token": 1}}], "current-context": "x"}`))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(testConfig(`server: "https://[::1]:6443/k8s", proxy-url: "socks5://u:p@h:1", insecure-skip-tls-verify: true`, `username: u, password: "&p *p", as: root, as-user-extra: {a: [b]}`)))
	f.Add([]byte(testConfig(`server: "https://h", certificate-authority: /etc/passwd`, `tokenFile: /etc/passwd, exec: {command: sh}`)))
	f.Add([]byte(`{"kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "", "user": ""}}], "clusters": [{"cluster": {"server": "http://h"}}], "users": [{}]}`))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		access, err := Parse(kubeconfig)
		if err == nil {
			cfg, err := configure(access)
			if err != nil {
				t.Fatalf("what Parse accepts must be usable: %v", err)
			}
			if _, err := newCluster(access, "fuzz", PoolConfig{}.filled()); err != nil {
				t.Errorf("what Parse accepts must be usable: %v", err)
			}
			if cfg.CAFile+cfg.CertFile+cfg.KeyFile+cfg.BearerTokenFile != "" || cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.AuthConfigPersister != nil {
				t.Errorf("the kubeconfig makes us read a file or run a program: %+v", cfg)
			}
			if u, err := url.Parse(cfg.Host); err != nil || u.User != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("the kubeconfig leads to %q", cfg.Host)
			}
			return
		}
		if nf.KindOf(err) != nf.Invalid || len(nf.ViolationsOf(err)) == 0 {
			t.Errorf("a refusal is Invalid and says where: %v", err)
		}
		if size := len(err.Error()); size > 64<<10 {
			t.Errorf("the refusal is %d bytes long", size)
		}
	})
}
