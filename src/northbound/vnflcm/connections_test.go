package vnflcm_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
)

// TestConnections instantiates VNFs in VIMs that requests describe.
func TestConnections(t *testing.T) {
	t.Parallel()
	var asked []string
	w := newWorld(t, "/vnflcm/v2", func(c *vnflcm.Config) {
		c.Connections = func(_ context.Context, project string, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnectionRequest, error) {
			given := wanted["vim1"]
			token, _ := given.Access["bearer_token"].(string)
			asked = append(asked, project+" "+token)
			if token == "s3cret-wrong" {
				return nil, nf.E(nf.Unreachable, "register", "the connection vim1", errors.New("its credential is refused"))
			}
			given.VIM = "made"
			return map[string]nf.VIMConnectionRequest{"vim1": given}, nil
		}
	})
	body := func(token string) string {
		return `{"flavourId": "simple", "vnfdId": "vnfd-1", "additionalParams": {}, "vimConnectionInfo": {"vim1": {"vimType": "ETSINFV.KUBERNETES.V_1", "accessInfo": {"bearer_token": "` + token + `"}}}}`
	}
	at := w.created()
	w.set(at, func(v *nf.VNF) { v.Project = "red" })
	w.want(http.StatusBadGateway, "POST", at+"/instantiate", body("s3cret-wrong"))
	w.want(http.StatusNotFound, "POST", "/vnf_instances/none/instantiate", body("s3cret-a"))
	w.accepted("POST", at+"/instantiate", body("s3cret-a"))
	if vim := w.last.(nf.InstantiateVNFRequest).VIMs["vim1"].VIM; vim != "made" {
		t.Errorf("the VNF is instantiated in %q", vim)
	}
	w.accepted("POST", w.created()+"/instantiate", `{"flavourId": "simple"}`)
	w.accepted("PATCH", w.instantiated(), body("s3cret-b"))
	if vim := w.last.(nf.ModifyVNFRequest).VIMs["vim1"].VIM; vim != "made" {
		t.Errorf("a modification connects the VNF to %q", vim)
	}
	w.accepted("POST", w.instantiated()+"/change_vnfpkg", body("s3cret-c"))
	if vim := w.last.(nf.ChangeVNFPackageRequest).VIMs["vim1"].VIM; vim != "made" {
		t.Errorf("a change of the package connects the VNF to %q", vim)
	}
	if want := []string{"red s3cret-wrong", "red s3cret-a", " s3cret-b", " s3cret-c"}; !slices.Equal(asked, want) {
		t.Errorf("the connections of %q are registered, want %q", asked, want)
	}
}

// TestRefusedConnections registers no VIM for a request that starts no occurrence: that would
// replace the access of a VIM that VNFs use.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	const body = `{"flavourId": "simple", "vimConnectionInfo": {"vim1": {"vimType": "ETSINFV.KUBERNETES.V_1", "accessInfo": {"bearer_token": "s3cret"}}}}`
	calls := 0
	w := newWorld(t, "/vnflcm/v2", func(c *vnflcm.Config) {
		c.Connections = func(_ context.Context, _ string, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnectionRequest, error) {
			calls++
			return wanted, nil
		}
	})
	want := func(reason string, number int) {
		t.Helper()
		if calls != number {
			t.Errorf("%s: VIMs are registered %d times, want %d", reason, calls, number)
		}
		calls = 0
	}
	w.want(http.StatusConflict, "POST", w.instantiated()+"/instantiate", body)
	want("the VNF is instantiated", 0)
	at := w.created()
	first := w.accepted("POST", at+"/instantiate", body, "Idempotency-Key", "k")
	want("the first request", 1)
	if again := w.accepted("POST", at+"/instantiate", body, "Idempotency-Key", "k"); again != first {
		t.Errorf("the repeated request started %s, want %s", again, first)
	}
	want("it repeats a request", 0)
	w.want(http.StatusConflict, "POST", at+"/instantiate", body)
	want("an occurrence runs", 0)
	w.want(http.StatusConflict, "PATCH", at, `{"vimConnectionInfo": {"vim1": {"vimType": "ETSINFV.KUBERNETES.V_1", "accessInfo": {"bearer_token": "s3cret"}}}}`)
	want("an occurrence runs that a modification would change", 0)
}
