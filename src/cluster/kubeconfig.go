package cluster

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	exact "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Parse returns the access that the current context of a kubeconfig describes.
// It returns nf.Invalid, with a violation for each field, if any entry would run
// a program (exec, auth-provider) or read a local file, or if the access cannot
// work. Errors quote nothing of the kubeconfig except names of its entries.
func Parse(kubeconfig nf.Secret) (nf.Access, error) {
	access, v := parse(kubeconfig)
	if len(v) == 0 {
		return access, nil
	}
	v = v[:min(len(v), maxFaults)]
	for i := range v {
		v[i].Field = "kubeconfig: " + v[i].Field
		if v[i].Field == "kubeconfig: " {
			v[i].Field = "kubeconfig"
		}
	}
	return nf.Access{}, nf.E(nf.Invalid, "use", "kubeconfig", v)
}

// maxFaults is the maximum number of violations returned; each of many thousand
// entries may have several.
const maxFaults = 50

func parse(kubeconfig nf.Secret) (nf.Access, nf.Violations) {
	f, v := read(kubeconfig)
	if len(v) > 0 {
		return nf.Access{}, v
	}
	if v := append(f.forbidden(), f.ambiguous()...); len(v) > 0 {
		return nf.Access{}, v
	}
	s, u, v := f.current()
	if len(v) > 0 {
		return nf.Access{}, v
	}
	return accessOf(kubeconfig, s, u)
}

// accessOf converts a cluster and a user of a kubeconfig.
func accessOf(kubeconfig nf.Secret, s server, u user) (nf.Access, nf.Violations) {
	name := func(field string) string {
		of := "users[" + u.Name + "].user."
		if field == "server" || field == "ca" || field == "insecure_skip_tls_verify" || field == "proxy_url" {
			of = "clusters[" + s.Name + "].cluster."
		}
		return of + cmp.Or(kubeconfigNames[field], field)
	}
	var v nf.Violations
	decoded := func(field, text string) []byte {
		out, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			v = append(v, one(name(field), "is not base64")...)
		}
		return out
	}
	access := nf.Access{
		Server: s.Cluster.Server, ServerName: s.Cluster.ServerName, Insecure: s.Cluster.Insecure, Proxy: nf.Secret(s.Cluster.ProxyURL),
		CA:          decoded("ca", s.Cluster.CA),
		Certificate: decoded("client_certificate", u.User.Cert), Key: decoded("client_key", u.User.Key),
		Token: nf.Secret(u.User.Token), Username: u.User.Username, Password: nf.Secret(u.User.Password),
		Kubeconfig: kubeconfig,
	}
	if u.User.As != "" || u.User.AsUID != "" || len(u.User.AsGroups) > 0 || len(u.User.AsExtra) > 0 {
		access.Impersonate = &nf.Impersonation{User: u.User.As, UID: u.User.AsUID, Groups: u.User.AsGroups, Extra: u.User.AsExtra}
	}
	if len(v) > 0 {
		return nf.Access{}, v
	}
	return access, access.Validate(name)
}

// kubeconfigNames are the names of the fields of an access in a kubeconfig, if
// they differ.
var kubeconfigNames = map[string]string{
	"ca": "certificate-authority-data", "insecure_skip_tls_verify": "insecure-skip-tls-verify", "proxy_url": "proxy-url",
	"client_certificate": "client-certificate-data", "client_key": "client-key-data",
}

// file is a kubeconfig. It is not decoded by client-go, whose errors may quote
// secrets.
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

// maxKubeconfig is the maximum size in bytes. It exceeds what any kubeconfig
// needs, and bounds parsing, which takes hundreds of times as much memory.
const maxKubeconfig = 512 << 10

// YAML anchors and aliases, at the positions where they can occur. No
// kubeconfig needs them, and a few of them can expand to any size.
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
	// Keys are case-sensitive, as in kubectl: encoding/json would let a key in
	// another case override the one that a reader sees.
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

// forbidden lists fields that are not allowed in a kubeconfig sent to a server.
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
		at := fmt.Sprintf("clusters[%s].cluster.", nf.Clip(c.Name, maxShownName))
		refuse(c.Cluster.CAFile != "", at+"certificate-authority", path)
	}
	for _, u := range f.Users {
		at := fmt.Sprintf("users[%s].user.", nf.Clip(u.Name, maxShownName))
		refuse(u.User.Exec != nil, at+"exec", program)
		refuse(u.User.AuthProvider != nil, at+"auth-provider", program)
		refuse(u.User.CertFile != "", at+"client-certificate", path)
		refuse(u.User.KeyFile != "", at+"client-key", path)
		refuse(u.User.TokenFile != "", at+"tokenFile", path)
	}
	return v
}

// ambiguous lists names that more than one entry has.
func (f file) ambiguous() nf.Violations {
	var v nf.Violations
	seen := map[string]int{}
	look := func(list, name string) {
		if seen[list+name]++; seen[list+name] == 2 {
			v = append(v, nf.Violation{Field: list + "[" + nf.Clip(name, maxShownName) + "]", Message: "occurs twice"})
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

// maxShownName is how much of a name is shown, in bytes: every violation of its
// entry repeats it.
const maxShownName = 253

// current returns the server and the user of the current context.
func (f file) current() (server, user, nf.Violations) {
	if f.Current == "" {
		return server{}, user{}, one("current-context", "is missing")
	}
	i := slices.IndexFunc(f.Contexts, func(c contextEntry) bool { return c.Name == f.Current })
	if i < 0 {
		return server{}, user{}, one("current-context", "names a context that is not there")
	}
	at, chosen := fmt.Sprintf("contexts[%s].context.", nf.Clip(f.Current, maxShownName)), f.Contexts[i].Context
	s := slices.IndexFunc(f.Clusters, func(c server) bool { return c.Name == chosen.Cluster })
	if s < 0 {
		return server{}, user{}, one(at+"cluster", "names a cluster that is not there")
	}
	u := slices.IndexFunc(f.Users, func(u user) bool { return u.Name == chosen.User })
	if u < 0 {
		return server{}, user{}, one(at+"user", "names a user that is not there")
	}
	f.Clusters[s].Name, f.Users[u].Name = nf.Clip(f.Clusters[s].Name, maxShownName), nf.Clip(f.Users[u].Name, maxShownName)
	return f.Clusters[s], f.Users[u], nil
}

func one(field, message string) nf.Violations {
	return nf.Violations{{Field: field, Message: message}}
}
