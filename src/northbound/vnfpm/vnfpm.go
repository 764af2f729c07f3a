package vnfpm

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

// Jobs stores PM jobs and their reports.
type Jobs interface {
	// CreateJob stores a job under a new id. It returns nf.Invalid, nf.NotFound for a VNF,
	// nf.Conflict, nf.Unsupported if a VNF cannot be measured, and nf.Failed if the callback
	// does not pass its test.
	CreateJob(ctx context.Context, job nf.PMJob, auth nf.CallbackAuth) (nf.PMJob, error)
	// Job returns a job, or nf.NotFound.
	Job(ctx context.Context, id string) (nf.PMJob, error)
	// JobsFrom yields the jobs, sorted by id.
	JobsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMJob, error]
	// ModifyJob changes the callback of a job. It returns nf.NotFound, nf.Invalid and
	// nf.Failed.
	ModifyJob(ctx context.Context, id string, change nf.PMModification) (nf.PMJob, error)
	// DeleteJob deletes a job with its reports, or returns nf.NotFound.
	DeleteJob(ctx context.Context, id string) error
}

// Reports stores the reports of PM jobs.
type Reports interface {
	// Report returns a report of a job, or nf.NotFound.
	Report(ctx context.Context, job, id string) (nf.PMReport, error)
}

// Thresholds stores thresholds. The errors are those of Jobs.
type Thresholds interface {
	CreateThreshold(ctx context.Context, t nf.PMThreshold, auth nf.CallbackAuth) (nf.PMThreshold, error)
	Threshold(ctx context.Context, id string) (nf.PMThreshold, error)
	ThresholdsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.PMThreshold, error]
	ModifyThreshold(ctx context.Context, id string, change nf.PMModification) (nf.PMThreshold, error)
	DeleteThreshold(ctx context.Context, id string) error
}

// Config configures the API. Jobs, Reports and Thresholds are required.
type Config struct {
	Jobs       Jobs
	Reports    Reports
	Thresholds Thresholds
	Endpoint   string // begins the links; default: links are paths
}

// API serves PM jobs and thresholds.
type API struct{ cfg Config }

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Jobs == nil || cfg.Reports == nil || cfg.Thresholds == nil {
		return nil, errors.New("cannot create the API of performance: Jobs, Reports and Thresholds are required")
	}
	return &API{cfg}, nil
}

const (
	jobs       = "/vnfpm/v2/pm_jobs"
	thresholds = "/vnfpm/v2/thresholds"
)

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	on := func(method, path string, h northbound.Handler) { r.Handle(path, sol013.Versioned(h)).Methods(method) }
	on(http.MethodPost, jobs, a.createJob)
	on(http.MethodGet, jobs, a.listJobs)
	on(http.MethodGet, jobs+"/{pm_job_id}", a.getJob)
	on(http.MethodPatch, jobs+"/{pm_job_id}", a.modifyJob)
	on(http.MethodDelete, jobs+"/{pm_job_id}", a.deleteJob)
	on(http.MethodGet, jobs+"/{pm_job_id}/reports/{report_id}", a.getReport)
	on(http.MethodPost, thresholds, a.createThreshold)
	on(http.MethodGet, thresholds, a.listThresholds)
	on(http.MethodGet, thresholds+"/{threshold_id}", a.getThreshold)
	on(http.MethodPatch, thresholds+"/{threshold_id}", a.modifyThreshold)
	on(http.MethodDelete, thresholds+"/{threshold_id}", a.deleteThreshold)
}

// created responds with a resource that was created.
func created(w http.ResponseWriter, self string, document any) error {
	w.Header().Set("Location", self)
	return northbound.Answer(w, http.StatusCreated, document)
}

// refusal returns 422 for a callback that has not passed its test, and other errors as they
// are.
func refusal(err error) error {
	if nf.KindOf(err) == nf.Failed {
		return northbound.Refusal(http.StatusUnprocessableEntity, err.Error())
	}
	return err
}

// modified is a PmJobModifications or a ThresholdModifications of a response.
type modified struct {
	Callback string `json:"callbackUri"`
}

// modification is a PmJobModifications or a ThresholdModifications of a request.
type modification struct {
	Callback string                 `json:"callbackUri"`
	Auth     *sol013.Authentication `json:"authentication"`
}

// modify reads a modification from a request, applies it, and responds with the callback.
func modify(w http.ResponseWriter, r *http.Request, apply func(nf.PMModification) (nf.PMTarget, error)) error {
	in, err := northbound.Decode[modification](r)
	if err != nil {
		return err
	}
	change := nf.PMModification{Callback: in.Callback}
	if in.Auth != nil {
		auth, err := in.Auth.Auth()
		if err != nil {
			return err
		}
		change.Auth = &auth
	}
	t, err := apply(change)
	if err != nil {
		return refusal(err)
	}
	return northbound.Answer(w, http.StatusOK, modified{t.Callback})
}

// authOf returns the authentication of a request, which may have none.
func authOf(a *sol013.Authentication) (nf.CallbackAuth, error) {
	if a == nil {
		return nf.CallbackAuth{}, nil
	}
	return a.Auth()
}
