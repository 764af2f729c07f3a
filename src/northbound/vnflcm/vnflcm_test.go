package vnflcm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := vnflcm.New(vnflcm.Config{}); err == nil {
		t.Error("an API without parts was made")
	}
}

// TestCreation has the life of a VNF that is never instantiated.
func TestCreation(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		got := w.want(http.StatusCreated, "POST", "/vnf_instances?project=edge", `{"vnfdId": "`+knownVNFD+`", "vnfInstanceName": "fw", "vnfInstanceDescription": "a firewall", "metadata": {"site": "east"}, "unknown": 1}`)
		id := fmt.Sprint(got.fields(t)["id"])
		self := w.url + w.root + "/vnf_instances/" + id
		if got.header.Get("Location") != self {
			t.Errorf("Location %q, want %q", got.header.Get("Location"), self)
		}
		if v, err := w.VNF(t.Context(), id); err != nil || v.Project != "edge" {
			t.Errorf("stored %+v, %v", v, err)
		}
		want := map[string]any{
			"id": id, "vnfInstanceName": "fw", "vnfInstanceDescription": "a firewall", "vnfdId": knownVNFD, "vnfProvider": "Example", "vnfProductName": "Sample VNF",
			"vnfSoftwareVersion": "1.0", "vnfdVersion": "2.1", "metadata": map[string]any{"site": "east"}, "instantiationState": "NOT_INSTANTIATED",
			"_links": map[string]any{"self": map[string]any{"href": self}, "instantiate": map[string]any{"href": self + "/instantiate"}},
		}
		for _, shown := range []answer{got, w.want(http.StatusOK, "GET", "/vnf_instances/"+id, "")} {
			if diff := cmp.Diff(want, shown.fields(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		w.want(http.StatusNoContent, "DELETE", "/vnf_instances/"+id, "", "Content-Type", "application/json")
		w.want(http.StatusNotFound, "GET", "/vnf_instances/"+id, "")
	})
}

func TestInstantiatedVNF(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		at := w.instantiated()
		got := w.want(http.StatusOK, "GET", at, "").fields(t)
		levels := func(n float64) []any { return []any{map[string]any{"aspectId": "vdu1_aspect", "scaleLevel": n}} }
		info := map[string]any{
			"flavourId": "simple", "vnfState": "STARTED", "scaleStatus": levels(1), "maxScaleLevels": levels(2),
			"metadata": map[string]any{"namespace": "edge", "lcm-kubernetes-def-files": []any{"Files/kubernetes/a.yaml"}},
			"vnfcResourceInfo": []any{map[string]any{
				"id": "web-5d5f-abcde", "vduId": "VDU1", "computeResource": map[string]any{"resourceId": "web-5d5f-abcde", "vimLevelResourceType": "Deployment"},
			}},
			"vnfcInfo": []any{map[string]any{"id": "VDU1-web-5d5f-abcde", "vduId": "VDU1", "vnfcResourceInfoId": "web-5d5f-abcde", "vnfcState": "STARTED"}},
		}
		if diff := cmp.Diff(info, got["instantiatedVnfInfo"]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		vim := map[string]any{"vimId": "7e2f0c1a-3b5d-5e61-9a3c-0d0f4f6c5b11", "vimType": "ETSINFV.KUBERNETES.V_1"}
		want := any(map[string]any{"vim1": vim})
		if w.root == "/vnflcm/v1" {
			vim["id"] = "vim1"
			want = []any{vim}
		}
		if diff := cmp.Diff(want, got["vimConnectionInfo"]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got["instantiationState"] != "INSTANTIATED" {
			t.Errorf("state %v", got["instantiationState"])
		}
		w.want(http.StatusConflict, "DELETE", at, "")
		w.want(http.StatusConflict, "POST", at+"/instantiate", `{"flavourId": "simple"}`)
	})
}

// TestRequests sends each request for an occurrence, and compares what is passed on.
func TestRequests(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		vims := `{"vim1": {"vimId": "v", "vimType": "T", "accessInfo": {"bearer_token": "s3cret"}, "interfaceInfo": {"endpoint": "https://u:s3cret@x"}, "extra": {"password": "s3cret", "a": "b"}}}`
		shown := `{"vim1":{"extra":{"a":"b","password":"***"},"vimId":"v","vimType":"T"}}`
		if w.root == "/vnflcm/v1" {
			vims = strings.Replace(strings.Replace(vims, `{"vim1": {`, `[{"id": "vim1", `, 1), "}}}", "}}]", 1)
			shown = `[{"extra":{"a":"b","password":"***"},"id":"vim1","vimId":"v","vimType":"T"}]`
		}
		shown = strings.ReplaceAll(shown, "***", nf.Masked)
		asked := map[string]nf.VIMConnectionRequest{"vim1": {
			VIM: "v", Type: "T", Access: map[string]any{"bearer_token": "s3cret"}, Interface: map[string]any{"endpoint": "https://u:s3cret@x"}, Extra: map[string]any{"password": "s3cret", "a": "b"},
		}}
		common := func(params string, extra map[string]any) nf.VNFRequest {
			return nf.VNFRequest{Params: []byte(params), Extra: extra, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		}
		name, vnfd := "fw", "other"
		cases := map[string]struct {
			reason, method, path, body string
			want                       any
		}{
			"Instantiate": {
				"all that a request can have", "POST", "/instantiate",
				`{"flavourId": "simple", "instantiationLevelId": "small", "vimConnectionInfo": ` + vims + `, "additionalParams": {"namespace": "edge", "db": {"Pass_Word": "s3cret"}}, "extensions": {"a": 1}, "vnfConfigurableProperties": {"b": true}}`,
				nf.InstantiateVNFRequest{
					VNFRequest: common(`{"additionalParams":{"db":{"Pass_Word":"`+nf.Masked+`"},"namespace":"edge"},"extensions":{"a":1},"flavourId":"simple","instantiationLevelId":"small","vimConnectionInfo":`+shown+`,"vnfConfigurableProperties":{"b":true}}`,
						map[string]any{"namespace": "edge", "db": map[string]any{"Pass_Word": "s3cret"}}),
					Flavor: "simple", Level: "small", VIMs: asked, Extensions: map[string]any{"a": 1.0}, Configurable: map[string]any{"b": true},
				},
			},
			"Terminate": {"gracefully", "POST", "/terminate", `{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 30}`, nf.TerminateVNFRequest{VNFRequest: common(`{"gracefulTerminationTimeout":30,"terminationType":"GRACEFUL"}`, nil), Grace: 30 * time.Second}},
			"Force":     {"at once", "POST", "/terminate", `{"terminationType": "FORCEFUL"}`, nf.TerminateVNFRequest{VNFRequest: common(`{"terminationType":"FORCEFUL"}`, nil), Forceful: true}},
			"ScaleOut":  {"one step by default", "POST", "/scale", `{"type": "SCALE_OUT", "aspectId": "a"}`, nf.ScaleVNFRequest{VNFRequest: common(`{"aspectId":"a","type":"SCALE_OUT"}`, nil), Aspect: "a", Steps: 1}},
			"ScaleIn":   {"several steps", "POST", "/scale", `{"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 2}`, nf.ScaleVNFRequest{VNFRequest: common(`{"aspectId":"a","numberOfSteps":2,"type":"SCALE_IN"}`, nil), In: true, Aspect: "a", Steps: 2}},
			"Heal":      {"components", "POST", "/heal", `{"cause": "c", "vnfcInstanceId": ["VDU1-a"], "additionalParams": {"all": true}}`, nf.HealVNFRequest{VNFRequest: common(`{"additionalParams":{"all":true},"cause":"c","vnfcInstanceId":["VDU1-a"]}`, map[string]any{"all": true}), Cause: "c", VNFCs: []string{"VDU1-a"}}},
			"HealAll":   {"all of them", "POST", "/heal", `{}`, nf.HealVNFRequest{VNFRequest: common(`{}`, nil)}},
			"HealEmpty": {"no body is an empty object", "POST", "/heal", ``, nf.HealVNFRequest{VNFRequest: common(`{}`, nil)}},
			"Modify": {
				"a merge patch", "PATCH", "", `{"vnfInstanceName": "fw", "vnfdId": "other", "metadata": {"a": null, "b": "c"}, "vnfcInfoModifications": [{"id": "VDU1-a", "vnfcConfigurableProperties": {"k": "v"}}]}`,
				nf.ModifyVNFRequest{
					VNFRequest: common(`{"metadata":{"a":null,"b":"c"},"vnfInstanceName":"fw","vnfcInfoModifications":[{"id":"VDU1-a","vnfcConfigurableProperties":{"k":"v"}}],"vnfdId":"other"}`, nil),
					Name:       &name, VNFD: &vnfd, Metadata: map[string]any{"a": nil, "b": "c"}, VNFCs: map[string]map[string]any{"VDU1-a": {"k": "v"}},
				},
			},
			"ChangePackage": {
				"another package", "POST", "/change_vnfpkg", `{"vnfdId": "other", "additionalParams": {"upgrade_type": "RollingUpdate"}}`,
				nf.ChangeVNFPackageRequest{VNFRequest: common(`{"additionalParams":{"upgrade_type":"RollingUpdate"},"vnfdId":"other"}`, map[string]any{"upgrade_type": "RollingUpdate"}), VNFD: "other"},
			},
		}
		for name, tc := range cases {
			if w.root == "/vnflcm/v1" && name == "ChangePackage" {
				w.want(http.StatusNotFound, "POST", w.instantiated()+tc.path, tc.body)
				continue
			}
			at := w.instantiated()
			if name == "Instantiate" {
				at = w.created()
			}
			occurrence := w.accepted(tc.method, at+tc.path, tc.body, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			if diff := cmp.Diff(tc.want, w.last); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
			}
			w.want(http.StatusOK, "GET", occurrence, "")
			w.want(http.StatusConflict, tc.method, at+tc.path, tc.body)
		}
	})
}

