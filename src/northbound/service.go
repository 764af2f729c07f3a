package northbound

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTime limits one readiness check.
const checkTime = 3 * time.Second

// service is the API of the service's own paths.
type service struct {
	checks  map[string]Check
	metrics http.Handler
	rules   *contract
	page    page
}

func newService(cfg Config, rules *contract) (*service, error) {
	page, err := newPage(cfg.Version)
	if err != nil {
		return nil, err
	}
	return &service{
		checks:  cfg.Checks,
		metrics: metrics(cfg),
		rules:   rules,
		page:    page,
	}, nil
}

// metrics serves the metrics to the clients that may read them.
func metrics(cfg Config) http.Handler {
	all := promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{})
	if cfg.Access == nil || cfg.MayScrape == nil {
		return all
	}
	return Handler(func(w http.ResponseWriter, r *http.Request) error {
		if err := cfg.MayScrape(r.Context()); err != nil {
			return err
		}
		all.ServeHTTP(w, r)
		return nil
	})
}

// Routes adds the service's own paths.
func (s *service) Routes(r *mux.Router) {
	get := func(path string, h http.Handler) { r.Handle(path, h).Methods(http.MethodGet) }
	get("/healthz", static("text/plain; charset=utf-8", []byte("ok\n")))
	get("/readyz", Handler(s.ready))
	get("/metrics", s.metrics)
	for _, name := range []string{"/openapi", "/swagger"} {
		get(name+".yaml", static("application/yaml", s.rules.yaml))
		get(name+".json", Handler(s.contractAsJSON))
	}
	get("/docs", s.page)
	get("/", http.HandlerFunc(toDocs))
}

func (s *service) contractAsJSON(w http.ResponseWriter, r *http.Request) error {
	content, err := s.rules.json()
	if err != nil {
		return err
	}
	static("application/json", content).ServeHTTP(w, r)
	return nil
}

type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"`
}

func (s *service) ready(w http.ResponseWriter, r *http.Request) error {
	status, out := http.StatusOK, readiness{Ready: true, Checks: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(s.checks)) {
		out.Checks[name] = "ok"
		if err := timed(r.Context(), s.checks[name]); err != nil {
			status, out.Ready, out.Checks[name] = http.StatusServiceUnavailable, false, err.Error()
		}
	}
	return Answer(w, status, out)
}

func timed(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	return check(ctx)
}

// toDocs redirects to the page under /docs.
func toDocs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "/docs")
	w.WriteHeader(http.StatusSeeOther)
}

// static serves fixed content.
func static(media string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(content)
	})
}
