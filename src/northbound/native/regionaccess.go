package native

import (
	"encoding/base64"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// accessInput says how to connect to a region. It is never part of a response.
type accessInput struct {
	Server      string `json:"server"`
	ServerName  string `json:"tls_server_name"`
	CA          string `json:"ca"` // PEM, as the other certificates and the key
	Insecure    bool   `json:"insecure_skip_tls_verify"`
	Token       string `json:"token"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	Certificate string `json:"client_certificate"`
	Key         string `json:"client_key"`

	OIDC    *oidcInput    `json:"oidc"`
	Account *accountInput `json:"service_account"`
}

// accountInput is the service account whose token the service renews.
type accountInput struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Audiences []string `json:"audiences"`
	Lifetime  int64    `json:"lifetime_seconds"`
}

// oidcInput is the password grant of an OpenID Connect provider.
type oidcInput struct {
	TokenURL     string `json:"token_url"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Username     string `json:"username"`
	Password     string `json:"password"`
	CA           string `json:"ca"` // PEM
}

// regionAccess returns the access that a request gives directly or in a
// kubeconfig. It is zero if the request gives neither.
func regionAccess(in *accessInput, kubeconfig string) (nf.Access, error) {
	switch {
	case in == nil && kubeconfig == "":
		return nf.Access{}, nil
	case in == nil:
		file, err := decodeKubeconfig(kubeconfig)
		return nf.Access{Kubeconfig: file}, err
	case kubeconfig != "":
		return nf.Access{}, invalid("access", "contradicts kubeconfig")
	}
	access := nf.Access{
		Server: in.Server, ServerName: in.ServerName, CA: content[[]byte](in.CA), Insecure: in.Insecure,
		Token: content[nf.Secret](in.Token), Username: in.Username, Password: content[nf.Secret](in.Password),
		Certificate: content[[]byte](in.Certificate), Key: content[nf.Secret](in.Key),
	}
	if o := in.OIDC; o != nil {
		access.OIDC = &nf.OIDC{
			TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: content[nf.Secret](o.ClientSecret),
			Username: o.Username, Password: content[nf.Secret](o.Password), CA: content[[]byte](o.CA),
		}
	}
	if sa := in.Account; sa != nil {
		access.ServiceAccount = &nf.ServiceAccount{Namespace: sa.Namespace, Name: sa.Name, Audiences: sa.Audiences, Lifetime: sa.Lifetime}
	}
	return access, nil
}

// content returns the bytes of a text, or nil if it is empty.
func content[T ~[]byte](text string) T {
	if text == "" {
		return nil
	}
	return T(text)
}

func decodeKubeconfig(text string) (nf.Secret, error) {
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		// The cause contains no content, but even the position of the error in
		// a secret should not be disclosed.
		return nil, invalid("kubeconfig", "is not base64")
	}
	return file, nil
}