// TestTaskLinks checks that a VNF has only the links of the requests that it supports.
func TestTaskLinks(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		for reason, tc := range map[string]struct {
			edit func(*nf.InstantiatedVNF)
			want string
		}{
			"pods have all requests":                  {func(*nf.InstantiatedVNF) {}, "changeExtConn heal scale self terminate"},
			"without aspects, nothing is scaled":      {func(in *nf.InstantiatedVNF) { in.Scale, in.MaxScale = nil, nil }, "changeExtConn heal self terminate"},
			"the networks of a stack are not changed": {func(in *nf.InstantiatedVNF) { in.Stack = "vnf-1" }, "heal scale self terminate"},
			"a cluster on hosts is changed as a site": {func(in *nf.InstantiatedVNF) { in.Engine = "cluster" }, "heal self terminate"},
		} {
			at := w.instantiated()
			w.set(at, func(v *nf.VNF) { tc.edit(v.Instantiated) })
			if got := w.want(http.StatusOK, "GET", at, "").links(t); got != tc.want {
				t.Errorf("%s: the links are %s, want %s", reason, got, tc.want)
			}
		}
	})
}

// TestOccurrence has the states of an occurrence, with the links of each.
func TestOccurrence(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		vnf := w.created()
		at := w.accepted("POST", vnf+"/instantiate", `{"flavourId": "simple"}`)
		id := occurrenceID(at)
		if got := w.want(http.StatusOK, "GET", vnf, "").links(t); got != "self" {
			t.Errorf("the links of a busy VNF: %s", got)
		}
		undo := func(o *nf.Occurrence) { o.CanUndo = true }
		states := []struct {
			state nf.OccurrenceState
			edit  func(*nf.Occurrence)
			links string
		}{
			{nf.OccurrenceStarting, func(*nf.Occurrence) {}, "cancel self vnfInstance"},
			{nf.OccurrenceProcessing, func(*nf.Occurrence) {}, "cancel self vnfInstance"},
			{nf.OccurrenceFailedTemp, func(*nf.Occurrence) {}, "fail retry self vnfInstance"},
			{nf.OccurrenceFailedTemp, undo, "fail retry rollback self vnfInstance"},
			{nf.OccurrenceRollingBack, undo, "cancel self vnfInstance"},
			{nf.OccurrenceProcessing, func(o *nf.Occurrence) { o.Cancel = true }, "self vnfInstance"},
			{nf.OccurrenceCompleted, undo, "self vnfInstance"},
			{nf.OccurrenceRolledBack, undo, "self vnfInstance"},
			{nf.OccurrenceFailed, undo, "self vnfInstance"},
		}
		for _, s := range states {
			w.enter(id, s.state, s.edit)
			if got := w.want(http.StatusOK, "GET", at, "").links(t); got != s.links {
				t.Errorf("the links in %s: %s, want %s", s.state, got, s.links)
			}
		}
		w.enter(id, nf.OccurrenceFailedTemp, func(o *nf.Occurrence) {
			o.Cancel, o.Grant, o.Changed = false, "grant-1", []byte(`{"vnfdId": "other"}`)
			o.Failure = &nf.Failure{Kind: nf.Unsupported, Message: "cannot apply Deployment web: the region does not know it"}
			o.VNFCs = []nf.AffectedVNFC{{VNFC: nf.VNFC{VDU: "VDU1", Resource: "web-a", Workload: "Deployment"}, Change: nf.VNFCAdded}}
		})
		base := w.url + w.root
		self := base + at
		href := func(text string) map[string]any { return map[string]any{"href": text} }
		want := map[string]any{
			"id": id, "operationState": "FAILED_TEMP", "stateEnteredTime": "2026-11-27T08:01:00.000Z", "startTime": "2026-11-27T08:00:00.000Z",
			"vnfInstanceId": strings.TrimPrefix(vnf, "/vnf_instances/"), "grantId": "grant-1", "operation": "INSTANTIATE", "isAutomaticInvocation": false,
			"operationParams": map[string]any{"flavourId": "simple"}, "isCancelPending": false, "changedInfo": map[string]any{"vnfdId": "other"},
			"error": map[string]any{"status": 422.0, "title": "Unprocessable Entity", "detail": "cannot apply Deployment web: the region does not know it"},
			"resourceChanges": map[string]any{"affectedVnfcs": []any{map[string]any{
				"id": "web-a", "vduId": "VDU1", "changeType": "ADDED", "computeResource": map[string]any{"resourceId": "web-a", "vimLevelResourceType": "Deployment"},
			}}},
			"_links": map[string]any{"self": href(self), "vnfInstance": href(base + vnf), "retry": href(self + "/retry"), "rollback": href(self + "/rollback"), "fail": href(self + "/fail")},
		}
		if diff := cmp.Diff(want, w.want(http.StatusOK, "GET", at, "").fields(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.recover(at, vnf)
	})
}

