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
	CA         string `json:"ca"` // PEM, or base64 of that
}

// ParseResult parses a script's output, and returns the kubeconfig in it.
// Errors do not quote the output.
func ParseResult(out []byte) (nf.Secret, error) {
	var r result
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errors.New("it is empty; it must be a JSON object")
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, errors.New("it must be a JSON object whose values are strings")
	}
	if r.Kubeconfig != "" {
		return nf.Secret(r.Kubeconfig), nil
	}
	switch {
	case r.Token == "":
		return nil, errors.New("it has neither a kubeconfig nor a token")
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
	return compose(r.Server, r.Token, ca)
}

// compose returns a kubeconfig. It is JSON, which is YAML, too.
func compose(server, token, ca string) (nf.Secret, error) {
	type m = map[string]any
	cluster := m{"server": server}
	if ca != "" {
		cluster["certificate-authority-data"] = ca
	}
	text, err := json.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": "site",
		"clusters": []m{{"name": "site", "cluster": cluster}},
		"users":    []m{{"name": "site", "user": m{"token": token}}},
		"contexts": []m{{"name": "site", "context": m{"cluster": "site", "user": "site"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return text, nil
}
