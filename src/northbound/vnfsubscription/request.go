package vnfsubscription

import (
	"net/http"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// request is a LccnSubscriptionRequest or a FmSubscriptionRequest.
type request struct {
	Filter    *filter         `json:"filter"`
	Callback  string          `json:"callbackUri"`
	Auth      *authentication `json:"authentication"`
	Verbosity string          `json:"verbosity"`
}

// authentication is a SubscriptionAuthentication of SOL013.
type authentication struct {
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

const short = "SHORT"

// request reads a subscription from a request.
func (s subscriptions) request(r *http.Request) (nf.VNFSubscription, error) {
	in, err := northbound.Decode[request](r)
	if err != nil {
		return nf.VNFSubscription{}, err
	}
	out := nf.VNFSubscription{Callback: in.Callback, Short: in.Verbosity == short}
	if in.Filter != nil {
		out.Filter = in.Filter.filter()
	}
	if in.Auth != nil {
		if out.Auth, err = in.Auth.auth(); err != nil {
			return nf.VNFSubscription{}, err
		}
	}
	return out, nil
}

// auth returns the first of the types that the request has the parameters of.
func (a authentication) auth() (nf.CallbackAuth, error) {
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