// recover retries, rolls back, cancels and gives up an occurrence that has failed.
func (w *world) recover(at, vnf string) {
	w.t.Helper()
	id := occurrenceID(at)
	if got := w.want(http.StatusAccepted, "POST", at+"/retry", "", "Idempotency-Key", "k"); got.header.Get("Location") != "" || got.body != "" {
		w.t.Errorf("retry: Location %q, body %q", got.header.Get("Location"), got.body)
	}
	if w.lastKey.Key != "k" || w.lastKey.Digest == "" {
		w.t.Errorf("the key %+v", w.lastKey)
	}
	w.want(http.StatusConflict, "POST", at+"/retry", "")
	w.want(http.StatusConflict, "POST", at+"/rollback", "")
	w.want(http.StatusConflict, "POST", at+"/fail", "")
	w.want(http.StatusAccepted, "POST", at+"/cancel", `{"cancelMode": "FORCEFUL"}`, "Version", "")
	if w.last != true || w.want(http.StatusOK, "GET", at, "").fields(w.t)["isCancelPending"] != true {
		w.t.Errorf("cancelled with %v", w.last)
	}
	w.enter(id, nf.OccurrenceFailedTemp)
	w.want(http.StatusConflict, "POST", at+"/cancel", `{"cancelMode": "GRACEFUL"}`)
	w.want(http.StatusAccepted, "POST", at+"/rollback", "")
	w.enter(id, nf.OccurrenceFailedTemp, func(o *nf.Occurrence) { o.CanUndo = false })
	w.want(http.StatusUnprocessableEntity, "POST", at+"/rollback", "")
	if got := w.want(http.StatusOK, "POST", at+"/fail", "").fields(w.t); got["operationState"] != "FAILED" {
		w.t.Errorf("given up: %v", got)
	}
	w.want(http.StatusOK, "GET", vnf, "")
}

