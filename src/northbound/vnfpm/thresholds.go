package vnfpm

import (
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// thresholdRequest is a CreateThresholdRequest.
type thresholdRequest struct {
	Object   nf.PMObject            `json:"objectType"`
	VNF      string                 `json:"objectInstanceId"`
	VNFCs    []string               `json:"subObjectInstanceIds"`
	Criteria thresholdCriteria      `json:"criteria"`
	Callback string                 `json:"callbackUri"`
	Auth     *sol013.Authentication `json:"authentication"`
}

// thresholdCriteria is a ThresholdCriteria of the type SIMPLE.
type thresholdCriteria struct {
	Metric string        `json:"performanceMetric"`
	Type   string        `json:"thresholdType"`
	Simple simpleDetails `json:"simpleThresholdDetails"`
}

type simpleDetails struct {
	Value      float64 `json:"thresholdValue"`
	Hysteresis float64 `json:"hysteresis"`
}

// threshold is a Threshold.
type threshold struct {
	ID       string            `json:"id"`
	Object   nf.PMObject       `json:"objectType"`
	VNF      string            `json:"objectInstanceId"`
	VNFCs    []string          `json:"subObjectInstanceIds,omitempty"`
	Criteria thresholdCriteria `json:"criteria"`
	Callback string            `json:"callbackUri"`
	Links    thresholdLinks    `json:"_links"`
}

type thresholdLinks struct {
	Self   wire.VNFLink `json:"self"`
	Object wire.VNFLink `json:"object"`
}

func (a *API) thresholdLink(id string) wire.VNFLink {
	return wire.VNFLinkTo(a.cfg.Endpoint, nf.VNFPerformance, "thresholds", id)
}

func (a *API) thresholdOf(of nf.PMThreshold) threshold {
	return threshold{
		ID: of.ID, Object: of.Object, VNF: of.VNFs[0], VNFCs: of.VNFCs, Callback: of.Callback,
		Criteria: thresholdCriteria{of.Metrics[0], "SIMPLE", simpleDetails{of.Value, of.Hysteresis}},
		Links:    thresholdLinks{a.thresholdLink(of.ID), a.vnfLink(of.VNFs[0])},
	}
}

func (a *API) createThreshold(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[thresholdRequest](r)
	if err != nil {
		return err
	}
	auth, err := authOf(in.Auth)
	if err != nil {
		return err
	}
	made, err := a.cfg.Thresholds.CreateThreshold(r.Context(), nf.PMThreshold{
		PMTarget: nf.PMTarget{
			Project: r.URL.Query().Get("project"), Object: in.Object, VNFs: []string{in.VNF}, VNFCs: in.VNFCs, Metrics: []string{in.Criteria.Metric},
			Callback: in.Callback,
		},
		Value: in.Criteria.Simple.Value, Hysteresis: in.Criteria.Simple.Hysteresis,
	}, auth)
	if err != nil {
		return refusal(err)
	}
	return created(w, a.thresholdLink(made.ID).Href, a.thresholdOf(made))
}

func (a *API) listThresholds(w http.ResponseWriter, r *http.Request) error {
	return sol013.Listing[nf.PMThreshold]{
		Attributes: sol013.Attributes{Mandatory: []string{"id", "objectType", "objectInstanceId", "criteria", "callbackUri", "_links"}},
		ID:         func(one nf.PMThreshold) string { return one.ID },
		Show:       func(_ *http.Request, one nf.PMThreshold) (any, error) { return a.thresholdOf(one), nil },
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.PMThreshold, error] {
		return a.cfg.Thresholds.ThresholdsFrom(r.Context(), from)
	})
}

func (a *API) getThreshold(w http.ResponseWriter, r *http.Request) error {
	found, err := a.cfg.Thresholds.Threshold(r.Context(), mux.Vars(r)["threshold_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, a.thresholdOf(found))
}

func (a *API) modifyThreshold(w http.ResponseWriter, r *http.Request) error {
	return modify(w, r, func(change nf.PMModification) (nf.PMTarget, error) {
		changed, err := a.cfg.Thresholds.ModifyThreshold(r.Context(), mux.Vars(r)["threshold_id"], change)
		return changed.PMTarget, err
	})
}

func (a *API) deleteThreshold(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Thresholds.DeleteThreshold(r.Context(), mux.Vars(r)["threshold_id"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
