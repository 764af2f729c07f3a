package chartsource

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// pick returns the index of the requested version: the one with exactly this
// name, otherwise the highest in the range. If version is empty, it is the
// highest release.
func pick(all []string, version string) (int, error) {
	for i, v := range all {
		if version != "" && v == version {
			return i, nil
		}
	}
	text := version
	if text == "" {
		text = "*"
	}
	within, err := semver.NewConstraint(text)
	if err != nil {
		return 0, nf.Violations{{Field: "chart.version", Message: fmt.Sprintf("%q is neither an available version nor a range", version)}}
	}
	found, best := -1, (*semver.Version)(nil)
	for i, v := range all {
		candidate, err := semver.NewVersion(v)
		if err != nil || !within.Check(candidate) || best != nil && !candidate.GreaterThan(best) {
			continue
		}
		found, best = i, candidate
	}
	if found < 0 {
		return 0, nf.E(nf.NotFound, "find", "version "+text, fmt.Errorf("none of the %d available versions is in that range", len(all)))
	}
	return found, nil
}