// TestVersions checks the three lists of versions.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "/vnflcm/v2")
	one := func(version string) string { return `{"version":"` + version + `","isDeprecated":false}` }
	for path, want := range map[string]string{
		"/vnflcm/api_versions":    `{"uriPrefix":"/vnflcm","apiVersions":[` + one("1.3.0") + "," + one("2.0.0") + `]}`,
		"/vnflcm/v1/api_versions": `{"uriPrefix":"/vnflcm/v1","apiVersions":[` + one("1.3.0") + `]}`,
		"/vnflcm/v2/api_versions": `{"uriPrefix":"/vnflcm/v2","apiVersions":[` + one("2.0.0") + `]}`,
	} {
		for _, version := range []string{"", "2.0.0"} { // the client sends 2.0.0 to all of them
			if got := w.want(http.StatusOK, "GET", path, "", "Version", version); got.body != want {
				t.Errorf("%s: %s, want %s", path, got.body, want)
			}
		}
	}
}

// TestIdempotencyKey checks that a key depends on the content, not on its formatting.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "/vnflcm/v2")
	w.fails = nf.E(nf.Conflict, "begin", "occurrence", nil)
	at := w.instantiated() + "/scale"
	key := func(body string) nf.RequestKey {
		w.want(http.StatusConflict, "POST", at, body, "Idempotency-Key", "k")
		return w.lastKey
	}
	first := key(`{"type": "SCALE_OUT", "aspectId": "a"}`)
	if second := key(`{"aspectId":"a","type":"SCALE_OUT"}`); first != second || first.Key != "k" {
		t.Errorf("keys %+v and %+v", first, second)
	}
	if other := key(`{"aspectId":"b","type":"SCALE_OUT"}`); other.Digest == first.Digest {
		t.Errorf("another request has the digest %s", other.Digest)
	}
	w.want(http.StatusBadRequest, "POST", at, `{"type": "SCALE_OUT", "aspectId": "a"}`, "Idempotency-Key", " ")
	created := func(path string) nf.RequestKey {
		w.want(http.StatusCreated, "POST", path, `{"vnfdId": "`+knownVNFD+`"}`, "Idempotency-Key", "k")
		return w.last.(nf.VNF).Request
	}
	one, other := created("/vnf_instances"), created("/vnf_instances?project=red")
	if one.Key != "k" || one.Digest == "" || one.Digest == other.Digest {
		t.Errorf("the keys of creations in two projects are %+v and %+v", one, other)
	}
}

