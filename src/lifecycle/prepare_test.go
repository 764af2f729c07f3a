package lifecycle_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestFilesAreReleased checks that the files of packages are in use only until they are
// rendered, whatever comes of it, and not while the region is asked.
func TestFilesAreReleased(t *testing.T) {
	t.Parallel()
	wrong := nf.Inputs{Parameters: map[string]any{"wrong": "no"}}
	amended := func(in nf.Inputs) nf.Spec {
		return nf.Spec{Package: "a", Amendments: []nf.Amendment{{Name: "x", Package: "b", Inputs: in}}}
	}
	cases := map[string]struct {
		reason string
		spec   nf.Spec
		fails  bool
	}{
		"Rendered":       {"a package", nf.Spec{Package: "a"}, false},
		"Amended":        {"an amendment", amended(nf.Inputs{}), false},
		"Wrong":          {"a package that cannot be rendered", nf.Spec{Package: "a", Inputs: wrong}, true},
		"WrongAmendment": {"an amendment that cannot be rendered", amended(wrong), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				var asked atomic.Int32
				s.cluster.before = func(call string) {
					if asked.Add(1); s.catalog.inUse() > 0 {
						t.Errorf("%s: files of %d packages are in use at %s", tc.reason, s.catalog.inUse(), call)
					}
				}
				req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: tc.spec}
				check := func(call string, err error) {
					if (err != nil) != tc.fails {
						t.Errorf("%s: %s: %v", tc.reason, call, err)
					}
					if n := s.catalog.inUse(); n > 0 {
						t.Errorf("%s: files of %d packages are in use after %s", tc.reason, n, call)
					}
				}
				_, err := e.PreviewInstantiate(t.Context(), req)
				check("preview", err)
				op, err := e.Instantiate(t.Context(), req)
				check("instantiate", err)
				if err == nil {
					e.end(t, op)
				}
				if !tc.fails && asked.Load() == 0 {
					t.Errorf("%s: the region was not asked", tc.reason)
				}
			})
		})
	}
}
