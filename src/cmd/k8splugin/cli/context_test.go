package cli

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lister is a server that has no regions, and keeps the Authorization headers.
func lister(t *testing.T) (url string, asked chan string) {
	t.Helper()
	asked = make(chan string, 9)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"cloud_regions":[]}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// TestContextOfRequest says which server and credentials a command uses.
func TestContextOfRequest(t *testing.T) {
	lab, askedLab := lister(t)
	other, askedOther := lister(t)
	files := folder(t, map[string]string{
		"lab.token": "of-lab\n", "flag.token": "of-flag\n",
		"config.yaml": "current_context: lab\ncontexts:\n- {name: lab, server: '" + lab + "', token_file: lab.token}\n- {name: bare, server: '" + lab + "/v1/'}\n",
	})
	at := func(name string) string { return filepath.Join(files, name) }
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		lab    bool // the request goes to lab, and not to the other server
		want   string
	}{
		"Current":    {reason: "the current context", lab: true, want: "Bearer of-lab"},
		"Flag":       {reason: "a context that is named", args: []string{"--context", "bare"}, lab: true},
		"Variable":   {reason: "the same by the environment", env: map[string]string{"K8SPLUGIN_CONTEXT": "bare"}, lab: true},
		"NoLeak":     {reason: "the environment's token is not for a context's server", args: []string{"--context", "bare"}, env: map[string]string{"K8SPLUGIN_TOKEN": "secret"}, lab: true},
		"Server":     {reason: "a server that is named gets no credentials of the current context", args: []string{"--server", other}, want: ""},
		"ServerEnv":  {reason: "the same by the environment", env: map[string]string{"K8SPLUGIN_SERVER": other, "K8SPLUGIN_TOKEN": "t"}, want: "Bearer t"},
		"FlagBefore": {reason: "a flag comes before the environment", args: []string{"--context", "lab"}, env: map[string]string{"K8SPLUGIN_SERVER": other}, lab: true, want: "Bearer of-lab"},
		"EnvBoth":    {reason: "of the environment, the context is more than the server", env: map[string]string{"K8SPLUGIN_SERVER": other, "K8SPLUGIN_CONTEXT": "lab"}, lab: true, want: "Bearer of-lab"},
		"Token":      {reason: "flags replace the credentials of a context", args: []string{"--token-file", at("flag.token")}, lab: true, want: "Bearer of-flag"},
		"NoScheme":   {reason: "a loopback address needs no scheme", args: []string{"--server", strings.TrimPrefix(other, "http://")}},
		"Path":       {reason: "the API's path is not the server's", args: []string{"--server", other + "/v1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"K8SPLUGIN_CONFIG": at("config.yaml")}
			maps.Copy(env, c.env)
			r := console{env: env}.run(t.Context(), env["K8SPLUGIN_SERVER"], append([]string{"region", "list"}, c.args...)...)
			if r.code != 0 {
				t.Fatalf("%s: exit code %d, %s", c.reason, r.code, r.stderr)
			}
			var got string
			select {
			case got = <-askedLab:
				if !c.lab {
					t.Errorf("%s: the request went to the context's server", c.reason)
				}
			case got = <-askedOther:
				if c.lab {
					t.Errorf("%s: the request went to the other server", c.reason)
				}
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// TestContextCommands edits a configuration file that does not exist at first.
func TestContextCommands(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, ".config", "k8splugin", "config.yaml")
	steps := []struct {
		reason string
		args   string
		code   int
		stdout string // what the output contains
		stderr string
	}{
		{reason: "there is no file yet", args: "list", stdout: "NAME"},
		{reason: "the first context is the current one", args: "set lab --server https://lab.example.com --user ann --password-file HOME/pw"},
		{reason: "a server may have a port alone", args: "set edge --server 10.0.0.1:9015 --oidc-issuer https://sso.example.com --oidc-client-id c --oidc-scope groups"},
		{reason: "both are listed", args: "list", stdout: "lab    yes       https://lab.example.com   user ann"},
		{reason: "with their credentials", args: "list", stdout: "edge   -         10.0.0.1:9015             login"},
		{reason: "a context has no secrets", args: "set x --server https://x --token secret", code: exitUsage, stderr: "must be in files"},
		{reason: "a secret on standard input cannot be read again", args: "set x --server https://x --token-file -", code: exitUsage, stderr: "needs a file"},
		{reason: "a server is needed", args: "set x", code: exitUsage, stderr: "--server is required"},
		{reason: "a name is that of a file, too", args: "set a/b --server https://x", code: exitUsage, stderr: "not a valid name"},
		{reason: "a server is a URL", args: "set x --server ftp://x", code: exitUsage, stderr: "contexts[2].server"},
		{reason: "a provider needs a client", args: "set x --server https://x --oidc-issuer https://sso", code: exitUsage, stderr: "contexts[2].oidc"},
		{reason: "another one becomes current", args: "use edge"},
		{reason: "as is listed", args: "list -o custom-columns=N:.name,S:.oidc.scopes[0]", stdout: "edge   groups"},
		{reason: "an unknown one does not", args: "use nowhere", code: exitNotFound, stderr: `no context is named "nowhere"`},
		{reason: "there is no token yet", args: "../region list", code: exitNotAllowed, stderr: "k8splugin login --context edge"},
		{reason: "a context is deleted", args: "delete edge"},
		{reason: "then none is the current one", args: "list -o json", stdout: `{"contexts":[{"name":"lab","server":"https://lab.example.com","user":"ann","password_file":"HOME/pw"}]}`},
	}
	for _, step := range steps {
		args := strings.Fields("context " + strings.ReplaceAll(step.args, "HOME", home))
		if rest, other := strings.CutPrefix(step.args, "../"); other {
			args = strings.Fields(rest)
		}
		r := console{env: map[string]string{"HOME": home}}.run(t.Context(), "", args...)
		if r.code != step.code || !strings.Contains(strings.ReplaceAll(r.stdout, home, "HOME"), step.stdout) || !strings.Contains(r.stderr, step.stderr) {
			t.Errorf("%s: %s: exit code %d\n%s%s", step.reason, step.args, r.code, r.stdout, r.stderr)
		}
	}
	about, err := os.Stat(config)
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v, and others may read it", about, err)
	}
}

func TestContextFile(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Unknown":   {"a word that is misspelled is not ignored", "contexts:\n- {name: a, server: 'https://a', tokenfile: x}\n", `unknown field "tokenfile"`},
		"NotYAML":   {"the line is named", "contexts:\n\t- a\n", "line 2"},
		"Twice":     {"names are unique", "contexts:\n- {name: a, server: 'https://a'}\n- {name: a, server: 'https://b'}\n", "contexts[1].name"},
		"NoServer":  {"a context has a server", "contexts:\n- {name: a}\n", "contexts[0].server"},
		"Traversal": {"a name is no path", "contexts:\n- {name: ../a, server: 'https://a'}\n", "contexts[0].name"},
		"Missing":   {"the current context exists", "current_context: b\ncontexts:\n- {name: a, server: 'https://a'}\n", `no context is named "b"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t, map[string]string{"config.yaml": c.text}), "config.yaml")
			r := console{env: map[string]string{"K8SPLUGIN_CONFIG": path}}.run(t.Context(), "", "region", "list")
			if r.code == 0 || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, path) {
				t.Errorf("%s: exit code %d, %s", c.reason, r.code, r.stderr)
			}
		})
	}
}
