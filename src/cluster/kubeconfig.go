package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Parse reads a kubeconfig and returns how to reach the cluster of its current
// context. It refuses, with nf.Invalid and a violation for each field, what
// would run a program (exec, auth-provider) or read a file here, in any entry
// of the kubeconfig, and what cannot work. No error repeats more of the
// kubeconfig than the names of its entries.
func Parse(kubeconfig []byte) (*rest.Config, error) {
	cfg, v := parse(kubeconfig)
	if len(v) == 0 {
		return cfg, nil
	}
	for i := range v {
		v[i].Field = "kubeconfig: " + v[i].Field
		if v[i].Field == "kubeconfig: " {
			v[i].Field = "kubeconfig"
		}
	}
	return nil, nf.E(nf.Invalid, "use", "kubeconfig", v)
}

func parse(kubeconfig []byte) (*rest.Config, nf.Violations) {
	f, v := read(kubeconfig)
	if len(v) > 0 {
		return nil, v
	}
	if v := f.forbidden(); len(v) > 0 {
		return nil, v
	}
	s, u, v := f.current()
	if len(v) > 0 {
		return nil, v
	}
	return configure(s, u)
}

// file is a kubeconfig. It is decoded here and not by client-go, whose errors
// may quote secrets.
type file struct {
	Kind     string         `json:"kind"`
	Current  string         `json:"current-context"`
	Clusters []server       `json:"clusters"`
	Users    []user         `json:"users"`
	Contexts []contextEntry `json:"contexts"`
}

type server struct {
	Name    string `json:"name"`
	Cluster struct {
		Server     string `json:"server"`
		ServerName string `json:"tls-server-name"`
		Insecure   bool   `json:"insecure-skip-tls-verify"`
		CAFile     string `json:"certificate-authority"`
		CA         string `json:"certificate-authority-data"`
		ProxyURL   string `json:"proxy-url"`
	} `json:"cluster"`
}

type user struct {
	Name string `json:"name"`
	User struct {
		CertFile     string              `json:"client-certificate"`
		Cert         string              `json:"client-certificate-data"`
		KeyFile      string              `json:"client-key"`
		Key          string              `json:"client-key-data"`
		Token        string              `json:"token"`
		TokenFile    string              `json:"tokenFile"`
		Username     string              `json:"username"`
		Password     string              `json:"password"`
		As           string              `json:"as"`
		AsUID        string              `json:"as-uid"`
		AsGroups     []string            `json:"as-groups"`
		AsExtra      map[string][]string `json:"as-user-extra"`
		Exec         *json.RawMessage    `json:"exec"`
		AuthProvider *json.RawMessage    `json:"auth-provider"`
	} `json:"user"`
}

type contextEntry struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

func read(kubeconfig []byte) (file, nf.Violations) {
	var f file
	var document any
	if err := yaml.Unmarshal(kubeconfig, &document); err != nil {
		return f, one("", "is neither YAML nor JSON")
	}
	text, err := json.Marshal(document)
	if err != nil {
		return f, one("", "is not an object of kind Config")
	}
	if err := json.Unmarshal(text, &f); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return f, one(wrong.Field, "has the wrong type")
		}
		return f, one("", "is not an object of kind Config")
	}
	if f.Kind != "" && f.Kind != "Config" {
		return f, one("kind", "is not Config")
	}
	return f, nil
}

// forbidden lists what must not be in a kubeconfig that a server is handed.
func (f file) forbidden() nf.Violations {
	var v nf.Violations
	refuse := func(present bool, field, message string) {
		if present {
			v = append(v, nf.Violation{Field: field, Message: message})
		}
	}
	const program, path = "would run a program and is not allowed; use a token or a client certificate",
		"names a file and is not allowed; embed its content (kubectl config view --minify --flatten --raw)"
	for _, c := range f.Clusters {
		at := fmt.Sprintf("clusters[%s].cluster.", c.Name)
		refuse(c.Cluster.CAFile != "", at+"certificate-authority", path)
	}
	for _, u := range f.Users {
		at := fmt.Sprintf("users[%s].user.", u.Name)
		refuse(u.User.Exec != nil, at+"exec", program)
		refuse(u.User.AuthProvider != nil, at+"auth-provider", program)
		refuse(u.User.CertFile != "", at+"client-certificate", path)
		refuse(u.User.KeyFile != "", at+"client-key", path)
		refuse(u.User.TokenFile != "", at+"tokenFile", path)
	}
	return v
}

// current returns the server and the user of the current context.
func (f file) current() (server, user, nf.Violations) {
	if f.Current == "" {
		return server{}, user{}, one("current-context", "is missing")
	}
	i := slices.IndexFunc(f.Contexts, func(c contextEntry) bool { return c.Name == f.Current })
	if i < 0 {
		return server{}, user{}, one("current-context", "names a context that is not there")
	}
	at, chosen := fmt.Sprintf("contexts[%s].context.", f.Current), f.Contexts[i].Context
	s := slices.IndexFunc(f.Clusters, func(c server) bool { return c.Name == chosen.Cluster })
	if s < 0 {
		return server{}, user{}, one(at+"cluster", "names a cluster that is not there")
	}
	u := slices.IndexFunc(f.Users, func(u user) bool { return u.Name == chosen.User })
	if u < 0 {
		return server{}, user{}, one(at+"user", "names a user that is not there")
	}
	return f.Clusters[s], f.Users[u], nil
}

func one(field, message string) nf.Violations {
	return nf.Violations{{Field: field, Message: message}}
}
