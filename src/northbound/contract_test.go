package northbound_test

import (
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnffm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpkgm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfsubscription"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(k8splugin.Swagger)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestContractIsValid is in place of a check at each start, which takes a tenth of a second.
func TestContractIsValid(t *testing.T) {
	t.Parallel()
	if err := document(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRoutesAreTheContract holds the router and swagger.yaml equal: a path or
// method that one of them lacks fails.
func TestRoutesAreTheContract(t *testing.T) {
	t.Parallel()
	routes, err := northbound.Routes(k8splugin.Swagger, &native.API{}, &onap.API{}, &tacker.API{}, &vnfpkgm.API{}, &vnflcm.API{}, &vnffm.API{}, &vnfpm.API{}, &vnfsubscription.API{})
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for path, item := range document(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(routes)
	slices.Sort(described)
	if diff := cmp.Diff(described, routes); diff != "" {
		t.Errorf("the routes are not those of swagger.yaml (-swagger +router):\n%s", diff)
	}
}

// TestContractIsComplete holds what requestMiddleware and its readers rely on.
func TestContractIsComplete(t *testing.T) {
	t.Parallel()
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			at := method + " " + path
			if op.OperationID == "" || op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s lacks an operationId, a summary or its tag", at)
			}
			if r := op.Responses.Default(); r == nil || r.Value.Content["application/problem+json"] == nil {
				t.Errorf("%s does not say what any other problem looks like", at)
			}
			lenient, _ := op.Extensions["x-lenient"].(bool)
			for status, r := range op.Responses.Map() {
				bare := lenient && len(r.Value.Content) == 0 // ONAP's clients know answers without a body
				if status >= "4" && status < "5" && r.Value.Content["application/problem+json"] == nil && !bare {
					t.Errorf("%s answers %s with something else than a problem", at, status)
				}
			}
			if op.RequestBody == nil {
				continue
			}
			content := op.RequestBody.Value.Content
			if patch := content["application/merge-patch+json"]; patch != nil && patch.Schema.Ref != content["application/json"].Schema.Ref {
				t.Errorf("%s: the JSON types of the body differ, but Decode knows one schema", at)
			}
			if doc := content["application/json"]; doc != nil && doc.Schema.Value.AdditionalProperties.Has == nil {
				t.Errorf("%s: unknown fields of the body are not refused", at)
			}
		}
	}
}
