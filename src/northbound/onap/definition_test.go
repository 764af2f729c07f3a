package onap

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
)

// TestDeletedDefinition shows a definition whose service SDC has deleted, and stores it
// again as a client may.
func TestDeletedDefinition(t *testing.T) {
	t.Parallel()
	stored := bundle.Definition{Name: "d", Version: "1", Labels: map[string]string{"a": "b"}, Origin: &bundle.Origin{Deleted: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)}}
	shown := fromDefinition(stored)
	if diff := cmp.Diff(map[string]string{"a": "b", "sdc_deleted_at": "2026-11-27T08:00:00Z"}, shown.Labels); diff != "" {
		t.Errorf("it is shown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stored.Labels, toDefinition(shown).Labels); diff != "" {
		t.Errorf("the label is not stored (-want +got):\n%s", diff)
	}
	if stored.Labels = nil; fromDefinition(stored).Labels["sdc_deleted_at"] == "" {
		t.Error("a definition without labels is not marked")
	}
}
