package vnffm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Alarms stores alarms.
type Alarms interface {
	// Alarm returns an alarm, or nf.NotFound.
	Alarm(ctx context.Context, id string) (nf.Alarm, error)
	// AlarmsFrom yields the alarms, sorted by id.
	AlarmsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Alarm, error]
	// UpdateAlarm edits Acknowledged of an alarm. Edit may be called more than once.
	UpdateAlarm(ctx context.Context, id string, edit func(*nf.Alarm) error) (nf.Alarm, error)
}

// Config configures the API. Alarms is required.
type Config struct {
	Alarms   Alarms
	Endpoint string           // begins the links; default: links are paths
	Clock    func() time.Time // default: time.Now
}

// API serves alarms.
type API struct{ cfg Config }

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Alarms == nil {
		return nil, errors.New("cannot create the API of alarms: Alarms is required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &API{cfg}, nil
}

const (
	root = "/vnffm/v1/alarms"
	one  = root + "/{alarm_id}"
)

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	on := func(method, path string, h northbound.Handler) { r.Handle(path, sol013.Versioned(h)).Methods(method) }
	on(http.MethodGet, root, a.list)
	on(http.MethodGet, one, a.get)
	on(http.MethodPatch, one, a.update)
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	return sol013.Listing[nf.Alarm]{
		Attributes: sol013.Attributes{Mandatory: []string{
			"id", "managedObjectId", "alarmRaisedTime", "ackState", "perceivedSeverity", "eventTime", "eventType", "probableCause", "isRootCause", "_links",
		}},
		ID:   func(of nf.Alarm) string { return of.ID },
		Show: func(_ *http.Request, of nf.Alarm) (any, error) { return wire.VNFAlarmOf(a.cfg.Endpoint, of), nil },
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.Alarm, error] { return a.cfg.Alarms.AlarmsFrom(r.Context(), from) })
}

func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	found, err := a.cfg.Alarms.Alarm(r.Context(), mux.Vars(r)["alarm_id"])
	if err != nil {
		return err
	}
	tag, err := tagOf(found)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", tag)
	return northbound.Answer(w, http.StatusOK, wire.VNFAlarmOf(a.cfg.Endpoint, found))
}

// tagOf returns the entity tag of an alarm.
func tagOf(of nf.Alarm) (string, error) {
	content, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("cannot encode the alarm: %w", err)
	}
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:8]) + `"`, nil
}

// modifications is an AlarmModifications.
type modifications struct {
	State string `json:"ackState"`
}

const acknowledged = "ACKNOWLEDGED"

func (a *API) update(w http.ResponseWriter, r *http.Request) error {
	change, err := northbound.Decode[modifications](r)
	if err != nil {
		return err
	}
	id := mux.Vars(r)["alarm_id"]
	_, err = a.cfg.Alarms.UpdateAlarm(r.Context(), id, func(of *nf.Alarm) error {
		if wanted := r.Header.Get("If-Match"); wanted != "" && wanted != "*" {
			if tag, err := tagOf(*of); err != nil || tag != wanted {
				return errors.Join(err, northbound.Refusal(http.StatusPreconditionFailed, "the alarm has changed; get it again"))
			}
		}
		if (change.State == acknowledged) != of.Acknowledged.IsZero() {
			return nf.E(nf.Conflict, "update", "alarm "+id, fmt.Errorf("it is %s already", change.State))
		}
		of.Acknowledged = time.Time{}
		if change.State == acknowledged {
			of.Acknowledged = a.cfg.Clock().UTC()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, change)
}
