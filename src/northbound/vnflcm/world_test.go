package vnflcm_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
)

// world is the API on a ledger in memory.
type world struct {
	*standIn

	t       testing.TB
	handler http.Handler
	client  *http.Client
	url     string
	root    string // of the version
}

func newWorld(t testing.TB, root string, edit ...func(*vnflcm.Config)) *world {
	t.Helper()
	w := &world{standIn: newStandIn(), t: t, client: northboundtest.Client(t, k8splugin.Swagger), root: root}
	cfg := vnflcm.Config{VNFs: w, Changes: w, Modifications: w, Occurrences: w, Recovery: w, ConnectionPoints: points}
	for _, e := range edit {
		e(&cfg)
	}
	api, err := vnflcm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.handler, err = northbound.New(northbound.Config{Swagger: k8splugin.Swagger, APIs: []northbound.API{api}})
	if err != nil {
		t.Fatal(err)
	}
	w.handler = sol013.Formats(w.handler)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// points are the connection points of the only package.
func points(_ context.Context, pkg, flavor string) (map[string]string, error) {
	if pkg != "pkg" || flavor != "simple" {
		return nil, nil
	}
	return map[string]string{"VDU1_CP1": "web"}, nil
}

type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with headers: name, value, …. A path without a prefix is one of the
// version. The version's header is that of the path, unless another one is given; an
// empty one is not sent.
func (w *world) ask(method, path, body string, headers ...string) answer {
	w.t.Helper()
	if !strings.HasPrefix(path, "/vnflcm") && !strings.HasPrefix(path, "http") {
		path = w.root + path
	}
	if !strings.HasPrefix(path, "http") {
		path = w.url + path
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Version", sol013.VersionOf(r.URL.Path))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		if r.Header.Set(pair[0], pair[1]); pair[1] == "" {
			r.Header.Del(pair[0])
		}
	}
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	got := answer{res.StatusCode, res.Header, strings.TrimSpace(string(content))}
	if got.header.Get("Version") != sol013.VersionOf(r.URL.Path) || got.header.Get("Accept-Ranges") != "none" {
		w.t.Errorf("%s %s: headers %v", method, path, got.header)
	}
	if strings.Contains(got.body, "s3cret") {
		w.t.Errorf("%s %s: the answer has a secret: %s", method, path, got.body)
	}
	return got
}

// want fails the test unless the request has the status.
func (w *world) want(status int, method, path, body string, headers ...string) answer {
	w.t.Helper()
	got := w.ask(method, path, body, headers...)
	if got.status != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, got.status, status, got.body)
	}
	return got
}

func (a answer) fields(t testing.TB) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

// links returns the names of the links of a document.
func (a answer) links(t testing.TB) string {
	t.Helper()
	var names []string
	links, _ := a.fields(t)["_links"].(map[string]any)
	for name := range links {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// created creates a VNF and returns its path.
func (w *world) created() string {
	w.t.Helper()
	at := w.want(http.StatusCreated, "POST", "/vnf_instances", `{"vnfdId": "`+knownVNFD+`"}`).header.Get("Location")
	return strings.TrimPrefix(at, w.url+w.root)
}

// instantiated returns the path of a VNF that is instantiated.
func (w *world) instantiated() string {
	w.t.Helper()
	at := w.created()
	w.set(at, func(v *nf.VNF) {
		v.Instantiated = &nf.InstantiatedVNF{
			Flavor: "simple", Namespace: "edge", Region: "east", Scale: map[string]int{"vdu1_aspect": 1}, MaxScale: map[string]int{"vdu1_aspect": 2},
			VNFCs: []nf.VNFC{{VDU: "VDU1", Resource: "web-5d5f-abcde", Workload: "Deployment"}}, Files: []string{"Files/kubernetes/a.yaml"},
			Params: map[string]any{"password": "s3cret"},
		}
		v.VIMs = map[string]nf.VIMConnection{"vim1": {VIM: "7e2f0c1a-3b5d-5e61-9a3c-0d0f4f6c5b11", Region: "east", Type: "ETSINFV.KUBERNETES.V_1"}}
	})
	return at
}

func (w *world) set(at string, edit func(*nf.VNF)) {
	id := strings.TrimPrefix(at, "/vnf_instances/")
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.vnfs[id]
	edit(&v)
	w.vnfs[id] = v
}

// accepted sends a request for an occurrence, and returns the path of the occurrence.
func (w *world) accepted(method, path, body string, headers ...string) string {
	w.t.Helper()
	got := w.want(http.StatusAccepted, method, path, body, headers...)
	at, absolute := strings.CutPrefix(got.header.Get("Location"), w.url+w.root)
	if !absolute || !strings.HasPrefix(at, "/vnf_lcm_op_occs/") || got.body != "" {
		w.t.Fatalf("%s %s: Location %q, body %q", method, path, got.header.Get("Location"), got.body)
	}
	return at
}

func occurrenceID(at string) string { return strings.TrimPrefix(at, "/vnf_lcm_op_occs/") }

// both runs a test with each version of the API.
func both(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for _, root := range []string{"/vnflcm/v1", "/vnflcm/v2"} {
		t.Run(strings.TrimPrefix(root, "/vnflcm/"), func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, root))
		})
	}
}
