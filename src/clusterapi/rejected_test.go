package clusterapi_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRejected has regions reject their credentials, in virtual time.
func TestRejected(t *testing.T) {
	as := func(text string) nf.Access {
		return nf.Access{Server: "https://internal", Certificate: nf.Secret(text), Key: nf.Secret(text)}
	}
	for name, tc := range map[string]struct {
		reason string
		world  func(*world)                         // after the registration
		act    func(reject func(region, of string)) // of: the kubeconfig with the rejected credentials
		reads  int
		has    string // the region's credentials in the end
	}{
		"Rotated": {
			reason: "the Secret has others: the region gets them at once", world: func(w *world) { w.rotate("admin-2") },
			act: func(reject func(string, string)) { reject("edge-1", "admin-1") }, reads: 1, has: "admin-2",
		},
		"Together": {
			reason: "many requests that fail at once are one attempt", world: func(w *world) { w.rotate("admin-2") },
			act: func(reject func(string, string)) {
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() { reject("edge-1", "admin-1") })
				}
				all.Wait()
			}, reads: 1, has: "admin-2",
		},
		"Late": {
			reason: "a rejection of former credentials says nothing about the present ones", world: func(w *world) { w.rotate("admin-2") },
			act: func(reject func(string, string)) {
				reject("edge-1", "admin-1")
				<-time.After(time.Hour / 2)
				reject("edge-1", "admin-1")
			}, reads: 1, has: "admin-2",
		},
		"Twice": {
			reason: "the new credentials are rejected, too", world: func(w *world) { w.rotate("admin-2") },
			act: func(reject func(string, string)) {
				reject("edge-1", "admin-1")
				<-time.After(time.Nanosecond)
				reject("edge-1", "admin-2")
			}, reads: 2, has: "admin-2",
		},
		"Same": {
			reason: "the Secret has no others: the pauses between attempts double, up to a minute",
			act: func(reject func(string, string)) {
				for range 10 * 60 { // 0, 1, 3, 7, 15, 31, 63 s, and then each minute: 123 to 543 s
					reject("edge-1", "admin-1")
					<-time.After(time.Second)
				}
			}, reads: 15, has: "admin-1",
		},
		"Slow": {
			reason: "the Secret comes a moment later: the attempt waits for it", world: func(w *world) { delete(w.parent, "Secret edge-kubeconfig") },
			act: func(reject func(string, string)) { reject("edge-1", "admin-1") }, reads: 4, has: "admin-1",
		},
		"Gone":  {reason: "the region was removed", world: func(w *world) { delete(w.regions, "edge-1") }, act: func(reject func(string, string)) { reject("edge-1", "admin-1") }},
		"Plain": {reason: "a region without a Cluster has no Secret", act: func(reject func(string, string)) { reject("east", "admin-1") }, has: "admin-1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				r := w.registrar(t)
				byHand := parent(func(w *nf.WorkloadCluster) { w.Credentials = nf.SecretCredentials })
				if err := r.Register(t.Context(), held, byHand); err != nil {
					t.Fatal(err)
				}
				there := w.regions["edge-1"]
				there.Created = time.Now()
				w.regions["edge-1"], w.regions["east"] = there, nf.Region{ID: "east", Access: as("admin-1")}
				if tc.world != nil {
					tc.world(w)
				}
				w.reads = 0
				end := running(t, r)
				tc.act(func(region, of string) {
					r.Rejected(region, as(of))
				})
				<-time.After(20 * time.Second)
				end()
				if w.reads != tc.reads {
					t.Errorf("%s: the Secret was read %d times, want %d", tc.reason, w.reads, tc.reads)
				}
				if has := string(w.regions["edge-1"].Access.Certificate); has != tc.has {
					t.Errorf("%s: the region has the credentials %q, want %q", tc.reason, has, tc.has)
				}
			})
		})
	}
}

// running runs a registrar until the function is called that it returns.
func running(t *testing.T, r *clusterapi.Registrar) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
