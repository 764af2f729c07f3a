package vnfpkgm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpkgm"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/csar"
	"github.com/multicloud-k8s/k8splugin/src/render/helm"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

const root = "/vnfpkgm/v1/vnf_packages"

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// archives are those of a catalog, without permissions.
type archives struct{ *catalog.Catalog }

func (a archives) MayChange(ctx context.Context, id string) error {
	_, err := a.Package(ctx, id)
	return err
}

func (a archives) InUse(ctx context.Context, id string) (bool, error) {
	next, stop := iter.Pull2(a.Users(ctx, nf.Holding{Package: id}))
	defer stop()
	_, err, used := next()
	return used, err
}

// world is the API on a catalog in memory.
type world struct {
	t       *testing.T
	catalog *catalog.Catalog
	client  *http.Client
	url     string
	sources map[string][]byte // by URL
	asked   []vnfpkgm.Source

	fetching func(context.Context) // during a download; nil: nothing
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, client: northboundtest.Client(t, k8splugin.Swagger), sources: map[string][]byte{}}
	ids := 0
	var made atomic.Int64
	manifests := manifest.New(nil)
	var err error
	w.catalog, err = catalog.New(catalog.Config{
		KV: memory.New(), Limits: render.DefaultLimits(), NewID: func() string { ids++; return fmt.Sprintf("id-%04d", ids) },
		Renderers: map[string]render.Renderer{"csar": csar.New(csar.Config{Manifests: manifests, Charts: helm.New(helm.Config{})}), "manifest": manifests},
		Probe:     func(context.Context, nf.Access) (nf.Probe, error) { return nf.Probe{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	api, err := vnfpkgm.New(vnfpkgm.Config{Packages: w.catalog, Archives: archives{w.catalog}, Fetch: w.fetch, NewID: func() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", made.Add(1)) }})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, APIs: []northbound.API{api}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) fetch(ctx context.Context, from vnfpkgm.Source, into func(context.Context, io.Reader) error) error {
	w.asked = append(w.asked, from)
	content, found := w.sources[from.URL]
	if !found {
		return nf.E(nf.Forbidden, "ask", "host", nil)
	}
	if w.fetching != nil {
		w.fetching(ctx)
	}
	return into(ctx, bytes.NewReader(content))
}

type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with headers: name, value, ….
func (w *world) ask(method, path, body string, headers ...string) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(content)}
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

func (a answer) fields(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

// create creates a package and returns its path.
func (w *world) create(body string) string {
	w.t.Helper()
	return w.want(http.StatusCreated, "POST", root, body).header.Get("Location")
}

// onboard creates a package with content.
func (w *world) onboard(files map[string]string) string {
	w.t.Helper()
	at := w.create("{}")
	w.want(http.StatusAccepted, "PUT", at+"/package_content", string(rendertest.Zip(files)), "Content-Type", "application/zip", "Accept", "application/zip")
	return at
}

// states returns the three states of a package.
func (w *world) states(at string) string {
	w.t.Helper()
	f := w.want(http.StatusOK, "GET", at, "").fields(w.t)
	return fmt.Sprint(f["onboardingState"], " ", f["operationalState"], " ", f["usageState"])
}

// TestLife has the life of a package, from its creation to its deletion.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.create(`{"userDefinedData": {"ticket": "4711"}}`)
	if got := w.states(at); got != "CREATED DISABLED NOT_IN_USE" {
		t.Errorf("created: %s", got)
	}
	for _, path := range []string{"/package_content", "/vnfd", "/artifacts/Files/a.yaml"} {
		w.want(http.StatusConflict, "GET", at+path, "")
	}
	w.want(http.StatusConflict, "PATCH", at, `{"operationalState": "ENABLED"}`)
	w.want(http.StatusConflict, "PATCH", at, `{"operationalState": "DISABLED"}`)
	w.want(http.StatusBadRequest, "PUT", at+"/package_content", "garbage", "Content-Type", "application/zip")
	if got := w.states(at); got != "CREATED DISABLED NOT_IN_USE" {
		t.Errorf("after content that is refused: %s", got)
	}
	failure, _ := w.want(http.StatusOK, "GET", at, "").fields(t)["onboardingFailureDetails"].(map[string]any)
	if failure["status"] != 400.0 || failure["title"] != "Bad Request" || !strings.Contains(fmt.Sprint(failure["detail"]), "cannot onboard package") {
		t.Errorf("the failure is %v", failure)
	}
	w.want(http.StatusAccepted, "PUT", at+"/package_content", string(rendertest.Zip(csartest.Files(map[string]string{"Files/a.yaml": configMap}))), "Content-Type", "application/zip")
	if got := w.states(at); got != "ONBOARDED ENABLED NOT_IN_USE" {
		t.Errorf("onboarded: %s", got)
	}
	if got := w.want(http.StatusOK, "GET", at, "").fields(t); got["onboardingFailureDetails"] != nil {
		t.Errorf("onboarded: %v", got)
	}
	w.want(http.StatusConflict, "PUT", at+"/package_content", "PK", "Content-Type", "application/zip")
	id := strings.TrimPrefix(at, root+"/")
	holding := nf.Holding{Package: id, Holder: nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf"}}}
	if err := w.catalog.Hold(t.Context(), holding); err != nil {
		t.Fatal(err)
	}
	if got := w.states(at); got != "ONBOARDED ENABLED IN_USE" {
		t.Errorf("in use: %s", got)
	}
	w.want(http.StatusConflict, "DELETE", at, "")
	if got := w.want(http.StatusOK, "PATCH", at, `{"operationalState": "DISABLED"}`); strings.TrimSpace(got.body) != `{"operationalState":"DISABLED"}` {
		t.Errorf("disabled: %s", got.body)
	}
	w.want(http.StatusConflict, "DELETE", at, "")
	if err := w.catalog.Release(t.Context(), holding); err != nil {
		t.Fatal(err)
	}
	w.want(http.StatusNoContent, "DELETE", at, "", "Content-Type", "application/json")
	w.want(http.StatusNotFound, "GET", at, "")
}

func TestInfo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
	files["Definitions/df_simple.yaml"] += "  node_templates:\n    web:\n      type: tosca.nodes.nfv.Vdu.OsContainer\n" +
		"      properties:\n        sw_image_data: {name: web, version: '1.25', container_format: docker, size: 2 MB, checksum: {algorithm: sha-256, hash: ab}}\n" +
		"      artifacts: {image: registry.example.com/web:1.25}\n"
	delete(files, "sample.mf")
	files["sample.mf"] = csartest.Manifest(files)
	at := w.onboard(files)
	got := w.want(http.StatusOK, "GET", at, "").fields(t)
	images, _ := got["softwareImages"].([]any)
	if len(images) != 1 {
		t.Fatalf("images %v, want one", images)
	}
	image := images[0].(map[string]any)
	delete(image, "createdAt")
	if diff := cmp.Diff(map[string]any{
		"id": "web", "name": "web", "provider": "", "version": "1.25", "containerFormat": "DOCKER", "minDisk": 0.0, "minRam": 0.0, "size": 2e6,
		"checksum": map[string]any{"algorithm": "SHA-256", "hash": "ab"}, "imagePath": "registry.example.com/web:1.25",
	}, image); diff != "" {
		t.Errorf("the image (-want +got):\n%s", diff)
	}
	delete(got, "softwareImages")
	artifacts, _ := got["additionalArtifacts"].([]any)
	if len(artifacts) != 1 {
		t.Errorf("artifacts %v, want the one that is not part of the VNFD", artifacts)
	}
	delete(got, "additionalArtifacts")
	delete(got, "checksum")
	want := map[string]any{
		"id": strings.TrimPrefix(at, root+"/"), "vnfdId": csartest.VNFD, "vnfProvider": "Example", "vnfProductName": "Sample VNF", "vnfSoftwareVersion": "1.0", "vnfdVersion": "2.1",
		"onboardingState": "ONBOARDED", "operationalState": "ENABLED", "usageState": "NOT_IN_USE",
		"_links": map[string]any{"self": map[string]any{"href": at}, "vnfd": map[string]any{"href": at + "/vnfd"}, "packageContent": map[string]any{"href": at + "/package_content"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUploadNames checks that what is wrong with a CSAR is named.
func TestUploadNames(t *testing.T) {
	t.Parallel()
	good := csartest.Files(map[string]string{"Files/a.yaml": configMap})
	edited := func(name, content string) map[string]string {
		out := maps.Clone(good)
		out[name] = content
		return out
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		says   string
	}{
		"Tampered": {"a file that differs from its hash", edited("Files/a.yaml", configMap+"data: {a: b}\n"), "Files/a.yaml"},
		"Meta":     {"a structure that cannot be read", edited("TOSCA-Metadata/TOSCA.meta", "nonsense\n"), "TOSCA-Metadata/TOSCA.meta"},
		"Chart":    {"a package of another kind", map[string]string{"metadata.yaml": "resources:\n- manifest: [a.yaml]\n", "a.yaml": configMap}, "kind manifest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.create("")
			got := w.want(http.StatusBadRequest, "PUT", at+"/package_content", string(rendertest.Zip(tc.files)), "Content-Type", "application/zip")
			if detail := fmt.Sprint(got.fields(t)["detail"]); !strings.Contains(detail, tc.says) {
				t.Errorf("%s: %s, want %s", tc.reason, detail, tc.says)
			}
			if got := w.states(at); got != "CREATED DISABLED NOT_IN_USE" {
				t.Errorf("%s: %s", tc.reason, got)
			}
		})
	}
}

func TestUploadFromURI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sources["https://files.example.com/a.csar?signature=s3cret"] = rendertest.Zip(csartest.Files(nil))
	at := w.create("")
	w.want(http.StatusForbidden, "POST", at+"/package_content/upload_from_uri", `{"addressInformation": "https://elsewhere.example.com/a"}`)
	w.want(http.StatusBadRequest, "POST", at+"/package_content/upload_from_uri", `{}`)
	w.want(http.StatusAccepted, "POST", at+"/package_content/upload_from_uri", `{"addressInformation": "https://files.example.com/a.csar?signature=s3cret", "userName": "ann", "password": "pass"}`)
	if got := w.states(at); got != "ONBOARDED ENABLED NOT_IN_USE" {
		t.Errorf("fetched: %s", got)
	}
	if got := w.asked[1]; got.Username != "ann" || string(got.Password) != "pass" {
		t.Errorf("asked with %+v", got)
	}
	p, err := w.catalog.Package(t.Context(), strings.TrimPrefix(at, root+"/"))
	if err != nil || p.Source != "https://files.example.com/a.csar" {
		t.Errorf("source %q, %v, want it without what may be secret", p.Source, err)
	}
}

func TestPatchUserData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.create(`{"userDefinedData": {"a": "1", "b": {"c": "2", "d": "3"}}}`)
	w.want(http.StatusBadRequest, "PATCH", at, `{}`)
	w.want(http.StatusBadRequest, "PATCH", at, `{"vnfdId": "x"}`)
	w.want(http.StatusBadRequest, "PATCH", at, `{"operationalState": "ON"}`)
	w.want(http.StatusConflict, "PATCH", at, `{"userDefinedData": {"a": "1"}}`)
	w.want(http.StatusOK, "PATCH", at, `{"userDefinedData": {"a": null, "b": {"c": "4"}, "e": "5"}}`, "Content-Type", "application/merge-patch+json")
	got := w.want(http.StatusOK, "GET", at, "").fields(t)["userDefinedData"]
	if diff := cmp.Diff(map[string]any{"b": map[string]any{"c": "4", "d": "3"}, "e": "5"}, got); diff != "" {
		t.Errorf("the merged data (-want +got):\n%s", diff)
	}
}

// TestOtherKinds checks that packages of other kinds are not VNF packages.
func TestOtherKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	archive := rendertest.Zip(map[string]string{"metadata.yaml": "resources:\n- manifest: [a.yaml]\n", "a.yaml": configMap})
	if _, _, err := w.catalog.Upload(t.Context(), nf.Package{ID: "plain"}, bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/package_content", "/vnfd", "/artifacts/a.yaml"} {
		w.want(http.StatusNotFound, "GET", root+"/plain"+path, "")
	}
	w.want(http.StatusNotFound, "PATCH", root+"/plain", `{"operationalState": "DISABLED"}`)
	w.want(http.StatusNotFound, "DELETE", root+"/plain", "")
	if got := w.want(http.StatusOK, "GET", root, ""); strings.TrimSpace(got.body) != "[]" {
		t.Errorf("the list: %s", got.body)
	}
}
