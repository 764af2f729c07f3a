package schema

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// holder is a region that has one object.
type holder struct {
	*liar

	live *unstructured.Unstructured
}

func (h holder) Live(context.Context, nf.Ref) (*unstructured.Unstructured, error) { return h.live, nil }

// TestExistingBeyondLimits is about objects in the region that cannot be compared to
// the end: what is wrong with the new object may have been wrong before.
func TestExistingBeyondLimits(t *testing.T) {
	document := schemas(`{"type": "object", "additionalProperties": {"type": "integer"}}`, "")
	cases := map[string]struct {
		reason string
		live   string
		steps  int
		want   int
	}{
		"compared":      {"the object in the region is right, so the new one is wrong", "{z: 1}", maxSteps, 1},
		"too many":      {"only the first findings are kept", "{" + many(10_000, "f#: x", ", ") + ", z: x}", maxSteps, 0},
		"too much work": {"the budget ends within the object in the region", "{" + many(10_000, "f#: 1", ", ") + "}", 1000, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			region := NewCache(Config{}).Region(holder{published(document), gadget(t, tc.live).Unstructured})
			c := &check{region: region, budget: &budget{tc.steps}, kinds: map[schema.GroupVersionKind]compiled{}}
			wrong := gadget(t, "{z: x}")
			wrong.Exists = true
			if err := c.object(t.Context(), wrong); err != nil {
				t.Fatal(err)
			}
			if got := c.result.Violations; len(got) != tc.want {
				t.Errorf("%s: %s", tc.reason, fmt.Sprint(got))
			}
		})
	}
}
