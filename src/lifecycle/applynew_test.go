package lifecycle_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestApplyNew has the operations that may apply objects without a look at those
// that the instance has.
func TestApplyNew(t *testing.T) {
	all := []string{"[db]", "[web]"}
	cases := map[string]struct {
		reason string
		run    func(t *testing.T, s *site, e *engine)
		want   []string
	}{
		"new instance": {"it has no objects", func(t *testing.T, _ *site, e *engine) { t.Helper(); e.up(t, "db_web") }, all},
		"objects of the instance exist": {"they may be left from a restored store", func(t *testing.T, s *site, e *engine) {
			t.Helper()
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			u.SetName("web")
			u.SetNamespace("ns")
			s.cluster.objects[configMap("web").Key()] = &fakeObject{owner: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}, object: u}
			e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.ID = "vnf-1" })
		}, nil},
		"upgrade": {"the instance has objects", func(t *testing.T, _ *site, e *engine) {
			t.Helper()
			op, err := e.Upgrade(t.Context(), e.up(t, "db_web").Subject.ID, change("db_new", ""))
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}, all},
		"retry": {"the failed operation has applied some", func(t *testing.T, s *site, e *engine) {
			t.Helper()
			s.cluster.script("web", nf.StatusFailed, "ImagePullBackOff")
			op := e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.OnFailure = nf.Keep })
			s.cluster.script("web", nf.Current, "")
			op, err := e.Retry(t.Context(), op.ID, nf.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if op = e.end(t, op); op.State != nf.Succeeded {
				t.Errorf("the retry ended %s", op.State)
			}
		}, all},
		"unreachable region": {"the lost request may have been received", func(t *testing.T, s *site, e *engine) {
			t.Helper()
			s.cluster.fails = map[string]error{"apply [web]": nf.E(nf.Unreachable, "reach", "the region", errors.New("no route"))}
			if op := e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.WaitForRegion = true }); op.State != nf.Succeeded {
				t.Errorf("the operation ended %s", op.State)
			}
			if got := s.cluster.asked("apply [web]"); len(got) != 2 {
				t.Errorf("the stage was applied %d times", len(got))
			}
		}, all},
		"resumed": {"the stopped process may have applied some", func(t *testing.T, s *site, e *engine) {
			t.Helper()
			block := make(chan struct{})
			s.cluster.before = func(call string) {
				if call == "apply [web]" {
					<-block
				}
			}
			op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "db_web"}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			defer time.AfterFunc(time.Second, func() { close(block) }).Stop()
			e.stop()
			s.cluster.before = nil
			if op = s.start().end(t, op); op.State != nf.Succeeded {
				t.Errorf("the operation ended %s", op.State)
			}
		}, all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				tc.run(t, s, s.start(func(c *config) { c.Drain = time.Nanosecond }))
				if diff := cmp.Diff(tc.want, s.cluster.created); diff != "" {
					t.Errorf("%s: applied as new (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
