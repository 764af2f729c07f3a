package onap_test

import (
	"regexp"
	"testing"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// TestEveryRouteIsBelow checks that what is below ONAP's paths has every one of
// its routes.
func TestEveryRouteIsBelow(t *testing.T) {
	t.Parallel()
	variable, count := regexp.MustCompile(`{[^}]*}`), 0
	w := newWorld(t, false)
	err := w.server.(*mux.Router).Walk(func(r *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		template, err := r.GetPathTemplate()
		if count++; !(&onap.API{}).Below(variable.ReplaceAllString(template, "x")) {
			t.Errorf("%s is not below ONAP's paths", template)
		}
		return err
	})
	if err != nil || count < 50 {
		t.Errorf("%d routes, %v", count, err)
	}
}
