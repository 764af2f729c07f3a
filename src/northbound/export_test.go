package northbound

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
)

// Routes returns "METHOD template" of every route that requestMiddleware and the APIs
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
		template, err := Template(route)
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

// Limiter is a limiter by itself.
type Limiter struct{ *limiter }

// NewLimiter returns one.
func NewLimiter(limit Limit, now func() time.Time) Limiter { return Limiter{newLimiter(limit, now)} }

// Take lets a request in.
func (l Limiter) Take(name string) error { return l.take(name) }

// Tell reports whether a refusal is to be recorded.
func (l Limiter) Tell(name string) (missed int, tell bool) { return l.tell(name) }

// Clients returns how many are kept in mind.
func (l Limiter) Clients() int { return l.clients.Len() }

// ClientOf names the client of a request that was not identified.
func ClientOf(r *http.Request) string { return clientOf(r) }

// NewDeadlineWriter returns the deadlineWriter of a request, and its method finish.
func NewDeadlineWriter(limits SlowClientLimits, w http.ResponseWriter, r *http.Request, now func() time.Time) (writer http.ResponseWriter, finish func()) {
	p := newDeadlineWriter(limits, w, r, now)
	return p, p.finish
}
