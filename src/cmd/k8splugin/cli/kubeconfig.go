package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeconfig is a kubeconfig file, with the fields that are rewritten here.
type kubeconfig struct {
	APIVersion     string  `json:"apiVersion"`
	Kind           string  `json:"kind"`
	Clusters       []entry `json:"clusters"`
	Users          []entry `json:"users"`
	Contexts       []entry `json:"contexts"`
	CurrentContext string  `json:"current-context"`
}

// entry is a named part of a kubeconfig. One of the three fields is set.
type entry struct {
	Name    string         `json:"name"`
	Cluster map[string]any `json:"cluster,omitempty"`
	User    map[string]any `json:"user,omitempty"`
	Context map[string]any `json:"context,omitempty"`
}

// extract returns a kubeconfig with one context, by default the current one. It
// embeds the files that the kubeconfig names; relative names are relative to
// the folder. It keeps what the server rejects, such as exec plugins.
func extract(text []byte, context, folder string) ([]byte, error) {
	var in kubeconfig
	if err := yaml.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	if context == "" {
		context = in.CurrentContext
	}
	if context == "" {
		return nil, errors.New("cannot read the kubeconfig: it has no current-context; name one with --kube-context")
	}
	chosen, err := find(in.Contexts, "context", context)
	if err != nil {
		return nil, err
	}
	cluster, err := find(in.Clusters, "cluster", stringOf(chosen.Context["cluster"]))
	if err != nil {
		return nil, err
	}
	user, err := find(in.Users, "user", stringOf(chosen.Context["user"]))
	if err != nil {
		return nil, err
	}
	if err := inline(cluster.Cluster, folder, "certificate-authority", "certificate-authority-data"); err != nil {
		return nil, err
	}
	if err := inlineUser(user.User, folder); err != nil {
		return nil, err
	}
	return yaml.Marshal(kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: context,
		Clusters: []entry{cluster}, Users: []entry{user}, Contexts: []entry{chosen},
	})
}

func find(entries []entry, what, name string) (entry, error) {
	for _, e := range entries {
		if e.Name == name {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("cannot read the kubeconfig: it has no %s %q", what, name)
}

func stringOf(v any) string {
	text, _ := v.(string)
	return text
}

func inlineUser(user map[string]any, folder string) error {
	if err := inline(user, folder, "client-certificate", "client-certificate-data"); err != nil {
		return err
	}
	if err := inline(user, folder, "client-key", "client-key-data"); err != nil {
		return err
	}
	name := stringOf(user["tokenFile"])
	if name == "" {
		return nil
	}
	token, err := readBeside(folder, name)
	if err != nil {
		return err
	}
	delete(user, "tokenFile")
	user["token"] = strings.TrimSpace(string(token))
	return nil
}

// inline replaces a file name by the file's content. If both are given, the
// content takes precedence, as in kubectl.
func inline(part map[string]any, folder, file, data string) error {
	name := stringOf(part[file])
	if name == "" {
		return nil
	}
	delete(part, file)
	if stringOf(part[data]) != "" {
		return nil
	}
	content, err := readBeside(folder, name)
	if err != nil {
		return err
	}
	part[data] = base64.StdEncoding.EncodeToString(content)
	return nil
}

func readBeside(folder, name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read a file that the kubeconfig refers to: %w", err)
	}
	return content, nil
}
