package vnflcm

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// occurrences serves occurrences.
type occurrences struct {
	e edition

	store    Occurrences
	recovery Recovery
}

// occurrenceOf converts an occurrence. Base is the address of the API.
func (e edition) occurrenceOf(o nf.Occurrence, base string) wire.VNFOccurrence {
	out := wire.VNFOccurrence{
		ID: o.ID, State: o.State, Entered: stamp(o.Entered), Started: stamp(o.Started), VNF: o.VNF, Grant: o.Grant, Operation: o.Operation,
		Automatic: o.Automatic, Params: o.Params, Cancel: o.Cancel, VNFModifications: wire.VNFModificationsOf(o), Links: e.occurrenceLinks(o, base),
	}
	if f := o.Failure; f != nil {
		status := northbound.Status(nf.E(f.Kind, "", "", nil))
		out.Error = &wire.VNFProblem{Status: status, Title: http.StatusText(status), Detail: f.Message}
	}
	if changes := wire.VNFCChangesOf(o); changes != nil {
		out.Resources = &wire.VNFChanges{VNFCs: changes}
	}
	return out
}

// stamp writes a time as RFC 3339 has it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// occurrenceLinks returns the links to the requests that the state of an occurrence
// allows.
func (e edition) occurrenceLinks(o nf.Occurrence, base string) map[string]wire.VNFLink {
	self := e.occurrenceAt(base, o.ID)
	out := map[string]wire.VNFLink{"self": {Href: self}, "vnfInstance": {Href: e.vnfAt(base, o.VNF)}}
	if o.State == nf.OccurrenceFailedTemp {
		out["retry"], out["fail"] = wire.VNFLink{Href: self + "/retry"}, wire.VNFLink{Href: self + "/fail"}
		if o.CanUndo {
			out["rollback"] = wire.VNFLink{Href: self + "/rollback"}
		}
	}
	if o.State.Running() && !o.Cancel {
		out["cancel"] = wire.VNFLink{Href: self + "/cancel"}
	}
	return out
}

func (oc occurrences) list(w http.ResponseWriter, r *http.Request) error {
	base := oc.e.base(r)
	return sol013.Listing[nf.Occurrence]{
		Attributes: sol013.Attributes{
			Mandatory: []string{"id", "operationState", "stateEnteredTime", "startTime", "vnfInstanceId", "operation", "isAutomaticInvocation", "isCancelPending", "_links"},
			Excluded:  []string{"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity"},
		},
		ID: func(o nf.Occurrence) string { return o.ID },
		Indexed: map[string]func(string) nf.Attribute{
			"vnfInstanceId": func(id string) nf.Attribute {
				return nf.Attribute{Name: nf.AttributeSubject, Value: nf.Subject{Kind: nf.VNFSubject, ID: id}.String()}
			},
			"operationState": of(nf.AttributeState),
		},
		Show: func(_ *http.Request, o nf.Occurrence) (any, error) { return oc.e.occurrenceOf(o, base), nil },
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.Occurrence, error] {
		return oc.store.OccurrencesFrom(r.Context(), from)
	})
}

func (oc occurrences) get(w http.ResponseWriter, r *http.Request) error {
	o, err := oc.store.Occurrence(r.Context(), occurrenceID(r))
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, oc.e.occurrenceOf(o, oc.e.base(r)))
}

func (oc occurrences) retry(w http.ResponseWriter, r *http.Request) error {
	return accepted(w, r, oc.recovery.Retry)
}

func (oc occurrences) rollback(w http.ResponseWriter, r *http.Request) error {
	return accepted(w, r, oc.recovery.Rollback)
}

// accepted answers 202 when a request about an occurrence is accepted.
func accepted(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, id string, key nf.RequestKey) error) error {
	key, err := northbound.RequestKey(r, nil)
	if err != nil {
		return err
	}
	if err := do(r.Context(), occurrenceID(r), key); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (oc occurrences) fail(w http.ResponseWriter, r *http.Request) error {
	o, err := oc.recovery.Fail(r.Context(), occurrenceID(r))
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, oc.e.occurrenceOf(o, oc.e.base(r)))
}

// cancellation is a CancelMode.
type cancellation struct {
	Mode string `json:"cancelMode"`
}

func (oc occurrences) cancel(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[cancellation](r)
	if err != nil {
		return err
	}
	if err := oc.recovery.Cancel(r.Context(), occurrenceID(r), in.Mode == "FORCEFUL"); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func occurrenceID(r *http.Request) string { return mux.Vars(r)["occurrence_id"] }
