package onap_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// The fields of ONAP's objects, in alphabetical order. "[]" is each item of a list.
const (
	definitionFields   = "chart-name description labels rb-name rb-version"
	profileFields      = "extra-resource-types[].Group extra-resource-types[].Kind extra-resource-types[].Version kubernetes-version labels namespace profile-name rb-name rb-version release-name"
	templateFields     = "chart-name description has-content template-name"
	connectionFields   = "cloud-owner cloud-region kubeconfig other-connectivity-list.connectivity-records"
	requestFields      = "request.cloud-region request.labels request.override-values request.profile-name request.rb-name request.rb-version request.release-name"
	resourceFields     = "resources[].GVK.Group resources[].GVK.Kind resources[].GVK.Version resources[].Name"
	instanceFields     = "id namespace release-name " + requestFields + " " + resourceFields
	hookFields         = "hooks[].events hooks[].kind hooks[].manifest hooks[].name hooks[].path"
	objectFields       = "resourceCount resourcesStatus[].GVK.Group resourcesStatus[].GVK.Kind resourcesStatus[].GVK.Version resourcesStatus[].name resourcesStatus[].status"
	subscriptionFields = "callback-url last-notify-status last-notify-time last-update-time metadata min-notify-interval name"
	configFields       = "config-name config-tag config-version description template-name values"
	resultFields       = "config-name config-version instance-id profile-name rb-name rb-version template-name"
	tagFields          = "config-tag config-version"
	workloadFields     = "template_type workload_id workload_status"
)

// free are the names of fields whose content is the client's or the cluster's.
func free(name string) bool {
	return slices.Contains([]string{"labels", "override-values", "values", "metadata", "status", "connectivity-records", "events"}, name)
}

// exchange is a request, and the fields that ONAP's plugin answers it with.
type exchange struct {
	request, body string
	status        int
	fields        string // none: the answer has no body
	more          string // that only this service has; never where a client refuses what it does not know
}

