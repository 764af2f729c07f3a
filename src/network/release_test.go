package network_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestReleaseDuringChange releases a network while an operation changes it. A refused
// request does not end the hold, so that the network remains until the client repeats it.
func TestReleaseDuringChange(t *testing.T) {
	cases := map[string]struct {
		reason  string
		keep    bool
		other   string // a further holder
		refused bool
		last    string // the holder in the end
	}{
		"Last":  {"the network cannot be removed now", false, "", true, "ann"},
		"Kept":  {"a network without holders would remain for ever", true, "", true, "ann"},
		"Other": {"the network is not to be removed", false, "bob", false, "bob"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				w.create(t, s, request(func(r *nf.SharedRequest) { r.Resource.Keep = tc.keep }))
				if tc.other != "" {
					w.create(t, s, request(func(r *nf.SharedRequest) { r.Holder = tc.other }))
				}
				w.gate = make(chan struct{})
				change, err := s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(n *nf.Network) error {
					n.Spec = json.RawMessage(`{"wires":["b"]}`)
					return nil
				}})
				must(t, err)
				synctest.Wait()
				release := nf.SharedReleaseRequest{Holder: "ann", Key: nf.RequestKey{Client: "so", Key: "k", Digest: "d"}}
				_, err = s.Release(t.Context(), oam, release)
				if refused := err != nil && nf.KindOf(err) == nf.Busy && nf.OperationOf(err) == change.ID; refused != tc.refused || !refused && err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				close(w.gate)
				w.end(t, change)
				<-time.After(time.Hour) // for the searches for networks without holders
				if got := state(t, s); got != nf.SharedActive || count(t, s) != 1 {
					t.Errorf("%s: the network is %q, with %d holders, want 1", tc.reason, got, count(t, s))
				}
				release.Holder = tc.last
				op, err := s.Release(t.Context(), oam, release)
				must(t, err)
				w.end(t, op)
				again, err := s.Release(t.Context(), oam, release)
				if got := state(t, s); err != nil || op.ID == "" || again.ID != op.ID || got != "" || count(t, s) != 0 {
					t.Errorf("%s: the repeated request is operation %q, and then %q, %v; the network is %q, with %d holders", tc.reason, op.ID, again.ID, err, got, count(t, s))
				}
			})
		})
	}
}
