package onap_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// ground is the base of resource bundles and connections: real bundles in memory,
// and stand-ins for the regions, their users and the permissions.
type ground struct {
	unused // the tests use only the methods defined here

	kv      store.KV
	regions map[string]nf.Region
	users   map[string][]string // of regions
	leaving map[string]bool     // instances that go when they are waited for
	denied  map[nf.Permission]bool
	mu      sync.Mutex
	asked   []string
}

type unused interface {
	onap.Instances
	onap.Operations
}

func (*ground) Upload(_ context.Context, as nf.Package, _ io.Reader) (nf.Package, bool, error) {
	return as, true, nil
}

func (*ground) Package(_ context.Context, id string) (nf.Package, error) {
	return nf.Package{}, nf.E(nf.NotFound, "get", "package "+id, nil)
}

func (*ground) RemovePackage(context.Context, string) error { return nil }

func (g *ground) May(_ context.Context, p nf.Permission, s nf.Scope, _ ...string) error {
	g.mu.Lock() // requests are concurrent
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf("%s %s%s", p, s.Project, s.Region))
	if g.denied[p] {
		return nf.E(nf.Forbidden, "do", string(p), nil)
	}
	return nil
}

func (g *ground) Enlist(_ context.Context, r nf.Region) (nf.Region, error) {
	if _, taken := g.regions[r.ID]; taken {
		return r, nf.E(nf.Exists, "register", "cloud region "+r.ID, nil)
	}
	if bytes.Contains(r.Access.Kubeconfig, []byte("exec")) {
		return r, nf.E(nf.Invalid, "register", "cloud region "+r.ID, nf.Violations{{Message: "exec is refused"}})
	}
	g.regions[r.ID] = r
	return r, nil
}

func (g *ground) Region(_ context.Context, id string) (nf.Region, error) {
	r, ok := g.regions[id]
	if !ok {
		return r, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return r, nil
}

func (g *ground) RemoveRegion(ctx context.Context, id string) error {
	_, err := g.Region(ctx, id)
	if users := g.users[id]; err == nil && len(users) > 0 {
		return nf.E(nf.Conflict, "remove", "cloud region "+id, nf.Violations{{Message: "is used by VNF instance " + users[0]}})
	}
	delete(g.regions, id)
	return err
}

func (g *ground) Users(_ context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		for _, id := range slices.Clone(g.users[of.Region]) {
			if !yield(nf.Subject{Kind: nf.InstanceSubject, ID: id}, nil) {
				return
			}
		}
	}
}

func (g *ground) Instance(_ context.Context, id string) (nf.Instance, error) {
	in := nf.Instance{ID: id, State: nf.Ready}
	if g.leaving[id] {
		in.State, in.Operation = nf.Terminating, id
	}
	return in, nil
}

func (g *ground) Follow(_ context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		if !yield(nf.Operation{ID: id, State: nf.Running}, nil) {
			return
		}
		for region, users := range g.users {
			g.users[region] = slices.DeleteFunc(users, func(user string) bool { return user == id })
		}
		yield(nf.Operation{ID: id, State: nf.Succeeded}, nil)
	}
}

func newGround() *ground {
	return &ground{kv: memory.New(), regions: map[string]nf.Region{}, users: map[string][]string{}, leaving: map[string]bool{}, denied: map[nf.Permission]bool{}}
}

// place is where the API is served, and a client that compares its answers with
// swagger.yaml.
type place struct {
	url    string
	client *http.Client
}

// serve serves the API without the shell around it.
func (g *ground) serve(t *testing.T, edit ...func(*onap.Config)) place {
	t.Helper()
	bundles, err := bundle.New(bundle.Config{KV: g.kv, Packages: g, NewID: rand.Text})
	if err != nil {
		t.Fatal(err)
	}
	cfg := onap.Config{
		Regions: g, Instances: g, Operations: g, NewID: rand.Text, Staging: onap.InStore(g.kv),
		Live: struct{ onap.Live }{},
	}
	permit(g.May).access(&cfg, bundles, nil)
	for _, f := range edit {
		f(&cfg)
	}
	api, err := onap.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	router := mux.NewRouter().SkipClean(true)
	api.Routes(router)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return place{server.URL, northboundtest.Client(t, k8splugin.Swagger)}
}

