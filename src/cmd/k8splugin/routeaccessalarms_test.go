package main

import (
	"context"
	"maps"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// subscriptionNames are the names that subscriptions to the other interfaces are asked for
// by: a subscription has one interface.
func subscriptionNames() map[string]string {
	return map[string]string{"/vnflcm/v1/subscriptions": "subscription_v1", "/vnffm/v1/subscriptions": "subscription_fm"}
}

// vnfNotifyRouteAccess lists the identities that may make the requests about
// subscriptions and alarms of SOL003.
func vnfNotifyRouteAccess() map[string][]routeRule {
	out := map[string][]routeRule{
		"GET /vnffm/v1/alarms":              {{list: true}},
		"GET /vnffm/v1/alarms/{alarm_id}":   {{of: accesstest.Instance, see: nf.ReadInstance}},
		"PATCH /vnffm/v1/alarms/{alarm_id}": {{of: accesstest.Instance, see: nf.ReadInstance, need: nf.ChangeInstance, body: `{"ackState": "ACKNOWLEDGED"}`}},
	}
	maps.Copy(out, performanceRouteAccess())
	for _, of := range []nf.VNFInterface{nf.VNFLifecycle, nf.VNFLifecycleV1, nf.VNFFaults} {
		all := "/" + string(of) + "/subscriptions"
		maps.Copy(out, map[string][]routeRule{
			"POST " + all:                          {{of: accesstest.Package, need: nf.ChangeInstance, query: "?project={project}", body: `{"callbackUri": "http://203.0.113.1/"}`}},
			"GET " + all:                           {{list: true}},
			"GET " + all + "/{subscription_id}":    {{of: accesstest.Package, see: nf.ReadInstance}},
			"DELETE " + all + "/{subscription_id}": {{of: accesstest.Package, see: nf.ReadInstance, need: nf.ChangeInstance}},
		})
	}
	return out
}

// vnfNames stores subscriptions of a project, and an alarm of it in a region, and returns
// their names.
func (w *accessWorld) vnfNames(project, region string) map[string]string {
	w.t.Helper()
	out := w.performanceNames(project)
	out["alarm_id"] = "alarm-" + project + "-" + region
	alarm := struct {
		nf.Alarm

		Key string `json:"key"`
	}{nf.Alarm{ID: out["alarm_id"], VNF: "v", Project: project, Region: region, Severity: nf.AlarmMajor, Event: "PROCESSING_ERROR_ALARM", Raised: time.Now(), Cleared: time.Now()}, "x"}
	ctx := context.WithoutCancel(w.t.Context())
	err := store.NewTable[any](w.db.kv, "vnfalarms/alarms/", "alarm").Put(ctx, alarm.ID, alarm)
	for name, of := range map[string]nf.VNFInterface{"subscription_id": nf.VNFLifecycle, "subscription_v1": nf.VNFLifecycleV1, "subscription_fm": nf.VNFFaults} {
		s := nf.VNFSubscription{ID: name + "-" + project, Project: project, Interface: of, Callback: "http://203.0.113.1/", Filter: nf.VNFFilter{VNFs: []string{"none"}}} // nothing is sent while the store is compared
		out[name] = s.ID
		if err == nil {
			err = store.NewTable[nf.VNFSubscription](w.db.kv, "vnfnotifications/subscriptions/", "subscription").Put(ctx, s.ID, s)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
