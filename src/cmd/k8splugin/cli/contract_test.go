package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/multicloud-k8s/k8splugin"
)

// contract is swagger.yaml: what the requests of the commands, and the recorded
// answers, are compared with.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

// parseContract is done once for all tests: it takes a while.
var parseContract = sync.OnceValues(func() (contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(k8splugin.Swagger)
	if err != nil {
		return contract{}, err
	}
	router, err := gorillamux.NewRouter(doc)
	return contract{doc, router}, err
})

func readContract(t *testing.T) contract {
	t.Helper()
	c, err := parseContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// check complains about a request that the contract does not allow.
func (c contract) check(t *testing.T, r *http.Request, body []byte) {
	t.Helper()
	r.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return
	}
	err = openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
	if err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

func TestRecordedAnswers(t *testing.T) {
	c := readContract(t)
	for schema, answers := range map[string][]string{
		"CloudRegion": {regionJSON, expiringJSON, unrenewedJSON, rotatingJSON, unapprovedJSON, awayJSON},
		"Keys":        {keysJSON},
		"Package":     {packageJSON, chartJSON, createdJSON},
		"VnfInstance": {instanceJSON, brokenJSON, acceptedJSON, amendedJSON},
		"Preview":     {previewJSON, templateJSON},
		"DeadLetter":  {deadJSON, resentJSON},
		"Operation":   {op1, op2, op3, opWaiting, opSucceeded, opFailed, testQueued, testPassed, testFailed, testBroken},
	} {
		for _, answer := range answers {
			var v any
			if err := json.Unmarshal([]byte(answer), &v); err != nil {
				t.Errorf("%s: %v in %s", schema, err, answer)
				continue
			}
			if err := c.doc.Components.Schemas[schema].Value.VisitJSON(v); err != nil {
				t.Errorf("a recorded %s is not what the contract says: %v", schema, err)
			}
		}
	}
}
