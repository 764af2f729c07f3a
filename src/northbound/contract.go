package northbound

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// contract is the parsed swagger.yaml.
type contract struct {
	yaml []byte
	json func() ([]byte, error) // converted when it is first asked for
	doc  *openapi3.T
}

// readContract does not validate the document: a test does.
func readContract(swagger []byte) (*contract, error) {
	doc, err := load(swagger)
	if err != nil {
		return nil, err
	}
	if doc.Paths == nil || doc.Components == nil {
		return nil, errors.New("cannot use the OpenAPI document: it has no paths, or no components")
	}
	// Authentication is done elsewhere. The library would read the whole body,
	// whatever its size, before authenticating the request.
	doc.Security = nil
	if err := acceptAlso(doc.Components.Schemas); err != nil {
		return nil, fmt.Errorf("cannot use the OpenAPI document: %w", err)
	}
	return &contract{yaml: swagger, json: sync.OnceValues(func() ([]byte, error) { return asJSON(swagger) }), doc: doc}, nil
}

func load(swagger []byte) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(swagger)
	if err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI document: %w", err)
	}
	return doc, nil
}

// asJSON reads the document again, because readContract has changed it.
func asJSON(swagger []byte) ([]byte, error) {
	doc, err := load(swagger)
	if err != nil {
		return nil, err
	}
	out, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot convert the OpenAPI document: %w", err)
	}
	return out, nil
}

// acceptAlso makes each schema with the extension x-also accept what the schema
// in the extension accepts, too. The document shows the one plain type that
// generators of clients need; requests may have the other form as well.
func acceptAlso(schemas openapi3.Schemas) error {
	for name, ref := range schemas {
		also, found := ref.Value.Extensions["x-also"]
		if !found {
			continue
		}
		text, err := json.Marshal(also)
		if err != nil {
			return fmt.Errorf("cannot read x-also of the schema %s: %w", name, err)
		}
		var other openapi3.Schema
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("cannot read x-also of the schema %s: %w", name, err)
		}
		plain := *ref.Value
		plain.Extensions = nil
		*ref.Value = openapi3.Schema{ // in place, because other schemas refer to it
			AnyOf:      openapi3.SchemaRefs{openapi3.NewSchemaRef("", &plain), openapi3.NewSchemaRef("", &other)},
			Nullable:   plain.Nullable,
			Extensions: ref.Value.Extensions,
		}
	}
	return nil
}

// pattern matches the pattern of a variable in the router's template of a path.
var pattern = regexp.MustCompile(`:[^{}]*}`)

// Template returns the template of a route's path, as swagger.yaml has it: without the
// patterns of variables.
func Template(r *mux.Route) (string, error) {
	template, err := r.GetPathTemplate()
	return pattern.ReplaceAllString(template, "}"), err
}

// route returns the contract's route for a path template and method, or nil.
func (c *contract) route(template, method string) *routers.Route {
	item := c.doc.Paths.Value(template)
	if item == nil || item.GetOperation(method) == nil {
		return nil
	}
	return &routers.Route{Spec: c.doc, Path: template, PathItem: item, Method: method, Operation: item.GetOperation(method)}
}

// checker validates each routed request against the contract. Bodies are
// validated when they are decoded, because they are read only then.
type checker struct {
	rules       *contract
	uploadLimit int64
}

func (c checker) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := callOf(r.Context())
		limit := int64(MaxDocument)
		if route := c.rules.route(call.route, r.Method); route != nil {
			call.operation = route.Operation
			if takesUploads(route.Operation) {
				limit = c.uploadLimit
			}
			if !lenient(route.Operation) {
				if err := check(r, route); err != nil {
					Refuse(w, r, err)
					return
				}
			}
		}
		if err := limitBody(w, r, limit); err != nil {
			Refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// takesUploads reports whether the body is an archive, which has a higher size
// limit than a document.
func takesUploads(op *openapi3.Operation) bool {
	return op.RequestBody != nil && op.RequestBody.Value.Content["application/octet-stream"] != nil
}

// lenient reports whether an operation accepts parameters that it does not
// describe, because its clients send them. Such requests are validated by their
// API only.
func lenient(op *openapi3.Operation) bool {
	yes, _ := op.Extensions["x-lenient"].(bool)
	return yes
}

func check(r *http.Request, route *routers.Route) error {
	if err := checkMedia(r, route.Operation); err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return unreadable(nf.Violations{{Field: "query", Message: "is not a query string"}})
	}
	wrong := wrongParameters(query, route)
	err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: mux.Vars(r), QueryParams: query, Route: route,
		Options: &openapi3filter.Options{ExcludeRequestBody: true, MultiError: true, SkipSettingDefaults: true},
	})
	wrong = append(wrong, violations(err)...)
	if len(wrong) > 0 {
		return unreadable(wrong)
	}
	return nil
}

// wrongParameters rejects query parameters that would otherwise be ignored. A
// misspelled filter would select everything, and only the first value of a
// repeated parameter would have an effect.
func wrongParameters(query url.Values, route *routers.Route) nf.Violations {
	described := slices.Concat(route.PathItem.Parameters, route.Operation.Parameters)
	var wrong nf.Violations
	for name, values := range query {
		i := slices.IndexFunc(described, func(p *openapi3.ParameterRef) bool {
			return p.Value.In == openapi3.ParameterInQuery && p.Value.Name == name
		})
		switch {
		case i < 0:
			wrong = append(wrong, nf.Violation{Field: nf.Clip(name, maxSegment), Message: "is not a known query parameter"})
		case len(values) > 1 && !takesMany(described[i].Value):
			wrong = append(wrong, nf.Violation{Field: name, Message: "is given twice"})
		}
	}
	slices.SortFunc(wrong, func(a, b nf.Violation) int { return strings.Compare(a.Field, b.Field) })
	return wrong[:min(len(wrong), maxViolations)]
}

func takesMany(p *openapi3.Parameter) bool {
	return p.Schema != nil && p.Schema.Value.Type.Includes(openapi3.TypeArray)
}

// checkMedia rejects a body whose Content-Type the operation does not accept. A
// body without Content-Type is accepted.
func checkMedia(r *http.Request, op *openapi3.Operation) error {
	given := r.Header.Get("Content-Type")
	if given == "" || op.RequestBody == nil {
		return nil
	}
	taken := op.RequestBody.Value.Content
	media, _, err := mime.ParseMediaType(given)
	if err != nil || taken[media] == nil {
		names := make([]string, 0, len(taken))
		for name := range taken {
			names = append(names, name)
		}
		slices.Sort(names)
		return refusal(http.StatusUnsupportedMediaType,
			fmt.Sprintf("the body is %q, not %s", given, strings.Join(names, " or ")))
	}
	return nil
}

// allowedMethods returns the methods that have a route for the request's path.
func allowedMethods(router *mux.Router, r *http.Request) string {
	var allowed []string
	for _, method := range methods() {
		probe := r.Clone(r.Context())
		probe.Method = method
		var match mux.RouteMatch
		if router.Match(probe, &match) && match.MatchErr == nil {
			allowed = append(allowed, method)
		}
	}
	return strings.Join(allowed, ", ")
}

func unreadable(wrong nf.Violations) error {
	return nf.E(nf.Invalid, "read", "the request", wrong)
}
