package script

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// result is the output of a script that has built a site.
type result struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	Token      string `json:"token"`
	Username   string `json:"username"`
	Password   string `json:"password"`
	CA         string `json:"ca"` // PEM, or base64 of that

	Join json.RawMessage `json:"join"` // anything, for the hosts that follow; see Runner
}

// ParseResult parses a script's output, and returns the kubeconfig in it.
// Errors do not quote the output.
func ParseResult(out []byte) (nf.Secret, error) {
	var r result
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errors.New("it is empty; it must be a JSON object")
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, errors.New("it must be a JSON object whose values, except join, are strings")
	}
	if r.Kubeconfig != "" {
		return nf.Secret(r.Kubeconfig), nil
	}
	switch {
	case r.Token == "" && (r.Username == "" || r.Password == ""):
		return nil, errors.New("it has neither a kubeconfig, nor a token, nor a username and a password")
	case strings.ContainsAny(r.Token, " \t\r\n"):
		return nil, errors.New("its token is not valid")
	}
	server, err := url.Parse(r.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
		return nil, errors.New("its server is not an https URL")
	}
	ca := r.CA
	if strings.Contains(ca, "-----BEGIN") {
		ca = base64.StdEncoding.EncodeToString([]byte(ca))
	} else if _, err := base64.StdEncoding.DecodeString(ca); err != nil {
		return nil, errors.New("its ca is neither PEM nor base64")
	}
	return r.compose(ca)
}

// compose returns a kubeconfig. It is JSON, which is YAML, too.
func (r result) compose(ca string) (nf.Secret, error) {
	type m = map[string]any
	cluster, user := m{"server": r.Server}, m{"token": r.Token}
	if r.Token == "" {
		user = m{"username": r.Username, "password": r.Password}
	}
	if ca != "" {
		cluster["certificate-authority-data"] = ca
	}
	text, err := json.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": "site",
		"clusters": []m{{"name": "site", "cluster": cluster}},
		"users":    []m{{"name": "site", "user": user}},
		"contexts": []m{{"name": "site", "context": m{"cluster": "site", "user": "site"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return text, nil
}

// joinOf returns what a script's output has for the hosts that follow, and the secrets in
// it.
func joinOf(out []byte) (join json.RawMessage, secrets []nf.Secret) {
	var r result
	var value any
	if json.Unmarshal(out, &r) != nil || json.Unmarshal(r.Join, &value) != nil {
		return nil, nil // ParseResult has refused it, or it has none
	}
	return r.Join, secretsIn(value)
}

// shortestSecret is the least length of a text of join that is treated as a secret.
const shortestSecret = 16

// secretsIn returns the longer texts in a JSON value, at any depth.
func secretsIn(value any) (out []nf.Secret) {
	switch value := value.(type) {
	case string:
		if len(value) >= shortestSecret {
			out = append(out, nf.Secret(value))
		}
	case []any:
		for _, inner := range value {
			out = append(out, secretsIn(inner)...)
		}
	case map[string]any:
		for _, inner := range value {
			out = append(out, secretsIn(inner)...)
		}
	}
	return out
}
