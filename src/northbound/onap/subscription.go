package onap

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Subscriptions gives access to the subscriptions of an instance with the
// permissions of the caller in the context.
type Subscriptions interface {
	Read(ctx context.Context, in nf.Instance) (SubscriptionReader, error)
	Change(ctx context.Context, in nf.Instance) (SubscriptionWriter, error)
}

// SubscriptionReader reads subscriptions. It identifies instances by the ids that
// this API assigned.
type SubscriptionReader interface {
	// Subscription returns one subscription, or nf.NotFound.
	Subscription(ctx context.Context, instance, name string) (nf.Subscription, error)
	// SubscriptionsOf returns the subscriptions of an instance, sorted by name.
	SubscriptionsOf(ctx context.Context, instance string) ([]nf.Subscription, error)
}

// SubscriptionWriter changes subscriptions.
type SubscriptionWriter interface {
	// Subscribe stores a new subscription. It returns nf.Invalid with
	// violations under ONAP's field names, nf.Exists, or nf.NotFound if the
	// instance does not exist.
	Subscribe(ctx context.Context, s nf.Subscription) (nf.Subscription, error)
	// Change updates the callback, interval and metadata of a subscription, and
	// its secret if one is given. It returns nf.Invalid or nf.NotFound.
	Change(ctx context.Context, s nf.Subscription) (nf.Subscription, error)
	// Unsubscribe deletes a subscription, or returns nf.NotFound.
	Unsubscribe(ctx context.Context, instance, name string) error
}

// subscriptionRequest is ONAP's form of a request, extended by a secret.
type subscriptionRequest struct {
	Name        string          `json:"name"`
	MinInterval int32           `json:"min-notify-interval"` // seconds
	Callback    string          `json:"callback-url"`
	Metadata    json.RawMessage `json:"metadata"`
	Secret      string          `json:"secret"`
}

// subscriptionShown is ONAP's form of a response.
type subscriptionShown struct {
	Name        string          `json:"name"`
	MinInterval int64           `json:"min-notify-interval"`
	LastUpdate  time.Time       `json:"last-update-time"`
	Callback    string          `json:"callback-url"`
	LastNotify  time.Time       `json:"last-notify-time"`
	LastStatus  int             `json:"last-notify-status"`
	Metadata    json.RawMessage `json:"metadata"`
}

func shownSubscription(s nf.Subscription) subscriptionShown {
	return subscriptionShown{
		Name: s.Name, MinInterval: int64(s.MinInterval / time.Second), Callback: s.Callback, Metadata: s.Metadata,
		LastUpdate: s.LastUpdate.UTC(), LastNotify: s.LastNotify.UTC(), LastStatus: s.LastStatus,
	}
}

// subscriptions serves the subscriptions of instances.
type subscriptions struct {
	vnfs   *vnfs
	store  Subscriptions
	strict bool
}

func (ss subscriptions) routes(on route) {
	const all = "/v1/instance/{instance}/status/subscription"
	const one = all + "/{subscription}"
	on(http.MethodPost, all, ss.create)
	on(http.MethodGet, all, ss.list)
	on(http.MethodGet, one, ss.get)
	on(http.MethodPut, one, ss.update)
	on(http.MethodDelete, one, ss.remove)
}

// decodeSubscription reads the subscription in a request's body.
func decodeSubscription(r *http.Request) (nf.Subscription, error) {
	body, err := decode[subscriptionRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return nf.Subscription{}, err
	}
	if len(body.Metadata) > 0 {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body.Metadata, &fields); err != nil {
			return nf.Subscription{}, refuse(http.StatusUnprocessableEntity, jsonText("metadata", body.Metadata, err))
		}
	}
	return nf.Subscription{
		Name: body.Name, MinInterval: time.Duration(body.MinInterval) * time.Second, Callback: body.Callback,
		Metadata: body.Metadata, Secret: nf.Secret(body.Secret),
	}, nil
}

// checkSubscription rejects, with ONAP's texts, the values that ONAP rejects.
func checkSubscription(s nf.Subscription) error {
	switch {
	case s.MinInterval < 0:
		return refuse(http.StatusBadRequest, badInterval)
	case s.Callback == "":
		return refuse(http.StatusBadRequest, badCallback)
	}
	return nil
}

const (
	badInterval = "Min Notify Interval has invalid value"
	badCallback = "CallbackUrl has invalid value"
)

