package native

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Letters is what the API asks of the notifications that could not be delivered,
// which are dead letters. All of it is nf.NotFound for a letter that is not dead.
type Letters interface {
	// DeadLetters returns the dead letters, ordered by id.
	DeadLetters(ctx context.Context) ([]Letter, error)
	// Resend puts a dead letter on its way again, and returns it as it is then.
	Resend(ctx context.Context, id string) (Letter, error)
	// Discard forgets a dead letter.
	Discard(ctx context.Context, id string) error
}

// Letter is a notification as far as it may be shown: not what it says, since
// the objects that it tells of may hold secrets.
type Letter struct {
	ID           string
	Instance     string // as the subscription names it
	Subscription string
	Created      time.Time
	Attempts     int
	Due          time.Time // when it is posted next; means nothing when it is dead
	Died         time.Time // zero: it is on its way
	LastStatus   int       // of the last answer; 0: it was not posted yet
	LastError    string
}

// letter is a letter as clients see it.
type letter struct {
	ID           string    `json:"letter_id"`
	Instance     string    `json:"vnf_id"`
	Subscription string    `json:"subscription"`
	Created      time.Time `json:"created_at"`
	Attempts     int       `json:"attempts"`
	Due          time.Time `json:"due_at,omitzero"`
	Died         time.Time `json:"died_at,omitzero"`
	LastStatus   int       `json:"last_status,omitempty"`
	LastError    string    `json:"last_error,omitempty"`
}

func fromLetter(l Letter) letter {
	out := letter(l)
	if !l.Died.IsZero() {
		out.Due = time.Time{}
	}
	return out
}

// letters returns who keeps the letters, or nf.NotFound when nobody does.
func (a *API) letters(op string) (Letters, error) {
	if a.cfg.Letters == nil {
		return nil, nf.E(nf.NotFound, op, "notifications", errors.New("this service notifies nobody"))
	}
	return a.cfg.Letters, nil
}

func (a *API) listLetters(w http.ResponseWriter, r *http.Request) error {
	letters, err := a.letters("list")
	if err != nil {
		return err
	}
	all, err := letters.DeadLetters(r.Context())
	if err != nil {
		return err
	}
	query := r.URL.Query()
	page := paginate(r, all, func(l Letter) string { return l.ID }, func(l Letter) bool {
		return (!query.Has("vnf_id") || query.Get("vnf_id") == l.Instance) &&
			(!query.Has("subscription") || query.Get("subscription") == l.Subscription)
	})
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []letter `json:"letters"`
		Next  string   `json:"next,omitempty"`
	}{each(page.items, fromLetter), page.next})
}

func (a *API) resendLetter(w http.ResponseWriter, r *http.Request) error {
	letters, err := a.letters("resend")
	if err != nil {
		return err
	}
	l, err := letters.Resend(r.Context(), mux.Vars(r)["letter_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, fromLetter(l))
}

func (a *API) discardLetter(w http.ResponseWriter, r *http.Request) error {
	letters, err := a.letters("discard")
	if err != nil {
		return err
	}
	if err := letters.Discard(r.Context(), mux.Vars(r)["letter_id"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
