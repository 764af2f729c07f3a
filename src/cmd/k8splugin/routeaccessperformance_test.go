package main

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// performanceRouteAccess lists the identities that may make the requests about PM jobs and
// thresholds. The objects of the creations do not exist.
func performanceRouteAccess() map[string][]routeRule {
	const jobs, thresholds = "/vnfpm/v2/pm_jobs", "/vnfpm/v2/thresholds"
	read := []routeRule{{of: accesstest.Package, see: nf.ReadInstance}}
	change := func(body string) []routeRule {
		return []routeRule{{of: accesstest.Package, see: nf.ReadInstance, need: nf.ChangeInstance, body: body}}
	}
	create := func(body string) []routeRule {
		return []routeRule{{of: accesstest.Package, need: nf.ChangeInstance, query: "?project={project}", body: body}}
	}
	return map[string][]routeRule{
		"POST " + jobs:                                     create(`{"objectType": "Vnf", "objectInstanceIds": ["none"], "criteria": {"performanceMetric": ["VCpuUsageMeanVnf"], "collectionPeriod": 30, "reportingPeriod": 60}, "callbackUri": "http://203.0.113.1/"}`),
		"GET " + jobs:                                      {{list: true}},
		"GET " + jobs + "/{pm_job_id}":                     read,
		"PATCH " + jobs + "/{pm_job_id}":                   change(`{"callbackUri": "http://203.0.113.1/"}`),
		"DELETE " + jobs + "/{pm_job_id}":                  change(""),
		"GET " + jobs + "/{pm_job_id}/reports/{report_id}": read,
		"POST " + thresholds:                               create(`{"objectType": "Vnf", "objectInstanceId": "none", "criteria": {"performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": {"thresholdValue": 1}}, "callbackUri": "http://203.0.113.1/"}`),
		"GET " + thresholds:                                {{list: true}},
		"GET " + thresholds + "/{threshold_id}":            read,
		"PATCH " + thresholds + "/{threshold_id}":          change(`{"callbackUri": "http://203.0.113.1/"}`),
		"DELETE " + thresholds + "/{threshold_id}":         change(""),
	}
}

// performanceNames stores a PM job with a report and a threshold of a project, and returns
// their names. The job has ended, and the threshold has no VNF: nothing is written while the
// store is compared.
func (w *accessWorld) performanceNames(project string) map[string]string {
	w.t.Helper()
	ctx, long := context.WithoutCancel(w.t.Context()), time.Now().Add(-time.Hour)
	target := nf.PMTarget{
		ID: "job-" + project, Project: project, Object: nf.PMVNF, VNFs: []string{"none"}, Metrics: []string{"VCpuUsageMeanVnf"}, Callback: "http://203.0.113.1/", Created: long,
	}
	job := nf.PMJob{PMTarget: target, Collection: time.Minute, Reporting: time.Minute, Boundary: long.Add(time.Second)}
	threshold := nf.PMThreshold{PMTarget: target, Value: 1}
	threshold.ID = "threshold-" + project
	ref := nf.PMReportRef{ID: "report-" + project, Ready: long}
	err := errors.Join(
		store.NewTable[nf.PMJob](w.db.kv, "vnfperformance/jobs/", "job").Put(ctx, job.ID, job),
		store.NewTable[nf.PMReport](w.db.kv, "vnfperformance/reports/", "report").Put(ctx, job.ID+"/"+ref.ID, nf.PMReport{PMReportRef: ref, Job: job.ID}),
		store.NewTable[nf.PMThreshold](w.db.kv, "vnfperformance/thresholds/", "threshold").Put(ctx, threshold.ID, threshold),
	)
	for _, id := range []string{job.ID, threshold.ID} {
		s := nf.VNFSubscription{ID: id, Project: project, Interface: nf.VNFPerformance, Callback: target.Callback, Created: long}
		err = errors.Join(err, store.NewTable[nf.VNFSubscription](w.db.kv, "vnfnotifications/subscriptions/", "subscription").Put(ctx, id, s))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return map[string]string{"pm_job_id": job.ID, "report_id": ref.ID, "threshold_id": threshold.ID}
}