// failSubscription returns the error for a failed change of a subscription.
// Violations have ONAP's texts; what and gone begin the text of other errors.
func failSubscription(what, gone string, err error) error {
	violations := nf.ViolationsOf(err)
	switch kind := nf.KindOf(err); {
	case kind == nf.Exists:
		return failAs("Subscription already exists", err)
	case kind == nf.NotFound:
		return fail(gone, err)
	case kind != nf.Invalid || len(violations) == 0:
		return fail(what, err)
	}
	v := violations[0]
	text := v.String()
	switch v.Field {
	case "min-notify-interval":
		text = prefix(badInterval, v.Said().String())
	case "callback-url":
		text = prefix(badCallback, v.Said().String())
	}
	return &refusal{status: http.StatusBadRequest, strict: http.StatusBadRequest, text: text, cause: err}
}

func (ss subscriptions) create(w http.ResponseWriter, r *http.Request) error {
	s, err := decodeSubscription(r)
	if err != nil {
		return err
	}
	if s.Name == "" {
		return refuse(http.StatusBadRequest, "Missing name in POST request")
	}
	if err := checkSubscription(s); err != nil {
		return err
	}
	const creating = "Creating Status Subscription DB Entry"
	const unknown = creating + ": Cannot get instance for notify thread: Get Instance"
	v, err := ss.vnfs.of(r)
	if err != nil {
		return fail(unknown, err)
	}
	store, err := ss.store.Change(r.Context(), v.Instance)
	if err != nil {
		return fail(creating, err)
	}
	s.Instance = v.id
	made, err := store.Subscribe(r.Context(), s)
	if err != nil {
		return failSubscription(creating, unknown, err)
	}
	return answer(w, http.StatusCreated, shownSubscription(made))
}

// listSubscriptions returns an empty list for an unknown instance, as ONAP
// does.
func (ss subscriptions) list(w http.ResponseWriter, r *http.Request) error {
	out := []subscriptionShown{}
	v, err := ss.vnfs.of(r)
	if nf.KindOf(err) == nf.NotFound && !ss.strict {
		return answer(w, http.StatusOK, out)
	}
	if err != nil {
		return fail("Getting Status Subscription data", err)
	}
	store, err := ss.store.Read(r.Context(), v.Instance)
	if err != nil {
		return fail("Getting Status Subscription data", err)
	}
	list, err := store.SubscriptionsOf(r.Context(), v.id)
	if err != nil {
		return fail("Getting Status Subscription data", err)
	}
	for _, s := range list {
		out = append(out, shownSubscription(s))
	}
	return answer(w, http.StatusOK, out)
}

// Texts before noDocuments. A client that gets another status or text for a
// missing subscription does not start.
const (
	retrieving = "Error retrieving Subscription data"
	missing    = "Subscription does not exist: " + retrieving
)

func (ss subscriptions) get(w http.ResponseWriter, r *http.Request) error {
	v, err := ss.vnfs.of(r)
	if err != nil {
		return fail(retrieving, err)
	}
	store, err := ss.store.Read(r.Context(), v.Instance)
	if err != nil {
		return fail(retrieving, err)
	}
	s, err := store.Subscription(r.Context(), v.id, mux.Vars(r)["subscription"])
	if err != nil {
		return fail(retrieving, err)
	}
	return answer(w, http.StatusOK, shownSubscription(s))
}

// updateSubscription updates the subscription that the body names, even if the
// path names another one, as ONAP does. If the body has no name, it updates the
// one in the path.
func (ss subscriptions) update(w http.ResponseWriter, r *http.Request) error {
	s, err := decodeSubscription(r)
	if err == nil {
		err = checkSubscription(s)
	}
	if err != nil {
		return err
	}
	if s.Name == "" {
		s.Name = mux.Vars(r)["subscription"]
	}
	v, err := ss.vnfs.of(r)
	if err != nil {
		return fail(missing, err)
	}
	store, err := ss.store.Change(r.Context(), v.Instance)
	if err != nil {
		return fail("Updating Status Subscription DB Entry", err)
	}
	s.Instance = v.id
	changed, err := store.Change(r.Context(), s)
	if err != nil {
		return failSubscription("Updating Status Subscription DB Entry", missing, err)
	}
	return answer(w, http.StatusOK, shownSubscription(changed))
}

// remove succeeds if there is no such subscription or instance. ONAP's plugin fails
// then. SO's adapter, which remembers subscriptions, could not delete an instance
// any more that another client has deleted, and its objects stayed in A&AI.
func (ss subscriptions) remove(w http.ResponseWriter, r *http.Request) error {
	if err := nf.IgnoreNotFound(ss.unsubscribe(r)); err != nil {
		return fail("Removing Status Subscription in DB", err)
	}
	return done(w, http.StatusAccepted)
}

func (ss subscriptions) unsubscribe(r *http.Request) error {
	v, err := ss.vnfs.of(r)
	if err != nil {
		return err
	}
	store, err := ss.store.Change(r.Context(), v.Instance)
	if err != nil {
		return err
	}
	return store.Unsubscribe(r.Context(), v.id, mux.Vars(r)["subscription"])
}
