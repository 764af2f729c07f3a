package tacker_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
)

// anyRegions register every region, and remember the last one.
type anyRegions struct {
	tacker.Regions

	last nf.Region
}

func (*anyRegions) RegionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Region, error] {
	return func(func(nf.Region, error) bool) {}
}

func (a *anyRegions) Register(_ context.Context, r nf.Region) (nf.Region, error) {
	a.last = r
	return r, nil
}

// FuzzConnections checks that a connection of a request is rejected, or becomes a region
// with a complete access that is verified unless the connection says otherwise.
func FuzzConnections(f *testing.F) {
	for _, seed := range []string{
		`{"endpoint": "https://a:6443", "ssl_ca_cert": "None"}`, `{"endpoint": "https://a:6443/"}`, `{"endpoint": 1}`, `{"endpoint": "https://u:p@a"}`, `{}`,
	} {
		for _, access := range []string{
			`{"bearer_token": "t"}`, `{"username": "u", "password": "p", "region": "x"}`, `{"kubeconfig": "e30="}`, `{"oidc_token_url": "https://o", "client_id": "c"}`, `{"bearer_token": ["t"]}`,
		} {
			f.Add([]byte(seed), []byte(access))
		}
	}
	f.Fuzz(func(t *testing.T, address, credentials []byte) {
		c := nf.VIMConnectionRequest{Type: "ETSINFV.KUBERNETES.V_1"}
		if json.Unmarshal(address, &c.Interface) != nil || json.Unmarshal(credentials, &c.Access) != nil {
			return
		}
		regions := &anyRegions{}
		got, err := tacker.NewConnections(regions).Register(t.Context(), "red", map[string]nf.VIMConnectionRequest{"a": c})
		r := regions.last
		switch {
		case err != nil && r.ID != "", err == nil && len(c.Access) == 0 && r.ID != "":
			t.Errorf("%q, %q: region %s comes to be: %v", address, credentials, r.ID, err)
		case r.ID == "":
			return
		case got["a"].VIM != r.VIMID() || nf.CheckID("", r.ID) != nil || r.Origin != nf.OriginVNF:
			t.Errorf("%q, %q: the connection has VIM %s, and the region is %s", address, credentials, got["a"].VIM, r.ID)
		case len(r.Access.Kubeconfig) == 0 && len(r.Access.Validate(nil)) > 0:
			t.Errorf("%q, %q: the access is invalid: %v", address, credentials, r.Access.Validate(nil))
		case r.Access.Insecure && !strings.Contains(strings.ToLower(string(address)+string(credentials)), "none"):
			t.Errorf("%q, %q: the server is not verified", address, credentials)
		}
	})
}