// reply is an answer, read.
type reply struct {
	status int
	header http.Header
	body   string
}

// send makes a request: "GET /v1/...". The headers are pairs.
func (p place) send(t *testing.T, request, body string, header ...string) reply {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(content)}
}

// TestBundleTranscripts replays what is written down of definitions, profiles,
// templates and connections.
func TestBundleTranscripts(t *testing.T) {
	t.Parallel()
	kubeconfig := "apiVersion: v1\nkind: Config\n"
	for _, name := range []string{"definitions", "profiles", "templates", "connections"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := newGround().serve(t)
			northboundtest.Player{
				Client: site.client, Server: site.url,
				Vars: map[string]string{"KUBECONFIG": kubeconfig, "KUBECONFIG_BASE64": base64.StdEncoding.EncodeToString([]byte(kubeconfig))},
			}.Play(t, filepath.Join("../../../api/onap", name+".txtar"))
		})
	}
}

// TestNothingToList checks empty lists, which no transcript can show.
func TestNothingToList(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		path   string
		legacy string
		strict string
	}{
		"All":       {"CDS and SO look for the tag", "/v1/rb/definition", "Listing Resource Bundle Definitions: Did not find any objects with tag: defmetadata\n", "[]\n"},
		"OfAName":   {"whatever the name", "/v1/rb/definition/fw", "Listing Resource Bundle Definitions: Did not find any objects with tag: defmetadata\n", "[]\n"},
		"Profiles":  {"no definition, no profiles", "/v1/rb/definition/fw/1/profile", "No Profiles Found for this Definition\n", "[]\n"},
		"Templates": {"no definition, no templates", "/v1/rb/definition/fw/1/config-template", "No Config Templates Found\n", "[]\n"},
	}
	legacy, strict := newGround().serve(t), newGround().serve(t, func(c *onap.Config) { c.Strict = true })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := legacy.send(t, "GET "+tc.path, ""); got.status != 500 || got.body != tc.legacy {
				t.Errorf("%s: %d %q", tc.reason, got.status, got.body)
			}
			if got := strict.send(t, "GET "+tc.path, ""); got.status != 200 || got.body != tc.strict {
				t.Errorf("%s, strictly: %d %q", tc.reason, got.status, got.body)
			}
		})
	}
}

// TestStrictStatuses holds the statuses of the strict style, under the same
// texts.
func TestStrictStatuses(t *testing.T) {
	t.Parallel()
	const connection = `{"cloud-region": "east", "cloud-owner": "o", "kubeconfig": "eA=="}`
	cases := map[string]struct {
		reason  string
		request string
		body    string
		status  int
		text    string
	}{
		"Definition":  {"it is missing", "GET /v1/rb/definition/nat/1", "", 404, "no documents"},
		"Update":      {"it is missing", "PUT /v1/rb/definition/nat/1", "{}", 404, "does not exists"},
		"Template":    {"it is missing", "GET /v1/rb/definition/nat/1/config-template/t", "", 404, "no documents"},
		"Connection":  {"it is missing", "GET /v1/connectivity-info/west", "", 404, "no documents"},
		"Twice":       {"the name is taken", "POST /v1/rb/definition", `{"rb-name": "fw", "rb-version": "1"}`, 409, "Definition already exists"},
		"SecondOwner": {"the name is taken", "POST /v1/connectivity-info", connection, 409, "Connection already exists"},
		"Archive":     {"the archive is wrong", "POST /v1/rb/definition/fw/1/content", "x", 400, "Invalid gzip format"},
		"Upload":      {"its definition is missing", "POST /v1/rb/definition/nat/1/content", string(rendertest.TarGz(map[string]string{"a/Chart.yaml": "name: a"})), 404, "Invalid Definition ID"},
		"None":        {"null is no list", "GET /v1/rb/definition/nat", "", 200, "[]"},
	}
	g := newGround()
	site := g.serve(t, func(c *onap.Config) { c.Strict = true })
	site.send(t, "POST /v1/rb/definition", `{"rb-name": "fw", "rb-version": "1"}`)
	site.send(t, "POST /v1/connectivity-info", connection)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := site.send(t, tc.request, tc.body)
			if got.status != tc.status || !strings.Contains(got.body, tc.text) {
				t.Errorf("%s: %d %q, want %d and %q", tc.reason, got.status, got.body, tc.status, tc.text)
			}
		})
	}
}

