package sol003_test

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// other has another flavor in the package two.
type other struct {
	*world

	edit func(*tosca.Flavor)
}

// Topology implements sol003.Descriptors.
func (o other) Topology(ctx context.Context, pkg string) (tosca.Topology, error) {
	t, err := o.world.Topology(ctx, pkg)
	if err != nil || pkg != "two" {
		return t, err
	}
	f := t.Flavors["simple"]
	f.Aspects, f.Levels = maps.Clone(f.Aspects), maps.Clone(f.Levels)
	o.edit(&f)
	t.Flavors["simple"] = f
	return t, nil
}

// TestChangePackageScaled changes the package of a VNF that is scaled by one step.
func TestChangePackageScaled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		steps      int
		edit       func(*tosca.Flavor)
		want       nf.Kind // of the error; 0: none
		wantScale  map[string]int
		wantLevels any // that the package gets
	}{
		"Same":     {"the level stays, and the new package gives it its pods", 1, func(*tosca.Flavor) {}, 0, map[string]int{"front": 1}, map[string]any{"front": 1.0}},
		"Unscaled": {"a VNF that was not scaled has the level of its instantiation", 0, func(*tosca.Flavor) {}, 0, map[string]int{"front": 0}, nil},
		"Level": {"as the new package has it", 0, func(f *tosca.Flavor) {
			f.Levels["small"] = tosca.Level{Counts: map[string]int{"VDU1": 2}, Aspects: map[string]int{"front": 1}}
		}, 0, map[string]int{"front": 1}, nil},
		"AsInstantiated": {"the level is now that of the instantiation level; the package has its pods, and not a number that was set", 1, func(f *tosca.Flavor) {
			f.Levels["small"] = tosca.Level{Counts: map[string]int{"VDU1": 2}, Aspects: map[string]int{"front": 1}}
		}, 0, map[string]int{"front": 1}, map[string]any{"front": 1.0}},
		"Highest": {"the VNF is at the highest level of the new package", 1, func(f *tosca.Flavor) { f.Aspects["front"] = tosca.Aspect{MaxLevel: 1} }, 0, map[string]int{"front": 1}, map[string]any{"front": 1.0}},
		"Above":   {"no pods go without a request", 2, func(f *tosca.Flavor) { f.Aspects["front"] = tosca.Aspect{MaxLevel: 1} }, nf.Unsupported, map[string]int{"front": 2}, nil},
		"Gone":    {"nor with an aspect that the new package does not have", 1, func(f *tosca.Flavor) { f.Aspects = nil }, nf.Unsupported, map[string]int{"front": 1}, nil},
		"NoSteps": {"there are no pods of the aspect", 0, func(f *tosca.Flavor) { f.Aspects = nil }, 0, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t, func(c *config) { c.Descriptors = other{w, tc.edit} })
				id := prepared(t, m, changing)
				if tc.steps > 0 {
					do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
						return m.Scale(t.Context(), id, nf.ScaleVNFRequest{Aspect: "front", Steps: tc.steps})
					})
				}
				change := nf.ChangeVNFPackageRequest{VNFD: "vnfd-2", VNFRequest: nf.VNFRequest{Extra: map[string]any{nf.ScaleParameter: "of the client"}}}
				if tc.want != 0 {
					_, err := m.ChangePackage(t.Context(), id, change)
					wantKind(t, tc.reason, err, tc.want)
				} else {
					do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.ChangePackage(t.Context(), id, change) })
				}
				if diff := cmp.Diff(tc.wantScale, get(t, m, id).Instantiated.Scale); diff != "" {
					t.Errorf("%s: the levels (-want +got):\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.wantLevels, w.engine.instances[id].Inputs.Parameters[nf.ScaleParameter]); diff != "" {
					t.Errorf("%s: the package gets (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
