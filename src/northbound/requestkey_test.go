package northbound_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// TestKeyOfAProject computes the key of the same request with tokens of several projects.
func TestKeyOfAProject(t *testing.T) {
	t.Parallel()
	for project, want := range map[string]string{"": "keystone:ann", "blue": "keystone:ann\x00blue", "green": "keystone:ann\x00green"} {
		ctx := nf.WithIdentity(t.Context(), nf.Identity{Kind: "keystone", Name: "ann", Project: project})
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/packages", nil)
		r.Header.Set("Idempotency-Key", "k")
		if key, err := northbound.RequestKey(r, nil); err != nil || key.Client != want {
			t.Errorf("in project %q, the key is that of %q, want %q: %v", project, key.Client, want, err)
		}
	}
}
