package onap_test

import "testing"

// TestRegistry checks the registration of regions, in both styles of errors.
func TestRegistry(t *testing.T) {
	t.Parallel()
	const missing = "Error finding master table: mongo: no documents in result"
	for _, strict := range []bool{false, true} {
		w := newWorld(t, strict)
		w.want(t, "without A&AI, a registered region stays as it is", "POST /acme/inventory/registry", `{}`, 202, "")
		w.want(t, "there is none", "POST /acme/none/registry", `{}`, 404, "Import Region: "+missing)
		w.want(t, "its credentials can be used", "GET /acme/inventory/registry", "", 200, `{"status":"registered"}`)
		w.want(t, "they cannot", "GET /acme/bare/registry", "", 200, `{"status":"without access"}`)
		w.want(t, "there is none to show", "GET /acme/none/registry", "", 404, "Get Region: "+missing)
		w.want(t, "an imported one is deregistered", "DELETE /acme/inventory/registry", "", 204, "")
	}
}
