package onap

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Subscription asks for notifications of what becomes of an instance's objects.
type Subscription struct {
	Instance    string
	Name        string // unique for the instance
	Callback    string
	MinInterval time.Duration   // between two notifications
	Metadata    json.RawMessage // a JSON object that each notification repeats
	Secret      nf.Secret       // notifications are signed with it; empty: they are not
	Created     time.Time
	LastUpdate  time.Time // when a change was seen last
	LastNotify  time.Time // when a notification was posted last
	LastStatus  int       // of the answer; 500 when there was none, 0 before the first
}

// Subscriptions is what the API asks of those who notify. Instances go by the ids
// that this API gave them; who may do what is not asked.
type Subscriptions interface {
	// Subscribe keeps a new subscription. It is nf.Invalid, with violations of
	// the fields in ONAP's words for them, nf.Exists, or nf.NotFound when there
	// is no such instance.
	Subscribe(ctx context.Context, s Subscription) (Subscription, error)
	// Subscription returns one subscription, or nf.NotFound.
	Subscription(ctx context.Context, instance, name string) (Subscription, error)
	// SubscriptionsOf returns those of an instance, ordered by name.
	SubscriptionsOf(ctx context.Context, instance string) ([]Subscription, error)
	// Change gives a subscription another callback, interval, metadata and, when
	// one is given, secret: nf.Invalid or nf.NotFound.
	Change(ctx context.Context, s Subscription) (Subscription, error)
	// Unsubscribe forgets a subscription, or returns nf.NotFound.
	Unsubscribe(ctx context.Context, instance, name string) error
}

// subscriptionRequest is ONAP's wire form of a request, and a secret of our own.
type subscriptionRequest struct {
	Name        string          `json:"name"`
	MinInterval int32           `json:"min-notify-interval"` // seconds
	Callback    string          `json:"callback-url"`
	Metadata    json.RawMessage `json:"metadata"`
	Secret      string          `json:"secret"`
}

// subscriptionShown is ONAP's wire form of an answer.
type subscriptionShown struct {
	Name        string          `json:"name"`
	MinInterval int64           `json:"min-notify-interval"`
	LastUpdate  time.Time       `json:"last-update-time"`
	Callback    string          `json:"callback-url"`
	LastNotify  time.Time       `json:"last-notify-time"`
	LastStatus  int             `json:"last-notify-status"`
	Metadata    json.RawMessage `json:"metadata"`
}

func shownSubscription(s Subscription) subscriptionShown {
	return subscriptionShown{
		Name: s.Name, MinInterval: int64(s.MinInterval / time.Second), Callback: s.Callback, Metadata: s.Metadata,
		LastUpdate: s.LastUpdate.UTC(), LastNotify: s.LastNotify.UTC(), LastStatus: s.LastStatus,
	}
}

func (a *API) subscriptionRoutes(r *mux.Router) {
	const all = "/v1/instance/{instance}/status/subscription"
	const one = all + "/{subscription}"
	a.on(r, http.MethodPost, all, a.createSubscription)
	a.on(r, http.MethodGet, all, a.listSubscriptions)
	a.on(r, http.MethodGet, one, a.getSubscription)
	a.on(r, http.MethodPut, one, a.updateSubscription)
	a.on(r, http.MethodDelete, one, a.deleteSubscription)
}

// decodeSubscription reads what is asked for.
func decodeSubscription(r *http.Request) (Subscription, error) {
	body, err := decode[subscriptionRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return Subscription{}, err
	}
	if len(body.Metadata) > 0 {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body.Metadata, &fields); err != nil {
			return Subscription{}, refuse(http.StatusUnprocessableEntity, jsonText("metadata", body.Metadata, err))
		}
	}
	return Subscription{
		Name: body.Name, MinInterval: time.Duration(body.MinInterval) * time.Second, Callback: body.Callback,
		Metadata: body.Metadata, Secret: nf.Secret(body.Secret),
	}, nil
}

// checkSubscription refuses in ONAP's words what ONAP refuses.
func checkSubscription(s Subscription) error {
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

// failSubscription tells an error of those who notify: what they do not like, in
// ONAP's words for it, and what has no subject by the text for it.
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
		text = prefix(badInterval, v.Message)
	case "callback-url":
		text = prefix(badCallback, v.Message)
	}
	return &refusal{status: http.StatusBadRequest, strict: http.StatusBadRequest, text: text, cause: err}
}

func (a *API) createSubscription(w http.ResponseWriter, r *http.Request) error {
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
	v, err := a.vnfOf(r)
	if err != nil {
		return fail(unknown, err)
	}
	if err := a.mayChange(r, v); err != nil {
		return fail(creating, err)
	}
	s.Instance = v.id
	made, err := a.cfg.Subscriptions.Subscribe(r.Context(), s)
	if err != nil {
		return failSubscription(creating, unknown, err)
	}
	return answer(w, http.StatusCreated, shownSubscription(made))
}

// listSubscriptions lists none of an instance that nobody knows, as ONAP does.
func (a *API) listSubscriptions(w http.ResponseWriter, r *http.Request) error {
	out := []subscriptionShown{}
	v, err := a.vnfOf(r)
	if nf.KindOf(err) == nf.NotFound && !a.cfg.Strict {
		return answer(w, http.StatusOK, out)
	}
	if err != nil {
		return fail("Getting Status Subscription data", err)
	}
	list, err := a.cfg.Subscriptions.SubscriptionsOf(r.Context(), v.id)
	if err != nil {
		return fail("Getting Status Subscription data", err)
	}
	for _, s := range list {
		out = append(out, shownSubscription(s))
	}
	return answer(w, http.StatusOK, out)
}

// What clients look for before noDocuments: one who gets another status or text
// for a subscription that is not there does not start.
const (
	retrieving = "Error retrieving Subscription data"
	missing    = "Subscription does not exist: " + retrieving
)

func (a *API) getSubscription(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail(retrieving, err)
	}
	s, err := a.cfg.Subscriptions.Subscription(r.Context(), v.id, mux.Vars(r)["subscription"])
	if err != nil {
		return fail(retrieving, err)
	}
	return answer(w, http.StatusOK, shownSubscription(s))
}

// updateSubscription changes the subscription that the body names, whatever the
// path does: ONAP's way. A body without a name means that of the path.
func (a *API) updateSubscription(w http.ResponseWriter, r *http.Request) error {
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
	v, err := a.vnfOf(r)
	if err != nil {
		return fail(missing, err)
	}
	if err := a.mayChange(r, v); err != nil {
		return fail("Updating Status Subscription DB Entry", err)
	}
	s.Instance = v.id
	changed, err := a.cfg.Subscriptions.Change(r.Context(), s)
	if err != nil {
		return failSubscription("Updating Status Subscription DB Entry", missing, err)
	}
	return answer(w, http.StatusOK, shownSubscription(changed))
}

func (a *API) deleteSubscription(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail(missing, err)
	}
	if err := a.mayChange(r, v); err != nil {
		return fail("Removing Status Subscription in DB", err)
	}
	if err := a.cfg.Subscriptions.Unsubscribe(r.Context(), v.id, mux.Vars(r)["subscription"]); err != nil {
		return failSubscription("Removing Status Subscription in DB", missing, err)
	}
	return done(w, http.StatusAccepted)
}
