package vnfsubscription

import (
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

// request is a LccnSubscriptionRequest or a FmSubscriptionRequest.
type request struct {
	Filter    *filter                `json:"filter"`
	Callback  string                 `json:"callbackUri"`
	Auth      *sol013.Authentication `json:"authentication"`
	Verbosity string                 `json:"verbosity"`
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
		if out.Auth, err = in.Auth.Auth(); err != nil {
			return nf.VNFSubscription{}, err
		}
	}
	return out, nil
}
