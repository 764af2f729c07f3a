package sol013

import (
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Authentication is a SubscriptionAuthentication of SOL013.
type Authentication struct {
	Types []nf.CallbackAuthKind `json:"authType"`
	Basic *struct {
		User     string `json:"userName"`
		Password string `json:"password"`
	} `json:"paramsBasic"`
	Client *struct {
		ID       string `json:"clientId"`
		Password string `json:"clientPassword"`
		TokenURL string `json:"tokenEndpoint"`
	} `json:"paramsOauth2ClientCredentials"`
	Certificate *struct {
		ID       string `json:"clientId"`
		TokenURL string `json:"tokenEndpoint"`
	} `json:"paramsOauth2ClientCert"`
}

// Auth returns the first of the types that the request has the parameters of, or
// nf.Invalid.
func (a Authentication) Auth() (nf.CallbackAuth, error) {
	of := func(kind nf.CallbackAuthKind) bool { return slices.Contains(a.Types, kind) }
	switch {
	case of(nf.CallbackClientCredentials) && a.Client != nil:
		return nf.CallbackAuth{Kind: nf.CallbackClientCredentials, User: a.Client.ID, Password: nf.Secret(a.Client.Password), TokenURL: a.Client.TokenURL}, nil
	case of(nf.CallbackClientCertificate) && a.Certificate != nil:
		return nf.CallbackAuth{Kind: nf.CallbackClientCertificate, User: a.Certificate.ID, TokenURL: a.Certificate.TokenURL}, nil
	case of(nf.CallbackBasic) && a.Basic != nil:
		return nf.CallbackAuth{Kind: nf.CallbackBasic, User: a.Basic.User, Password: nf.Secret(a.Basic.Password)}, nil
	case of(nf.CallbackTLS):
		return nf.CallbackAuth{Kind: nf.CallbackTLS}, nil
	}
	return nf.CallbackAuth{}, nf.E(nf.Invalid, "read", "the request", nf.Violations{{
		Field: "authentication", Message: "has no parameters for an authType that it names",
	}})
}
