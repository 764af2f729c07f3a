package operation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

func TestRepeated(t *testing.T) {
	key := nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
	unread := errors.New("the record cannot be read")
	cases := map[string]struct {
		reason   string
		asked    nf.RequestKey
		standing operation.Standing
		err      error
		alive    bool // the replica that accepted it, or was accepting it
		want     string
		fails    bool
		kind     nf.Kind
		free     bool // the key may be used again
	}{
		"NoKey":       {reason: "a request without a key repeats none", asked: nf.RequestKey{Client: "so"}, standing: operation.Accepted},
		"OtherKey":    {reason: "another key", asked: nf.RequestKey{Client: "so", Key: "l", Digest: "d"}, standing: operation.Accepted},
		"OtherClient": {reason: "a key belongs to one client", asked: nf.RequestKey{Client: "cds", Key: "k", Digest: "d"}, standing: operation.Accepted},
		"Same":        {reason: "the operation of that time", asked: key, standing: operation.Accepted, want: "op-1"},
		"Different":   {reason: "another request under the key", asked: nf.RequestKey{Client: "so", Key: "k", Digest: "e"}, standing: operation.Accepted, fails: true, kind: nf.Conflict},
		"Pending":     {reason: "it is recorded but not accepted yet", asked: key, standing: operation.Pending, fails: true, kind: nf.Busy},
		"Accepting":   {reason: "nothing is recorded yet, and its replica is alive", asked: key, standing: operation.Unknown, alive: true, fails: true, kind: nf.Busy},
		"Dead":        {reason: "nothing was recorded before its replica died", asked: key, standing: operation.Unknown, free: true},
		"Refused":     {reason: "it was never accepted", asked: key, standing: operation.Refused, free: true},
		"Unread":      {reason: "nothing is known", asked: key, err: unread, fails: true, kind: nf.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				one, two := g.join(t), g.join(t).run(t)
				j := operation.Job{Subject: nf.Subject{Kind: kind}, ID: "op-1", Token: "t"}
				if err := one.Reserve(t.Context(), j, key); err != nil {
					t.Fatal(err)
				}
				if !tc.alive {
					one.run(t)
					synctest.Wait()
					one.quit()
				}
				got, err := two.Repeated(t.Context(), tc.asked, func(_ context.Context, id string) (operation.Standing, error) {
					if id != "op-1" {
						t.Errorf("asked about %q", id)
					}
					return tc.standing, tc.err
				})
				if got != tc.want || (err != nil) != tc.fails || tc.fails && nf.KindOf(err) != tc.kind {
					t.Errorf("%s: %q, %v (%s)", tc.reason, got, err, nf.KindOf(err))
				}
				again := two.Reserve(t.Context(), operation.Job{Subject: nf.Subject{Kind: kind}, ID: "op-2", Token: "u"}, key)
				if tc.free != (again == nil) || again != nil && nf.KindOf(again) != nf.Busy {
					t.Errorf("%s: the next request under the key: %v", tc.reason, again)
				}
			})
		})
	}
}

// TestDeleteRequest checks that only the key's own operation deletes its record.
func TestDeleteRequest(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t)
		key := nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
		if err := one.Reserve(t.Context(), operation.Job{Subject: nf.Subject{Kind: kind}, ID: "op-2"}, key); err != nil {
			t.Fatal(err)
		}
		accepted := func(context.Context, string) (operation.Standing, error) { return operation.Accepted, nil }
		for _, step := range []struct{ deleted, left string }{{"op-1", "op-2"}, {"op-2", ""}, {"op-2", ""}} {
			if err := one.DeleteRequest(t.Context(), step.deleted, key); err != nil {
				t.Fatal(err)
			}
			if got, err := one.Repeated(t.Context(), key, accepted); got != step.left || err != nil {
				t.Errorf("after %s was deleted, the key stands for %q, %v; want %q", step.deleted, got, err, step.left)
			}
		}
	})
}
