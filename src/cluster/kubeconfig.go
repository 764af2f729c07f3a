package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	exact "k8s.io/apimachinery/pkg/util/json"
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
	v = v[:min(len(v), maxFaults)]
	for i := range v {
		v[i].Field = "kubeconfig: " + v[i].Field
		if v[i].Field == "kubeconfig: " {
			v[i].Field = "kubeconfig"
		}
	}
	return nil, nf.E(nf.Invalid, "use", "kubeconfig", v)
}

// maxFaults is how many violations are told: there may be some for each of many
// thousand entries.
const maxFaults = 50

func parse(kubeconfig []byte) (*rest.Config, nf.Violations) {
	f, v := read(kubeconfig)
	if len(v) > 0 {
		return nil, v
	}
	if v := append(f.forbidden(), f.ambiguous()...); len(v) > 0 {
		return nil, v
	}
	s, u, v := f.current()
	if len(v) > 0 {
		return nil, v
	}
	if strings.ContainsFunc(u.User.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, one(fmt.Sprintf("users[%s].user.token", u.Name), "holds characters that no token has, such as a line break")
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

// maxKubeconfig is more than any kubeconfig needs, and little enough to parse:
// what is read takes hundreds of times as many bytes.
const maxKubeconfig = 512 << 10

// Where the signs of an anchor and of an alias can stand. No kubeconfig needs
// one, and a few of them can say any number of bytes.
var (
	anchor = regexp.MustCompile(`(^|[\s,\[{:?\x80-\x{10ffff}-])&\S`)
	alias  = regexp.MustCompile(`(^|[\s,\[{:?\x80-\x{10ffff}-])\*\S`)
)

func read(kubeconfig []byte) (file, nf.Violations) {
	var f file
	var document any
	switch {
	case len(kubeconfig) > maxKubeconfig:
		return f, one("", fmt.Sprintf("has more than %d bytes (kubectl config view --minify --flatten --raw)", maxKubeconfig))
	case anchor.Match(kubeconfig) && alias.Match(kubeconfig):
		return f, one("", "has an anchor and an alias, & and *, which are not allowed; put a text with them in quotes")
	}
	if err := yaml.UnmarshalStrict(kubeconfig, &document); err != nil {
		if yaml.Unmarshal(kubeconfig, &document) == nil {
			return f, one("", "has a key that is written twice")
		}
		return f, one("", "is neither YAML nor JSON")
	}
	text, err := json.Marshal(document)
	if err != nil {
		return f, one("", "is not an object of kind Config")
	}
	// Keys are case-sensitive, as for kubectl: encoding/json would let an entry of
	// another spelling replace what a reader sees.
	if err := exact.Unmarshal(text, &f); err != nil {
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
		at := fmt.Sprintf("clusters[%s].cluster.", clip(c.Name))
		refuse(c.Cluster.CAFile != "", at+"certificate-authority", path)
	}
	for _, u := range f.Users {
		at := fmt.Sprintf("users[%s].user.", clip(u.Name))
		refuse(u.User.Exec != nil, at+"exec", program)
		refuse(u.User.AuthProvider != nil, at+"auth-provider", program)
		refuse(u.User.CertFile != "", at+"client-certificate", path)
		refuse(u.User.KeyFile != "", at+"client-key", path)
		refuse(u.User.TokenFile != "", at+"tokenFile", path)
	}
	return v
}

// ambiguous lists the names that several entries have.
func (f file) ambiguous() nf.Violations {
	var v nf.Violations
	seen := map[string]int{}
	look := func(list, name string) {
		if seen[list+name]++; seen[list+name] == 2 {
			v = append(v, nf.Violation{Field: list + "[" + clip(name) + "]", Message: "is there twice"})
		}
	}
	for _, c := range f.Clusters {
		look("clusters", c.Name)
	}
	for _, u := range f.Users {
		look("users", u.Name)
	}
	for _, c := range f.Contexts {
		look("contexts", c.Name)
	}
	return v
}

// clip shortens a name that would be repeated with each of its faults.
func clip(name string) string {
	const most = 253
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
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
	at, chosen := fmt.Sprintf("contexts[%s].context.", clip(f.Current)), f.Contexts[i].Context
	s := slices.IndexFunc(f.Clusters, func(c server) bool { return c.Name == chosen.Cluster })
	if s < 0 {
		return server{}, user{}, one(at+"cluster", "names a cluster that is not there")
	}
	u := slices.IndexFunc(f.Users, func(u user) bool { return u.Name == chosen.User })
	if u < 0 {
		return server{}, user{}, one(at+"user", "names a user that is not there")
	}
	f.Clusters[s].Name, f.Users[u].Name = clip(f.Clusters[s].Name), clip(f.Users[u].Name)
	return f.Clusters[s], f.Users[u], nil
}

func one(field, message string) nf.Violations {
	return nf.Violations{{Field: field, Message: message}}
}
