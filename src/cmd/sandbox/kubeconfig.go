package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// identity is a user of the sandbox's API server.
type identity struct {
	file  string // name of its kubeconfig
	user  string // as in Kubernetes' built-in role bindings
	group string
}

const masters = "system:masters" // this group is allowed everything

// identities returns the users of a sandbox with the number of hosts.
func identities(hosts int) []identity {
	all := []identity{
		{file: "admin", user: "admin", group: masters},
		{file: "controller-manager", user: "system:kube-controller-manager"},
		{file: "scheduler", user: "system:kube-scheduler"},
		{file: "kwok", user: "kwok", group: masters},
	}
	if hosts > 0 {
		all = append(all, identity{file: "multus", user: "multus", group: masters}, identity{file: "ovn", user: "ovn", group: masters})
	}
	for i := 1; i <= hosts; i++ {
		all = append(all, identity{file: hostName(i), user: "system:node:" + hostName(i), group: "system:nodes"})
	}
	return all
}

func kubeconfigPath(dir, name string) string { return filepath.Join(dir, name+".kubeconfig") }

func adminKubeconfig(dir string) string { return kubeconfigPath(dir, "admin") }

func tokenPath(dir string) string { return filepath.Join(dir, "pki", "tokens.csv") }

// kubeconfig has the fields that a sandbox needs. It is written as JSON, which
// is valid YAML and needs no special quoting.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Token string `json:"token"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

func newKubeconfig(server string, ca []byte, user, token string) kubeconfig {
	const name = "sandbox"
	k := kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: make([]namedCluster, 1), Users: make([]namedUser, 1), Contexts: make([]namedContext, 1),
	}
	k.Clusters[0].Name, k.Clusters[0].Cluster.Server, k.Clusters[0].Cluster.CA = name, server, ca
	k.Users[0].Name, k.Users[0].User.Token = user, token
	k.Contexts[0].Name, k.Contexts[0].Context.Cluster, k.Contexts[0].Context.User = name, name, user
	return k
}

// readKubeconfig reads a kubeconfig from writeAccess.
func readKubeconfig(path string) (kubeconfig, error) {
	var k kubeconfig
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &k)
	}
	if err == nil && (len(k.Clusters) != 1 || len(k.Users) != 1) {
		err = fmt.Errorf("%d clusters and %d users", len(k.Clusters), len(k.Users))
	}
	if err != nil {
		return k, fmt.Errorf("cannot read the kubeconfig %s: %w", path, err)
	}
	return k, nil
}

// writeAccess creates a new token for each identity. It writes one file with
// all tokens for the API server, and one kubeconfig per identity.
func writeAccess(dir, server string, users []identity) error {
	ca, err := os.ReadFile(pkiIn(dir).caCert)
	if err != nil {
		return fmt.Errorf("cannot read the sandbox's certificate authority: %w", err)
	}
	var tokens strings.Builder
	for _, id := range users {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, id.user, id.file, id.group)
		content, err := json.MarshalIndent(newKubeconfig(server, ca, id.file, token), "", "  ")
		if err != nil {
			return fmt.Errorf("cannot encode the kubeconfig of %s: %w", id.user, err)
		}
		if err := writeFile(kubeconfigPath(dir, id.file), append(content, '\n'), 0o600); err != nil {
			return err
		}
	}
	return writeFile(tokenPath(dir), []byte(tokens.String()), 0o600)
}
