package cluster

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestParseHostile checks that what was made to be misread is refused, in little
// memory and in few words.
func TestParseHostile(t *testing.T) {
	const fine, token = `server: "https://127.0.0.1:6443"`, `token: ` + secret
	long := strings.Repeat("x", maxKubeconfig/4)
	fill := func(unit string) string { return strings.Repeat(unit, (maxKubeconfig-1000)/len(unit)) }
	cases := map[string]struct {
		reason  string
		config  string
		field   string // of the first violation
		message string
		most    uint64 // MiB; 0: 16
	}{
		"size":          {"more than any needs", testConfig(fine, token) + "#" + fill("x") + long, "kubeconfig", "has more than 524288 bytes (kubectl config view --minify --flatten --raw)", 0},
		"laughs":        {"aliases of aliases", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "kubeconfig", "has an anchor and an alias, & and *, which are not allowed; put a text with them in quotes", 0},
		"long alias":    {"one long text, again and again", "a: &a " + long + "\nb: [" + strings.Repeat("*a,", maxKubeconfig/6) + "]", "kubeconfig", "has an anchor and an alias, & and *, which are not allowed; put a text with them in quotes", 0},
		"merge":         {"what one entry says, said by another", "a: &a {token: x}\n<<: *a", "kubeconfig", "has an anchor and an alias, & and *, which are not allowed; put a text with them in quotes", 0},
		"anchor alone":  {"an alias of nothing is no YAML", "a: *a", "kubeconfig", "is neither YAML nor JSON", 0},
		"twice":         {"which of the two tokens?", testConfig(fine, token+", token: other"), "kubeconfig", "has a key that is written twice", 0},
		"twice above":   {"which of the two lists?", testConfig(fine, token) + "users: []\n", "kubeconfig", "has a key that is written twice", 0},
		"twice in JSON": {"however it is written", `{"kind": "Config", "k\u0069nd": "Config"}`, "kubeconfig", "has a key that is written twice", 0},
		"other case":    {"kubectl does not see a key in other letters, so nor do we", strings.Replace(testConfig(fine, token), "users:", "Users:", 1), "kubeconfig: contexts[here].context.user", "names a user that is not there", 0},
		"same users":    {"which of the two?", strings.Replace(testConfig(fine, token), "users: [", "users: [{name: admin, user: {token: other}}, ", 1), "kubeconfig: users[admin]", "occurs twice", 0},
		"same clusters": {"which of the two?", strings.Replace(testConfig(fine, token), "clusters: [", "clusters: [{name: east, cluster: {server: other}}, ", 1), "kubeconfig: clusters[east]", "occurs twice", 0},
		"same contexts": {"which of the two?", strings.Replace(testConfig(fine, token), "contexts: [", "contexts: [{name: here}, ", 1), "kubeconfig: contexts[here]", "occurs twice", 0},
		"token":         {"a token that would end a header", testConfig(fine, `token: "a\r\nHost: b"`), "kubeconfig: users[admin].user.token", "holds characters that no token has, such as a line break", 0},
		"UTF-8":         {"what is no text", "kind: \xff", "kubeconfig", "is neither YAML nor JSON", 0},
		"half":          {"half a character", `{"kind": "\ud800"}`, "kubeconfig", "is neither YAML nor JSON", 0},
		"NUL":           {"an end that is none", "kind: Config\x00", "kubeconfig", "is neither YAML nor JSON", 0},
		"deep":          {"deeper than the parser goes", "a: " + strings.Repeat("[", 20_000), "kubeconfig", "is neither YAML nor JSON", 0},
		"deep enough":   {"deep, and nothing that we know", strings.Repeat("{a: ", 9000) + strings.Repeat("}", 9000), "kubeconfig: current-context", "is missing", 64},
		"values":        {"many values", "a: [" + fill("a,") + "]", "kubeconfig: current-context", "is missing", 128},
		"many faults":   {"many entries, each with faults", "users: [" + fill("{user: {exec: {}, tokenFile: x, client-key: x}},") + "]", "kubeconfig: users[].user.exec", "would run a program and is not allowed; use a token or a client certificate", 128},
		"long names":    {"a fault with a long name", "users: [{name: " + long + ", user: {exec: {}, tokenFile: x}}]", "kubeconfig: users[" + long[:253] + "…].user.exec", "would run a program and is not allowed; use a token or a client certificate", 0},
		"long context":  {"a fault with a long name", "current-context: " + long + "\ncontexts: [{name: " + long + "}]", "kubeconfig: contexts[" + long[:253] + "…].context.cluster", "names a cluster that is not there", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			used := rendertest.Allocated(func() { _, err = Parse([]byte(tc.config)) })
			wantKind(t, err, nf.Invalid)
			v := nf.ViolationsOf(err)
			if len(v) == 0 || v[0].Field != tc.field || v[0].Message != tc.message || len(v) > maxFaults {
				t.Fatalf("%s: %d violations, the first is %q, want %q: %q", tc.reason, len(v), v[:min(1, len(v))], tc.field, tc.message)
			}
			if text := err.Error(); strings.Contains(text, secret) || len(text) > 32<<10 {
				t.Errorf("%s: the error is %d bytes long, or shows a secret", tc.reason, len(text))
			}
			if used > max(tc.most, 16)<<20 {
				t.Errorf("%s: refusing it takes %d KiB", tc.reason, used>>10)
			}
		})
	}
}

func TestParseSigns(t *testing.T) {
	for reason, user := range map[string]string{
		"a sign in quotes is text":             `username: u, password: "&p"`,
		"so are both":                          `username: u, password: '&p*p'`,
		"one of them alone is harmless":        `username: u, password: "a *b"`,
		"and in the middle of words there are": `username: u, password: a&b*c`,
	} {
		if _, err := Parse([]byte(testConfig(`server: "https://127.0.0.1:6443"`, user))); err != nil {
			t.Errorf("%s, but %v", reason, err)
		}
	}
}
