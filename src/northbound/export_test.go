package northbound

import (
	"fmt"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
)

// Routes returns "METHOD template" of every route that the shell and the APIs
// have.
func Routes(swagger []byte, apis ...API) ([]string, error) {
	rules, err := readContract(swagger)
	if err != nil {
		return nil, err
	}
	router, err := newRouter(Config{APIs: apis, Registry: prometheus.NewRegistry()}, rules)
	if err != nil {
		return nil, err
	}
	var out []string
	err = router.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		template, err := route.GetPathTemplate()
		if err != nil {
			return fmt.Errorf("a route has no path: %w", err)
		}
		methods, err := route.GetMethods()
		if err != nil {
			return fmt.Errorf("the route %s has no method: %w", template, err)
		}
		for _, method := range methods {
			out = append(out, method+" "+template)
		}
		return nil
	})
	return out, err
}

// Parse is what Decode reads a document with.
func Parse(document []byte) (any, error) { return parse(document) }
