package onapimport

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
)

// api is an API server that has ConfigMaps and Secrets. It answers a list by the
// function of its path, with an empty one if there is none.
type api map[string]func() (code int, body string)

// RoundTrip implements http.RoundTripper.
func (a api) RoundTrip(req *http.Request) (*http.Response, error) {
	code, body := http.StatusOK, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`
	switch list := a[req.URL.Path]; {
	case list != nil:
		code, body = list()
	case req.URL.Path == "/api":
		body = `{"kind":"APIVersions","versions":["v1"]}`
	case req.URL.Path == "/apis":
		body = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
	case req.URL.Path == "/api/v1":
		body = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
			{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get","list","watch","patch","delete"]},
			{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get","list","watch","patch","delete"]}]}`
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
	}, nil
}

// open returns the cluster that the API server is.
func (a api) open(t *testing.T) *cluster.Cluster {
	t.Helper()
	pool := cluster.New(cluster.PoolConfig{Wrap: func(string, http.RoundTripper) http.RoundTripper { return a }})
	c, err := pool.Open("east", nf.Access{Server: "https://east.invalid", Token: nf.Secret("t")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func forbidden() (int, string) {
	return http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}`
}

func liveMap() (int, string) {
	return http.StatusOK, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","uid":"u","labels":{"k8splugin.io/rb-instance-id":"vnf-1"}}}]}`
}

func TestAlive(t *testing.T) {
	const mine, everywhere = "/api/v1/namespaces/ns/configmaps", "/api/v1/configmaps"
	cases := map[string]struct {
		reason string
		api    api
		says   string // empty: it is alive
	}{
		"there":            {"one of its objects is in the region", api{mine: liveMap}, ""},
		"there in part":    {"that the credential may not list all namespaces does not matter then", api{mine: liveMap, everywhere: forbidden}, ""},
		"another cluster":  {"none of its objects is in the region", api{}, "has its label"},
		"one namespace":    {"an object that cannot be read is no proof of anything", api{everywhere: forbidden}, "has its label"},
		"nothing readable": {"without a right to read there is no proof either", api{mine: forbidden, everywhere: forbidden}, "cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := takenOver{Instance: onapstore.Instance{
				ID: "vnf-1", Namespace: "ns", Resources: []onapstore.Resource{{Type: onapstore.Type{Version: "v1", Kind: "ConfigMap"}, Name: "a"}},
			}}
			err := (&Importer{}).alive(t.Context(), tc.api.open(t), o)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.says)
			}
		})
	}
}

func TestCompareWithRegion(t *testing.T) {
	refs := []nf.Ref{
		{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}, {Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "gone"},
		{Version: "v1", Kind: "Secret", Namespace: "ns", Name: "s"},
	}
	c := api{"/api/v1/namespaces/ns/configmaps": liveMap, "/api/v1/namespaces/ns/secrets": forbidden}.open(t)
	o := &candidate{}
	o.takenOver.ID = "vnf-1"
	if err := o.compareWith(t.Context(), c, refs); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ConfigMap ns/gone is in the chart, but it is not in the region or not owned by the instance there",
		"Secret ns/s cannot be read in the region: cannot list Secret objects: you may not",
	}
	if d := cmp.Diff(want, o.item.Warnings); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