func fieldExchanges() []exchange {
	const (
		definitions, fw = "/v1/rb/definition", "/v1/rb/definition/fw/1"
		one, checks     = "/v1/instance/id1", "/v1/instance/id1/healthcheck"
		heat, further   = "/acme/east/infra_workload", "description config-tag values"
		connection      = `{"cloud-region": "core", "cloud-owner": "acme", "kubeconfig": "eA==", "other-connectivity-list": {"connectivity-records": [{"a": "b"}]}}`
		config          = `{"config-name": "c", "template-name": "ssh", "values": {"n": 1}}`
	)
	chart, overlay := charts()
	list := func(fields string) string { return "[]." + strings.ReplaceAll(fields, " ", " [].") }
	return []exchange{
		{"POST " + definitions, `{"rb-name": "lb", "rb-version": "1"}`, 201, definitionFields, ""},
		{"GET " + definitions, "", 200, list(definitionFields), ""},
		{"GET " + definitions + "/lb", "", 200, list(definitionFields), ""},
		{"GET " + definitions + "/lb/1", "", 200, definitionFields, ""},
		{"PUT " + definitions + "/lb/1", `{}`, 201, definitionFields, ""},
		{"POST " + definitions + "/lb/1/content", chart, 200, "", ""},
		{"DELETE " + definitions + "/lb/1", "", 204, "", ""},
		{"POST " + fw + "/profile", `{"profile-name": "core", "extra-resource-types": [{"Group": "g", "Version": "v1", "Kind": "K"}]}`, 201, profileFields, ""},
		{"GET " + fw + "/profile", "", 200, list(profileFields), ""},
		{"GET " + fw + "/profile/core", "", 200, profileFields, ""},
		{"PUT " + fw + "/profile/core", `{"extra-resource-types": [{"Group": "g", "Version": "v1", "Kind": "K"}]}`, 200, profileFields, ""},
		{"POST " + fw + "/profile/core/content", overlay, 200, "", ""},
		{"DELETE " + fw + "/profile/core", "", 204, "", ""},
		{"POST " + fw + "/config-template", `{"template-name": "dns"}`, 201, templateFields, ""},
		{"GET " + fw + "/config-template", "", 200, list("description template-name"), ""},
		{"GET " + fw + "/config-template/dns", "", 200, templateFields, ""},
		{"PUT " + fw + "/config-template/dns", `{"template-name": "dns"}`, 201, templateFields, ""},
		{"POST " + fw + "/config-template/dns/content", chart, 200, "", ""},
		{"DELETE " + fw + "/config-template/dns", "", 204, "", ""},
		{"POST /v1/connectivity-info", connection, 201, connectionFields, ""},
		{"GET /v1/connectivity-info/core", "", 200, connectionFields, ""},
		{"DELETE /v1/connectivity-info/core", "", 204, "", ""},
		{"GET /v1/instance", "", 200, list("id namespace release-name " + requestFields), ""},
		{"GET " + one, "", 200, instanceFields, ""},
		{"GET " + one + "?full=true", "", 200, "PostDeleteTimeout PostInstallTimeout PostUpgradeTimeout PreDeleteTimeout PreInstallTimeout PreUpgradeTimeout " +
			"hook-progress status " + hookFields + " " + instanceFields, ""},
		{"GET " + one + "/status", "", 200, "ready " + requestFields + " " + objectFields, ""},
		{"GET " + one + "/query?ApiVersion=v1&Kind=ConfigMap", "", 200, "ready " + requestFields + " " + objectFields, ""},
		{"GET /v1/query?CloudRegion=east&ApiVersion=v1&Kind=ConfigMap&Labels=" + nf.OwnerLabel + "=id1", "", 200, objectFields, ""},
		{"POST " + one + "/config", config, 201, resultFields, further},
		{"PUT " + one + "/config/c", config, 201, resultFields, further},
		{"POST " + one + "/config/c/tagit", `{"tag-name": "x"}`, 200, tagFields, ""},
		{"GET " + one + "/config", "", 200, list(configFields), ""},
		{"GET " + one + "/config/c", "", 200, configFields, ""},
		{"GET " + one + "/config/c/tag", "", 200, list(tagFields), ""},
		{"GET " + one + "/config/c/tag/x", "", 200, configFields, ""},
		{"GET " + one + "/config/c/version", "", 200, list(configFields), ""},
		{"GET " + one + "/config/c/version/1", "", 200, configFields, ""},
		{"POST " + one + "/config/c/rollback", `{"config-version": "1"}`, 200, resultFields, further},
		{"POST " + one + "/config/c/delete", "", 200, resultFields, further},
		{"DELETE " + one + "/config/c", "", 202, "", ""},
		{"POST " + subscriptions, `{"name": "s", "callback-url": "http://so.example.org/x"}`, 201, subscriptionFields, ""},
		{"GET " + subscriptions, "", 200, list(subscriptionFields), ""},
		{"GET " + subscriptions + "/s", "", 200, subscriptionFields, ""},
		{"PUT " + subscriptions + "/s", `{"callback-url": "http://so.example.org/y"}`, 200, subscriptionFields, ""},
		{"DELETE " + subscriptions + "/s", "", 202, "", ""},
		{"POST " + checks, "", 201, "healthcheck-id status", ""},
		{"GET " + checks, "", 200, "healthcheck-summary[].healthcheck-id healthcheck-summary[].status instance-id " + hookFields, ""},
		{"GET " + checks + "/{run}", "", 200, "healthcheck-id instance-id status test-suite.CompletedAt test-suite.StartedAt test-suite.Results[].completed_at " +
			"test-suite.Results[].name test-suite.Results[].started_at test-suite.Results[].status", ""},
		{"DELETE " + checks + "/{run}", "", 202, "", ""},
		{"POST " + one + "/upgrade", strings.Replace(fwRequest, `"x"`, `"y"`, 1), 201, instanceFields, ""},
		{"GET /v1/healthcheck", "", 200, "", ""},
		{"POST " + heat, stackRequest, 201, "template_response[].GVK.Group template_response[].GVK.Kind template_response[].GVK.Version template_response[].Name " +
			workloadFields + " workload_status_reason", ""},
		{"GET " + heat + "?name=s1", "", 200, workloadFields + " workload_status_reason.stacks[].id workload_status_reason.stacks[].stack_status", ""},
		{"GET " + heat + "/{workload}", "", 200, workloadFields + " workload_status_reason", ""},
		{"POST " + heat + "/{workload}", `{}`, 202, "", ""},
		{"DELETE " + heat + "/{workload}", "", 202, workloadFields + " workload_status_reason", ""},
		{"POST /acme/east/capacity_check", `{"vCPU": 1, "Memory": 1, "Storage": 1}`, 200, "AZs[].MemoryAvail AZs[].MemoryTotal AZs[].StorageAvail AZs[].StorageTotal " +
			"AZs[].availability-zone-name AZs[].vCPUAvail AZs[].vCPUTotal result", ""},
		{"DELETE " + one, "", 202, "", ""},
		{"POST /acme/east/registry", `{"defaultTenant": "t"}`, 202, "", ""},
		{"GET /acme/inventory/registry", "", 200, "status", ""},
		{"DELETE /acme/inventory/registry", "", 204, "", ""},
		{"POST /v1/instance", fwRequest, 201, instanceFields, ""},
	}
}

