package vnfpm

import (
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// jobRequest is a CreatePmJobRequest.
type jobRequest struct {
	Object   nf.PMObject            `json:"objectType"`
	VNFs     []string               `json:"objectInstanceIds"`
	VNFCs    []string               `json:"subObjectInstanceIds"`
	Criteria jobCriteria            `json:"criteria"`
	Callback string                 `json:"callbackUri"`
	Auth     *sol013.Authentication `json:"authentication"`
}

// jobCriteria is a VnfPmJobCriteria. The periods are seconds.
type jobCriteria struct {
	Metrics    []string  `json:"performanceMetric,omitempty"`
	Groups     []string  `json:"performanceMetricGroup,omitempty"`
	Collection int       `json:"collectionPeriod"`
	Reporting  int       `json:"reportingPeriod"`
	Boundary   time.Time `json:"reportingBoundary,omitzero"`
}

// job is a PmJob.
type job struct {
	ID       string      `json:"id"`
	Object   nf.PMObject `json:"objectType"`
	VNFs     []string    `json:"objectInstanceIds"`
	VNFCs    []string    `json:"subObjectInstanceIds,omitempty"`
	Criteria jobCriteria `json:"criteria"`
	Callback string      `json:"callbackUri"`
	Reports  []reportRef `json:"reports"`
	Links    jobLinks    `json:"_links"`
}

type reportRef struct {
	Href  string    `json:"href"`
	Ready time.Time `json:"readyTime"`
}

type jobLinks struct {
	Self    wire.VNFLink   `json:"self"`
	Objects []wire.VNFLink `json:"objects"`
}

func (a *API) jobLink(id string) wire.VNFLink {
	return wire.VNFLinkTo(a.cfg.Endpoint, nf.VNFPerformance, "pm_jobs", id)
}

func (a *API) vnfLink(id string) wire.VNFLink {
	return wire.VNFLinkTo(a.cfg.Endpoint, nf.VNFLifecycle, "vnf_instances", id)
}

func (a *API) jobOf(of nf.PMJob) job {
	out := job{
		ID: of.ID, Object: of.Object, VNFs: of.VNFs, VNFCs: of.VNFCs, Callback: of.Callback, Reports: []reportRef{},
		Criteria: jobCriteria{of.Metrics, of.Groups, int(of.Collection / time.Second), int(of.Reporting / time.Second), of.Boundary},
		Links:    jobLinks{Self: a.jobLink(of.ID)},
	}
	for _, id := range of.VNFs {
		out.Links.Objects = append(out.Links.Objects, a.vnfLink(id))
	}
	for _, r := range of.Reports {
		out.Reports = append(out.Reports, reportRef{out.Links.Self.Href + "/reports/" + r.ID, r.Ready})
	}
	return out
}

func (a *API) createJob(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[jobRequest](r)
	if err != nil {
		return err
	}
	auth, err := authOf(in.Auth)
	if err != nil {
		return err
	}
	made, err := a.cfg.Jobs.CreateJob(r.Context(), nf.PMJob{
		PMTarget: nf.PMTarget{
			Project: r.URL.Query().Get("project"), Object: in.Object, VNFs: in.VNFs, VNFCs: in.VNFCs, Metrics: in.Criteria.Metrics, Callback: in.Callback,
		},
		Groups: in.Criteria.Groups, Collection: time.Duration(in.Criteria.Collection) * time.Second,
		Reporting: time.Duration(in.Criteria.Reporting) * time.Second, Boundary: in.Criteria.Boundary,
	}, auth)
	if err != nil {
		return refusal(err)
	}
	return created(w, a.jobLink(made.ID).Href, a.jobOf(made))
}

func (a *API) listJobs(w http.ResponseWriter, r *http.Request) error {
	return sol013.Listing[nf.PMJob]{
		Attributes: sol013.Attributes{
			Mandatory: []string{"id", "objectType", "objectInstanceIds", "criteria", "callbackUri", "_links"}, Excluded: []string{"reports"},
		},
		ID:   func(one nf.PMJob) string { return one.ID },
		Show: func(_ *http.Request, one nf.PMJob) (any, error) { return a.jobOf(one), nil },
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.PMJob, error] { return a.cfg.Jobs.JobsFrom(r.Context(), from) })
}

func (a *API) getJob(w http.ResponseWriter, r *http.Request) error {
	found, err := a.cfg.Jobs.Job(r.Context(), mux.Vars(r)["pm_job_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, a.jobOf(found))
}

func (a *API) modifyJob(w http.ResponseWriter, r *http.Request) error {
	return modify(w, r, func(change nf.PMModification) (nf.PMTarget, error) {
		changed, err := a.cfg.Jobs.ModifyJob(r.Context(), mux.Vars(r)["pm_job_id"], change)
		return changed.PMTarget, err
	})
}

func (a *API) deleteJob(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Jobs.DeleteJob(r.Context(), mux.Vars(r)["pm_job_id"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// report is a PerformanceReport.
type report struct {
	Entries []entry `json:"entries"`
}

type entry struct {
	Object nf.PMObject `json:"objectType"`
	VNF    string      `json:"objectInstanceId"`
	VNFC   string      `json:"subObjectInstanceId,omitempty"`
	Metric string      `json:"performanceMetric"`
	Values []value     `json:"performanceValues"`
}

type value struct {
	Time  time.Time `json:"timeStamp"`
	Value float64   `json:"value"`
}

func (a *API) getReport(w http.ResponseWriter, r *http.Request) error {
	found, err := a.cfg.Reports.Report(r.Context(), mux.Vars(r)["pm_job_id"], mux.Vars(r)["report_id"])
	if err != nil {
		return err
	}
	out := report{Entries: []entry{}}
	for _, e := range found.Entries {
		out.Entries = append(out.Entries, entry{e.Object, e.VNF, e.VNFC, e.Name(), []value{{e.Time.UTC(), e.Value}}})
	}
	return northbound.Answer(w, http.StatusOK, out)
}
