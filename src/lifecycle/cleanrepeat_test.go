package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestCleanDuringRequest repeats a request while a search removes what an attempt before
// has left. The new instance has the same id, so the name and the hold are its own then.
func TestCleanDuringRequest(t *testing.T) {
	repeated := func(req *nf.InstantiateRequest) {
		named(req)
		req.Key = nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
	}
	var id string
	synctest.Test(t, func(t *testing.T) { id = newSite(t).start().up(t, "a", repeated).Subject.ID })
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var e *engine
		searches := 0
		e = s.start(func(c *config) {
			c.KV = storetest.Failing{KV: c.KV, Lose: func(method, key string) error {
				if strings.HasPrefix(key, "instancenames/") && method == "List" {
					if searches++; searches == 2 { // the instances were read before
						req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"}}
						repeated(&req)
						_, err := e.Instantiate(t.Context(), req)
						return err
					}
				}
				return nil
			}}
		})
		holder := nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Scope: nf.Scope{Project: nf.DefaultProject, Region: "east"}}
		_, err := s.kv.Put(t.Context(), "instancenames/east/ns/vnf", fmt.Appendf(nil, `{"region":"east","namespace":"ns","name":"vnf","instance":%q,"operation":"none"}`, id), 0)
		if err := errors.Join(err, s.catalog.Hold(t.Context(), nf.Holding{Holder: holder, Region: "east", Package: "a"})); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if searches < 2 {
			t.Fatalf("there were %d searches", searches)
		}
		if in, err := e.Instance(t.Context(), id); err != nil || in.State != nf.Ready {
			t.Fatalf("the instance: %+v, %v", in, err)
		}
		if _, err := s.kv.Get(t.Context(), "instancenames/east/ns/vnf"); err != nil {
			t.Errorf("the instance has lost its name: %v", err)
		}
		for _, thing := range []string{"a", "east"} {
			if !s.catalog.held()[id+" "+thing] {
				t.Errorf("the instance has lost its hold on %s", thing)
			}
		}
	})
}
