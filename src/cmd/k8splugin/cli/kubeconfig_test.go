package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: east
contexts:
- {name: east, context: {cluster: ec, user: eu, namespace: ns}}
- {name: west, context: {cluster: wc, user: wu}}
- {name: lost, context: {cluster: none, user: wu}}
- {name: files, context: {cluster: fc, user: fu}}
- {name: token, context: {cluster: ec, user: tu}}
- {name: missing, context: {cluster: mc, user: eu}}
- {name: plugin, context: {cluster: ec, user: pu}}
clusters:
- {name: ec, cluster: {server: "https://east", certificate-authority-data: RQ==, tls-server-name: e}}
- {name: wc, cluster: {server: "https://west"}}
- {name: fc, cluster: {server: "https://files", certificate-authority: ca.crt}}
- {name: mc, cluster: {server: "https://missing", certificate-authority: nowhere.crt}}
users:
- {name: eu, user: {token: e}}
- {name: wu, user: {token: w}}
- {name: fu, user: {client-certificate: sub/c.crt, client-key: sub/c.key, client-key-data: S0VZ}}
- {name: tu, user: {tokenFile: token}}
- {name: pu, user: {exec: {command: aws}}}
`

func TestExtract(t *testing.T) {
	cases := map[string]struct {
		reason  string
		in      string
		context string
		cluster map[string]any
		user    map[string]any
		wantErr string
	}{
		"Current": {
			reason:  "without a name the current context is taken, and only that",
			cluster: map[string]any{"server": "https://east", "certificate-authority-data": "RQ==", "tls-server-name": "e"},
			user:    map[string]any{"token": "e"},
		},
		"Named": {
			reason:  "a named context goes before the current one",
			context: "west",
			cluster: map[string]any{"server": "https://west"},
			user:    map[string]any{"token": "w"},
		},
		"Files": {
			reason:  "files are read relative to the kubeconfig; embedded data takes precedence",
			context: "files",
			cluster: map[string]any{"server": "https://files", "certificate-authority-data": "Q0E="},
			user:    map[string]any{"client-certificate-data": "Q1JU", "client-key-data": "S0VZ"},
		},
		"TokenFile": {
			reason:  "a token file is read too",
			context: "token",
			cluster: map[string]any{"server": "https://east", "certificate-authority-data": "RQ==", "tls-server-name": "e"},
			user:    map[string]any{"token": "t0ken"},
		},
		"Plugin": {
			reason:  "what the server must refuse is left for it to name",
			context: "plugin",
			cluster: map[string]any{"server": "https://east", "certificate-authority-data": "RQ==", "tls-server-name": "e"},
			user:    map[string]any{"exec": map[string]any{"command": "aws"}},
		},
		"NoSuchContext":  {reason: "the name is in the error", context: "north", wantErr: `no context "north"`},
		"NoSuchCluster":  {reason: "a context must lead to a cluster", context: "lost", wantErr: `no cluster "none"`},
		"NoSuchFile":     {reason: "a file that cannot be read is an error", context: "missing", wantErr: "nowhere.crt"},
		"NoContext":      {reason: "without a current context one must be named", in: "kind: Config", wantErr: "--kube-context"},
		"NotAKubeconfig": {reason: "anything else is refused", in: "a: [", wantErr: "cannot read the kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := folder(t, map[string]string{"ca.crt": "CA", "sub/c.crt": "CRT", "sub/c.key": "other", "token": "t0ken\n"})
			if tc.in == "" {
				tc.in = twoContexts
			}
			text, err := extract([]byte(tc.in), tc.context, root)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: got error %v, want one with %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got kubeconfig
			if err := yaml.UnmarshalStrict(text, &got); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if len(got.Clusters) != 1 || len(got.Users) != 1 || len(got.Contexts) != 1 || got.Contexts[0].Name != got.CurrentContext {
				t.Fatalf("%s: more than one context is left:\n%s", tc.reason, text)
			}
			if diff := cmp.Diff(tc.cluster, got.Clusters[0].Cluster); diff != "" {
				t.Errorf("%s: cluster: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.user, got.Users[0].User); diff != "" {
				t.Errorf("%s: user: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
