package onap_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// TestLegacyWriter checks that SO's adapter remains the writer of an imported instance.
func TestLegacyWriter(t *testing.T) {
	t.Parallel()
	spec, err := onap.Legacy{ID: "vnf-1", Bundle: bundle.Key{Name: "d", Version: "v", Profile: "p"}, Region: "east"}.Spec(bundle.Composed{}, "g", false)
	if err != nil || spec.AAI.Writer != nf.AAIAdapter {
		t.Errorf("the writer is %q (%v)", spec.AAI.Writer, err)
	}
}