// TestForms checks the forms in which clients send bodies.
func TestForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "/vnflcm/v2")
	for _, media := range []string{"application/json", "application/merge-patch+json", "text/plain", "application/json; charset=utf-8"} {
		w.accepted("PATCH", w.instantiated(), `{"vnfInstanceName": "x"}`, "Content-Type", media)
	}
	w.accepted("POST", w.instantiated()+"/terminate", `{"terminationType": "FORCEFUL"}`, "Content-Type", "text/plain")
	w.want(http.StatusUnsupportedMediaType, "POST", w.instantiated()+"/terminate", `{"terminationType": "FORCEFUL"}`, "Content-Type", "application/xml")
	w.want(http.StatusOK, "GET", "/vnf_instances?filter="+url.QueryEscape("(eq,instantiationState,INSTANTIATED)"), "", "Content-Type", "application/json")
	w.want(http.StatusNoContent, "DELETE", w.created(), "", "Content-Type", "application/json", "Content-Length", "0")
	if got := w.want(http.StatusCreated, "POST", "/vnf_instances", `{"vnfdId": "`+knownVNFD+`"}`, "X-Forwarded-Proto", "https").header.Get("Location"); !strings.HasPrefix(got, "https://127.0.0.1:") {
		t.Errorf("behind a proxy: Location %s", got)
	}
}

// TestAffectedComponents finds the components that an occurrence has changed among those of the
// VNF by their ids, which notifications have, too.
func TestAffectedComponents(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		vnf := w.instantiated()
		at := w.accepted("POST", vnf+"/heal", "")
		var resource nf.VNFC
		w.set(vnf, func(v *nf.VNF) { resource = v.Instantiated.VNFCs[0] })
		o := w.enter(occurrenceID(at), nf.OccurrenceCompleted, func(o *nf.Occurrence) {
			o.VNFCs = []nf.AffectedVNFC{{VNFC: resource, Change: nf.VNFCModified}}
		})
		var occurrence wire.VNFOccurrence
		var shown wire.VNF
		for path, into := range map[string]any{at: &occurrence, vnf: &shown} {
			if err := json.Unmarshal([]byte(w.want(http.StatusOK, "GET", path, "").body), into); err != nil {
				t.Fatal(err)
			}
		}
		id := shown.Instantiated.Resources[0].ID
		if got, told := occurrence.Resources.VNFCs[0].ID, wire.VNFCChangesOf(o)[0].ID; got != id || told != id {
			t.Errorf("the occurrence has the component %s, a notification %s, and the VNF %s", got, told, id)
		}
	})
}