// TestAnswersHaveONAPsFields compares the fields of every answer with those of
// ONAP's plugin. A route without an exchange fails the test.
func TestAnswersHaveONAPsFields(t *testing.T) {
	t.Parallel()
	w := subscribing(t, false)
	w.live.hooks = []onap.PlannedHook{{Name: "h", Events: []nf.HookEvent{nf.TestRun}}}
	w.steps = []nf.Step{northboundtest.HookStep(nf.PhaseHookCreate, nf.TestRun, [2]int{1, 1}, nf.Ref{Kind: "Pod", Name: "h"}), northboundtest.HookStep(nf.PhaseHookWait, nf.TestRun, [2]int{1, 1}, nf.Ref{Kind: "Pod", Name: "h"})}
	for i := range w.steps {
		w.steps[i].Started, w.steps[i].Finished = noon(1+i), noon(2+i)
	}
	asked, known := map[string]bool{}, map[string]string{}
	for _, e := range fieldExchanges() {
		request := strings.NewReplacer("{run}", known["healthcheck-id"], "{workload}", known["workload_id"]).Replace(e.request)
		got := w.ask(t, request, e.body)
		if got.status != e.status {
			t.Fatalf("%s: %d %s", request, got.status, got.body)
		}
		asked[w.route(t, request)] = true
		var answer any
		if got.body != "" {
			answer = parsed(t, got.body)
		}
		if object, ok := answer.(map[string]any); ok {
			for _, id := range []string{"healthcheck-id", "workload_id"} {
				if text, ok := object[id].(string); ok {
					known[id] = text
				}
			}
		}
		want := slices.Sorted(slices.Values(strings.Fields(e.fields + " " + e.more)))
		if diff := cmp.Diff(want, fieldsOf(answer)); diff != "" {
			t.Errorf("%s: the fields (-want +got):\n%s\n%s", request, diff, got.body)
		}
	}
	err := w.server.(*mux.Router).Walk(func(r *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := r.GetPathTemplate()
		if err != nil {
			return err
		}
		methods, err := r.GetMethods()
		for _, method := range methods {
			if !asked[method+" "+path] {
				t.Errorf("%s %s is not asked for", method, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// route returns the route that a request matches: "GET /v1/instance/{instance}".
func (w *world) route(t *testing.T, request string) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var match mux.RouteMatch
	if !w.server.(*mux.Router).Match(r, &match) {
		t.Fatalf("%s matches no route", request)
	}
	template, err := match.Route.GetPathTemplate()
	if err != nil {
		t.Fatal(err)
	}
	return method + " " + template
}

// fieldsOf returns the paths of an answer's fields, sorted.
func fieldsOf(answer any) []string {
	found := map[string]bool{}
	walkFields("", answer, found)
	out := slices.Sorted(maps.Keys(found))
	return slices.DeleteFunc(out, func(path string) bool { // null in one item of a list, and a list in another
		return slices.ContainsFunc(out, func(other string) bool { return strings.HasPrefix(other, path+"[]") })
	})
}

func walkFields(path string, value any, found map[string]bool) {
	name := path[strings.LastIndex(path, ".")+1:]
	switch v := value.(type) {
	case map[string]any:
		if free(name) {
			break
		}
		for key, inner := range v {
			walkFields(strings.TrimPrefix(path+"."+key, "."), inner, found)
		}
		return
	case []any:
		if free(name) || len(v) == 0 {
			break
		}
		for _, inner := range v {
			walkFields(path+"[]", inner, found)
		}
		return
	}
	if path != "" {
		found[path] = true
	}
}

// charts returns the archives of a chart and of an overlay.
func charts() (chart, overlay string) {
	return string(rendertest.TarGz(map[string]string{"a/Chart.yaml": "name: a\n"})), string(rendertest.TarGz(map[string]string{"manifest.yaml": "version: v1\n"}))
}
