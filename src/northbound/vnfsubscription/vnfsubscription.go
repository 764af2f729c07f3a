package vnfsubscription

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

// Subscriptions stores subscriptions.
type Subscriptions interface {
	// Subscribe stores a subscription under a new id. It returns nf.Invalid, and nf.Failed
	// if the callback does not pass its test.
	Subscribe(ctx context.Context, s nf.VNFSubscription) (nf.VNFSubscription, error)
	// Subscription returns a subscription, or nf.NotFound.
	Subscription(ctx context.Context, id string) (nf.VNFSubscription, error)
	// SubscriptionsFrom yields the subscriptions, sorted by id.
	SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error]
	// Unsubscribe deletes a subscription, or returns nf.NotFound.
	Unsubscribe(ctx context.Context, id string) error
}

// Config configures the API. Subscriptions is required.
type Config struct {
	Subscriptions Subscriptions
	Endpoint      string // begins the links; default: links are paths
}

// API serves subscriptions.
type API struct{ cfg Config }

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Subscriptions == nil {
		return nil, errors.New("cannot create the API of subscriptions: Subscriptions is required")
	}
	return &API{cfg}, nil
}

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	for _, of := range []nf.VNFInterface{nf.VNFLifecycle, nf.VNFLifecycleV1, nf.VNFFaults} {
		s := subscriptions{of, a.cfg}
		on := func(method, path string, h northbound.Handler) { r.Handle(path, sol013.Versioned(h)).Methods(method) }
		root := "/" + string(of) + "/subscriptions"
		on(http.MethodPost, root, s.create)
		on(http.MethodGet, root, s.list)
		on(http.MethodGet, root+"/{subscription_id}", s.get)
		on(http.MethodDelete, root+"/{subscription_id}", s.remove)
	}
}

// subscriptions serves the subscriptions to one interface.
type subscriptions struct {
	of  nf.VNFInterface
	cfg Config
}

// find returns a subscription to the interface, or nf.NotFound.
func (s subscriptions) find(r *http.Request) (nf.VNFSubscription, error) {
	id := mux.Vars(r)["subscription_id"]
	found, err := s.cfg.Subscriptions.Subscription(r.Context(), id)
	if err == nil && found.Interface != s.of {
		err = nf.E(nf.NotFound, "get", "subscription "+id, nil)
	}
	return found, err
}

func (s subscriptions) create(w http.ResponseWriter, r *http.Request) error {
	in, err := s.request(r)
	if err != nil {
		return err
	}
	in.Interface, in.Project = s.of, r.URL.Query().Get("project")
	made, err := s.cfg.Subscriptions.Subscribe(r.Context(), in)
	if nf.KindOf(err) == nf.Failed {
		return northbound.Refusal(http.StatusUnprocessableEntity, err.Error())
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.link(made.ID))
	return northbound.Answer(w, http.StatusCreated, s.document(made))
}

func (s subscriptions) list(w http.ResponseWriter, r *http.Request) error {
	return sol013.Listing[nf.VNFSubscription]{
		Attributes: sol013.Attributes{Mandatory: []string{"id", "callbackUri", "verbosity", "_links"}},
		ID:         func(one nf.VNFSubscription) string { return one.ID },
		Show: func(_ *http.Request, one nf.VNFSubscription) (any, error) {
			if one.Interface != s.of {
				return nil, nil
			}
			return s.document(one), nil
		},
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.VNFSubscription, error] {
		return s.cfg.Subscriptions.SubscriptionsFrom(r.Context(), from)
	})
}

func (s subscriptions) get(w http.ResponseWriter, r *http.Request) error {
	found, err := s.find(r)
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, s.document(found))
}

func (s subscriptions) remove(w http.ResponseWriter, r *http.Request) error {
	found, err := s.find(r)
	if err != nil {
		return err
	}
	if err := s.cfg.Subscriptions.Unsubscribe(r.Context(), found.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
