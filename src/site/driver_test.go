package site_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// TestDriver builds a site with a driver that only the configuration names.
func TestDriver(t *testing.T) {
	cases := map[string]struct {
		reason string
		driver nf.SiteDriver
		kind   nf.Kind // of the error; nf.Internal: none, the site is built
	}{
		"Configured": {"the configured runners decide which drivers there are", "metal", nf.Internal},
		"Unknown":    {"a site that no runner can build is rejected", "cloud", nf.Unsupported},
		"None":       {"there is no default driver here", "", nf.Unsupported},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t, func(c *config) { c.Runners = map[nf.SiteDriver]site.Runner{"metal": w} })
				op, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Site.Driver = tc.driver }))
				if tc.kind != nf.Internal {
					wantKind(t, tc.reason, err, tc.kind)
					return
				}
				must(t, err)
				if op, _ = end(t, s, op); op.State != nf.Succeeded {
					t.Errorf("%s: the operation is %s: %+v", tc.reason, op.State, op.Failure)
				}
			})
		})
	}
}
