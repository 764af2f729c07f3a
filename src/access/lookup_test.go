package access_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestLookupsReadLittle checks that a lookup of the objects that an identity may
// see reads only the instances that these objects name, each once, or none.
func TestLookupsReadLittle(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, who string
		look        func(ctx context.Context, h *house) error
		want        []string
	}{
		"Objects":    {"the holds on the region name the owners that the identity may see", "viewer-a-east", ownersLookup, nil},
		"AllObjects": {"an identity that may register the region sees all objects", "admin-all", ownersLookup, nil},
		"DeadLetters": {
			"the instances of the dead letters", "viewer-a-east", deadLettersLookup,
			[]string{"instance vnf-a-east", "instance vnf-b-west", "instance vnf-a-west", "instance gone"},
		},
		"AllDeadLetters": {"an administrator of the store sees all dead letters", "admin-all", deadLettersLookup, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			for i := range 1000 {
				h.world.more = append(h.world.more, nf.Instance{ID: fmt.Sprintf("vnf-%d", i), Project: "a", Region: accesstest.East})
			}
			if err := tc.look(h.as(t, tc.who), h); err != nil {
				t.Fatal(err)
			}
			slices.Sort(tc.want)
			slices.Sort(h.world.reads)
			if diff := cmp.Diff(tc.want, h.world.reads); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func ownersLookup(ctx context.Context, h *house) error {
	_, err := access.NewLive(h.Guarded, sky{[]string{"vnf-a-east", "", "gone", "vnf-a-east", "gone"}}).Find(ctx, accesstest.East, "")
	return err
}

func deadLettersLookup(ctx context.Context, h *house) error {
	_, err := access.NewDeadLetters(h.Guarded, &shelf{}).DeadLetters(ctx)
	return err
}