// TestBundlePermissions asks for everything as an identity without permissions.
func TestBundlePermissions(t *testing.T) {
	t.Parallel()
	const one = "/v1/rb/definition/fw/1"
	reads := []string{"/v1/rb/definition", "/v1/rb/definition/fw", one, one + "/profile", one + "/profile/default", one + "/config-template", one + "/config-template/t"}
	writes := []string{
		"POST /v1/rb/definition", "PUT " + one, "DELETE " + one, "POST " + one + "/content",
		"POST " + one + "/profile", "PUT " + one + "/profile/default", "DELETE " + one + "/profile/default", "POST " + one + "/profile/default/content",
		"POST " + one + "/config-template", "PUT " + one + "/config-template/t", "DELETE " + one + "/config-template/t", "POST " + one + "/config-template/t/content",
	}
	g := newGround()
	site := g.serve(t)
	site.send(t, "POST /v1/rb/definition", `{"rb-name": "fw", "rb-version": "1"}`)
	g.denied = map[nf.Permission]bool{nf.ReadPackage: true, nf.WritePackage: true}
	for permission, requests := range map[nf.Permission][]string{nf.ReadPackage: reads, nf.WritePackage: writes} {
		for _, request := range requests {
			if !strings.Contains(request, " ") {
				request = "GET " + request
			}
			g.asked = nil
			got := site.send(t, request, "{}")
			if got.status != http.StatusForbidden || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%s: %d %q", request, got.status, got.body)
			}
			if want := string(permission) + " default"; len(g.asked) != 1 || g.asked[0] != want {
				t.Errorf("%s asked for %q, want %q", request, g.asked, want)
			}
		}
	}
}

func TestConnectionSecrets(t *testing.T) {
	t.Parallel()
	g := newGround()
	site := g.serve(t)
	site.send(t, "POST /v1/connectivity-info", `{"cloud-region": "east", "cloud-owner": "o", "kubeconfig": "czNjcmV0",
		"other-connectivity-list": {"connectivity-records": [{"connectivity-record-name": "ovn", "password": "s3cret", "private-key": "s3cret"}]}}`)
	const shown = `{"cloud-region":"east","cloud-owner":"o","kubeconfig":%q,"other-connectivity-list":{"connectivity-records":[{"connectivity-record-name":"ovn","password":%q,"private-key":%q}]}}` + "\n"
	if got := site.send(t, "GET /v1/connectivity-info/east", ""); got.body != fmt.Sprintf(shown, "czNjcmV0", "s3cret", "s3cret") {
		t.Errorf("to who may change the region: %s", got.body)
	}
	g.denied[nf.WriteRegion] = true
	if got := site.send(t, "GET /v1/connectivity-info/east", ""); got.body != fmt.Sprintf(shown, "", nf.Masked, nf.Masked) {
		t.Errorf("to who may only look: %s", got.body)
	}
	for name, body := range map[string]string{
		"refused":    `{"cloud-region": "west", "cloud-owner": "o", "kubeconfig": "` + base64.StdEncoding.EncodeToString([]byte("exec s3cret")) + `"}`,
		"not base64": `{"cloud-region": "west", "cloud-owner": "o", "kubeconfig": "s3cret!"}`,
	} {
		got := site.send(t, "POST /v1/connectivity-info", body)
		if got.status != 422 || !strings.HasPrefix(got.body, "Unable to process file: ") || strings.Contains(got.body, "s3cret") {
			t.Errorf("a kubeconfig that is %s: %d %s", name, got.status, got.body)
		}
	}
}

