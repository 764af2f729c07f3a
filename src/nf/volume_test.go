package nf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCombineBindings combines uses of volumes of a package with those of a request.
// They are written as volume and claim; those of the request end in "!".
func TestCombineBindings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason               string
		own, requested, want string
	}{
		"Own":       {"without a request, the package decides", "data/db logs/logs", "", "data/db logs/logs"},
		"Requested": {"without a package, the request decides", "", "data/db", "data/db!"},
		"Added":     {"a use of another claim and volume is added", "data/db", "logs/logs", "data/db logs/logs!"},
		"Claim":     {"the request decides on the volume of a claim", "data/db logs/logs", "other/db", "logs/logs other/db!"},
		"Volume":    {"the request decides on the claim of a volume, which binds only one", "data/db logs/logs", "data/other", "logs/logs data/other!"},
		"Both":      {"one use can replace two", "data/db logs/logs", "data/logs", "data/logs!"},
		"Equal":     {"an equal use occurs once", "data/db", "data/db", "data/db!"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uses := func(text string) (out []nf.VolumeUse) {
				for entry := range strings.FieldsSeq(text) {
					volume, claim, _ := strings.Cut(entry, "/")
					out = append(out, nf.VolumeUse{Volume: volume, Claim: claim})
				}
				return out
			}
			own := nf.AskedVolumes(uses(tc.own))
			for i := range own {
				own[i].At.File = "metadata.yaml"
			}
			var got []string
			for _, b := range nf.CombineBindings(own, nf.AskedVolumes(uses(tc.requested))) {
				mark := map[bool]string{true: "!"}[b.At.File == ""]
				got = append(got, fmt.Sprintf("%s/%s%s", b.Volume, b.Claim, mark))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
