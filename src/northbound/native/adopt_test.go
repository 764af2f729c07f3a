package native_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

const adoptPage = `{"cloud_region_id": "east", "csar_id": "web", "namespace": "edge", "release": "page"}`

func TestAdopt(t *testing.T) {
	t.Parallel()
	adopt := func(body string, header ...string) exchange {
		return exchange{request: "POST /v1/vnf_instances/adopt", header: append(header, asJSON), body: body}
	}
	cases := map[string]exchange{}
	add := func(name, reason string, e exchange, edit func(*exchange)) {
		e.reason = reason
		edit(&e)
		cases[name] = e
	}
	add("Adopt", "everything is handed on", adopt(`{"cloud_region_id": "east", "csar_id": "web", "project": "blue", "namespace": "edge", "vnf_instance_name": "front",
		"vnf_instance_description": "was Helm's", "release": "page", "labels": {"tenant": "blue"}, "on_unreachable": "wait", "timeout": "5m"}`), func(e *exchange) {
		e.status, e.want, e.headers = 201, asked, []string{"Location: /v1/vnf_instances/vnf-1"}
		e.asked = nf.AdoptRequest{InstantiateRequest: nf.InstantiateRequest{
			Spec:   nf.Spec{Package: "web", Release: "page", Labels: map[string]string{"tenant": "blue"}, Description: "was Helm's"},
			Region: "east", Project: "blue", Namespace: "edge", Name: "front", Options: nf.Options{Timeout: 5 * time.Minute, WaitForRegion: true},
		}}
	})
	add("Answer", "the answer is about what was released", adopt(adoptPage), func(e *exchange) {
		e.arrange = func(s *standIn) {
			s.operation.Instance.Target = nf.Revision{Number: 1, Package: "web", Release: "page", Inputs: nf.Inputs{Parameters: map[string]any{"size": 3.0, "password": "s3cret"}}, Sensitive: []string{"password"}}
			s.operation.Warnings = []string{"the release has version 1.4.1 of the chart, but the package has 1.4.2"}
			s.versions = []nf.Operation{with(s.operation, func(o *nf.Operation) { o.Applied = noon(2) })}
		}
		e.status = 201
		e.want = `{"release": "page", "parameters": {"size": 3, "password": "********"}, "warnings": ["the release has version 1.4.1 of the chart, but the package has 1.4.2"], "...": ""}`
	})
	add("Async", "respond-async does not wait", adopt(adoptPage, "Prefer: respond-async"), func(e *exchange) {
		e.arrange, e.status, e.want = stuck, 202, asked
		e.headers = []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"}
	})
	add("Failed", "an adoption that fails is told", adopt(adoptPage), func(e *exchange) {
		e.arrange = failed(nf.OperationFailed, &nf.Failure{Kind: nf.Conflict, Message: "Service edge/web belongs to another"})
		e.status, e.want = 409, problem("conflict", `"operation": "op-1"`)
	})
	add("Pending", "a release that is being changed is Helm's", adopt(adoptPage), func(e *exchange) {
		e.arrange = failing("Adopt", nf.E(nf.Conflict, "adopt", "release page", errors.New("revision 2 of it is pending-upgrade")))
		e.status, e.want = 409, problem("conflict", `"detail": "<<>>pending-upgrade"`)
	})
	add("Missing", "no release, nothing to adopt", adopt(adoptPage), func(e *exchange) {
		e.arrange = failing("Adopt", nf.E(nf.NotFound, "adopt", "release page", nil))
		e.status, e.want = 404, problem("not-found")
	})
	add("NoChart", "only charts have releases", adopt(adoptPage), func(e *exchange) {
		e.arrange = failing("Adopt", nf.E(nf.Unsupported, "adopt", "package web", nil))
		e.status, e.want = 422, problem("unsupported")
	})
	add("NoRelease", "it must be said which", adopt(`{"cloud_region_id": "east", "csar_id": "web"}`), func(e *exchange) {
		e.status, e.want = 400, problem("invalid", `"errors": [{"field": "release", "message": "is missing"}]`)
	})
	add("Values", "the release has its values already", adopt(`{"cloud_region_id": "east", "csar_id": "web", "release": "page", "parameters": {"a": 1}}`), func(e *exchange) {
		e.status, e.want = 400, problem("invalid", `"errors": [{"field": "parameters", "message": "<<>>"}]`)
	})
	add("DryRun", "a dry run returns the objects that would be adopted", adopt(adoptPage), func(e *exchange) {
		e.request += "?dry_run=true"
		e.arrange = func(s *standIn) {
			s.preview = nf.Preview{Changes: []nf.Change{{Ref: nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "edge", Name: "page"}, Action: nf.Adopted, Message: "was made by helm"}}}
		}
		e.status, e.headers = 200, nil
		e.want = `{"warnings": [], "changes": [{"api_version": "v1", "kind": "ConfigMap", "namespace": "edge", "name": "page", "action": "adopted", "message": "was made by helm"}]}`
	})
	add("DryRunFails", "it fails as the request does", adopt(adoptPage), func(e *exchange) {
		e.request += "?dry_run=true"
		e.arrange = failing("PreviewAdopt", nf.E(nf.Conflict, "adopt", "objects", nil))
		e.status, e.want, e.headers = 409, problem("conflict"), nil
	})
	cases["AnInstance"] = exchange{reason: "an instance may have that id", request: "GET /v1/vnf_instances/adopt", status: 404, want: problem("not-found")}
	runAll(t, cases)
}

func TestAdoptOnce(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	site := serve(t, s)
	var digests []string
	for _, body := range []string{adoptPage, adoptPage, `{"cloud_region_id": "east", "csar_id": "web", "namespace": "edge", "release": "other"}`} {
		if got := site.ask(t, "POST /v1/vnf_instances/adopt", body, asJSON, "Idempotency-Key: k"); got.StatusCode != http.StatusCreated {
			t.Fatalf("it answered %s %s", got.Status, got.body)
		}
		req, _ := s.asked.(nf.AdoptRequest)
		digests = append(digests, req.Key.Digest)
	}
	if digests[0] == "" || digests[0] != digests[1] || digests[0] == digests[2] {
		t.Errorf("the key does not say what was asked: %q", digests)
	}
}

func TestWithoutDayTwo(t *testing.T) {
	t.Parallel()
	site := serve(t, newStandIn(), func(c *native.Config) { c.Configurer, c.DeadLetters, c.Inventory = nil, nil, nil })
	if got := site.ask(t, "POST /v1/vnf_instances/adopt", adoptPage, asJSON); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a service that adopts nothing: %s", got.Status)
	}
	for _, request := range []string{"GET /v1/notifications/dead", "POST /v1/notifications/dead/a/resend", "DELETE /v1/notifications/dead/a", "GET /v1/inventory/aai", "GET /v1/vnf_instances/fox/aai", "POST /v1/vnf_instances/fox/aai/sync"} {
		if got := site.ask(t, request, ""); got.StatusCode != http.StatusNotFound {
			t.Errorf("a service without notifications and A&AI: %s: %s", request, got.Status)
		}
	}
}