// TestRegisteredElsewhere reads the connection to a region that ONAP's API did
// not make.
func TestRegisteredElsewhere(t *testing.T) {
	t.Parallel()
	g := newGround()
	g.regions["native"] = nf.Region{ID: "native", Owner: "k8splugin", Access: nf.Access{Kubeconfig: nf.Secret("x")}}
	got := g.serve(t).send(t, "GET /v1/connectivity-info/native", "")
	want := `{"cloud-region":"native","cloud-owner":"k8splugin","kubeconfig":"eA==","other-connectivity-list":{"connectivity-records":null}}` + "\n"
	if got.status != 200 || got.body != want {
		t.Errorf("it is shown as any other: %d %s", got.status, got.body)
	}
}

// TestUploadForms sends an archive in every way that clients do.
func TestUploadForms(t *testing.T) {
	t.Parallel()
	archive := string(rendertest.TarGz(map[string]string{"fw/Chart.yaml": "name: fw\n"}))
	form := func(nl string, parts ...string) string {
		var b strings.Builder
		for i := 0; i < len(parts); i += 2 {
			b.WriteString("--x-y" + nl + "Content-Disposition: form-data; " + parts[i] + nl + nl + parts[i+1] + nl)
		}
		return b.String() + "--x-y--" + nl
	}
	file := form("\r\n", `name="file"; filename="a.tgz"`, archive)
	cases := map[string]struct {
		reason string
		media  string
		body   string
		status int
		text   string
	}{
		"Raw":         {"the body is the archive", "", archive, 200, ""},
		"FormEncoded": {"the type does not matter", "application/x-www-form-urlencoded", archive, 200, ""},
		"Form":        {"a form has it in a file", "multipart/form-data; boundary=x-y", file, 200, ""},
		"NoBoundary":  {"the first line separates the parts", "multipart/form-data", file, 200, ""},
		"NoType":      {"a form is one by its first line", "", file, 200, ""},
		"LineFeeds":   {"some write lines without the carriage return", "multipart/form-data", form("\n", `name="f"; filename="a"`, archive), 200, ""},
		"Second":      {"the file is found behind fields", "multipart/form-data", form("\r\n", `name="a"`, "b", `name="file"; filename="a.tgz"`, archive), 200, ""},
		"NoFilename":  {"without a file, the first part is it", "multipart/form-data", form("\r\n", `name="file"`, archive), 200, ""},
		"EmptyFile":   {"an empty file is an empty body", "multipart/form-data", form("\r\n", `name="file"; filename="a.tgz"`, ""), 400, "Empty body\n"},
		"CutOff":      {"half a form is no archive", "multipart/form-data", file[:len(file)-20], 500, "Error in file format: Invalid gzip format\n"},
		"Dashes":      {"what begins with dashes need not be a form", "", "--- a: b\n", 500, "Error in file format: Invalid gzip format\n"},
		"TooLarge":    {"the limit is on the body", "", strings.Repeat("x", 1<<20+1), 413, "cannot read content: it is larger than 1048576 bytes\n"},
	}
	site := newGround().serve(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site.send(t, "POST /v1/rb/definition", `{"rb-name": "`+name+`", "rb-version": "1"}`)
			got := site.send(t, "POST /v1/rb/definition/"+name+"/1/content", tc.body, "Content-Type", tc.media)
			if got.status != tc.status || got.body != tc.text {
				t.Errorf("%s: %d %q, want %d %q", tc.reason, got.status, got.body, tc.status, tc.text)
			}
		})
	}
}
