package native

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// DeadLetters manages dead letters: notifications, and kubeconfigs that are handed over,
// that could not be delivered.
// Resend and Discard return nf.NotFound if there is no such dead letter.
type DeadLetters interface {
	// DeadLetters returns the dead letters, sorted by id.
	DeadLetters(ctx context.Context) ([]DeadLetter, error)
	// Resend queues a dead letter for delivery and returns it.
	Resend(ctx context.Context, id string) (DeadLetter, error)
	// Discard deletes a dead letter.
	Discard(ctx context.Context, id string) error
}

// DeadLetter is a notification without its content, because the objects in it may
// contain secrets; or a kubeconfig that is handed over, without it.
type DeadLetter struct {
	ID           string
	Instance     string // id in the subscription
	Subscription string // empty: it hands a kubeconfig over
	Region       string // whose kubeconfig it hands over
	Created      time.Time
	Attempts     int
	Due          time.Time // when it is posted next; undefined for a dead letter
	Died         time.Time // when it was given up; zero: not a dead letter
	LastStatus   int       // of the last response; 0: not posted yet
	LastError    string
}

// fromDeadLetter converts a dead letter. The next attempt of a dead one is undefined.
func fromDeadLetter(l DeadLetter) wire.DeadLetter {
	out := wire.DeadLetter(l)
	if !l.Died.IsZero() {
		out.Due = time.Time{}
	}
	return out
}

// deadLetters serves dead letters.
type deadLetters struct{ store DeadLetters }

func (ls deadLetters) routes(on route) {
	const all = "/notifications/dead"
	on(http.MethodGet, all, optional(ls.missing("list"), ls.list))
	on(http.MethodPost, all+"/{notification_id}/resend", optional(ls.missing("resend"), ls.resend))
	on(http.MethodDelete, all+"/{notification_id}", optional(ls.missing("discard"), ls.discard))
}

// missing returns nf.NotFound if there are no notifications.
func (ls deadLetters) missing(op string) error {
	if ls.store != nil {
		return nil
	}
	return nf.E(nf.NotFound, op, "notifications", errors.New("notifications are not enabled"))
}

func (ls deadLetters) list(w http.ResponseWriter, r *http.Request) error {
	all, err := ls.store.DeadLetters(r.Context())
	if err != nil {
		return err
	}
	where := wanted(r, "vnf_id", "subscription", "cloud_region_id")
	page := paginate(r, all, func(l DeadLetter) string { return l.ID }, func(l DeadLetter) bool {
		return nf.Summary{Attributes: []nf.Attribute{{Name: "vnf_id", Value: l.Instance}, {Name: "subscription", Value: l.Subscription}, {Name: "cloud_region_id", Value: l.Region}}}.Has(where)
	})
	return answerPage(w, "dead_letters", page, fromDeadLetter)
}

func (ls deadLetters) resend(w http.ResponseWriter, r *http.Request) error {
	l, err := ls.store.Resend(r.Context(), mux.Vars(r)["notification_id"])
	return respond(w, l, err, fromDeadLetter)
}

func (ls deadLetters) discard(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, ls.store.Discard(r.Context(), mux.Vars(r)["notification_id"]))
}
