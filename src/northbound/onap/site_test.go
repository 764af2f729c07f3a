package onap_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

func cmpOr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// regions stand in for the catalog's regions: east and west, and those that are
// added when there are ids.
type regions struct{ ids *sync.Map }

func newRegions() regions { return regions{&sync.Map{}} }

func (r regions) Enlist(_ context.Context, in nf.Region) (nf.Region, error) {
	if r.ids != nil {
		r.ids.Store(in.ID, true)
	}
	return in, nil
}

func (r regions) RemoveRegion(_ context.Context, id string) error {
	if r.ids != nil {
		r.ids.Delete(id)
	}
	return nil
}

func (r regions) Region(_ context.Context, id string) (nf.Region, error) {
	switch id {
	case "east", "west":
		return nf.Region{ID: id}, nil
	case "inventory": // imported from A&AI
		return nf.Region{ID: id, Owner: "acme", Origin: nf.OriginAAI, AAI: &nf.AAISource{Owner: "acme"}}, nil
	case "bare":
		return nf.Region{ID: id, Owner: "acme", Origin: nf.OriginAAI, AAI: &nf.AAISource{Owner: "acme", Reason: "password is missing"}}, nil
	}
	if r.ids != nil {
		if _, ok := r.ids.Load(id); ok {
			return nf.Region{ID: id}, nil
		}
	}
	return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
}

// packages stand in for the catalog's packages.
type packages struct {
	mu   sync.Mutex
	kept map[string]nf.Package
}

func (p *packages) Upload(_ context.Context, as nf.Package, content io.Reader) (nf.Package, bool, error) {
	archive, err := io.ReadAll(content)
	p.mu.Lock()
	defer p.mu.Unlock()
	as.Digest = digest(archive)
	p.kept[as.ID] = as
	return as, true, err
}

func (p *packages) Package(_ context.Context, id string) (nf.Package, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok := p.kept[id]; ok {
		return kept, nil
	}
	return nf.Package{}, nf.E(nf.NotFound, "get", "package "+id, nil)
}

func (p *packages) RemovePackage(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, id)
	return nil
}

// rights say what the caller may not do: a permission, or one with a project after it.
type rights map[nf.Permission]bool

func (f rights) May(_ context.Context, p nf.Permission, s nf.Scope, _ ...string) error {
	if f[p] || f[p+nf.Permission(" "+s.Project)] {
		return nf.E(nf.Forbidden, "do", string(p), nil)
	}
	return nil
}

// MayTerminate returns an error if the caller may not terminate an instance.
func (w *world) MayTerminate(ctx context.Context, id string) error {
	return w.rights.May(ctx, nf.RemoveInstance, nf.Scope{}, id)
}

// world is the API over real bundles and stand-ins for everything else.
type world struct {
	*engine

	live    *live
	rights  rights
	kv      store.KV
	shelf   *packages
	bundles *bundle.Bundles
	records *bundle.InstanceRecords
	server  http.Handler
	uploads atomic.Int64
	checks  map[string]northbound.Check
	listing onap.Inventory // nil: A&AI is not written
	now     time.Time
	minting sync.Mutex
	ids     int
}

// newWorld returns a world with the definition fw/1, its profiles default and
// edge, and its template ssh.
func newWorld(t *testing.T, strict bool) *world {
	t.Helper()
	w := newWorldOn(t, strict, memory.New())
	w.furnish(t)
	return w
}

// newWorldOn returns a world on a store, as it is.
func newWorldOn(t *testing.T, strict bool, kv store.KV) *world {
	t.Helper()
	w := &world{now: noon(9), engine: newEngine(), rights: rights{}, checks: map[string]northbound.Check{}, shelf: &packages{kept: map[string]nf.Package{}}}
	w.live = &live{engine: w.engine, may: w.rights.May, gone: map[string]bool{}}
	w.start(t, strict, kv)
	return w
}

// start starts the API on a store, as a process does that comes after another.
func (w *world) start(t *testing.T, strict bool, kv store.KV) {
	t.Helper()
	newID := func() string {
		w.minting.Lock()
		defer w.minting.Unlock()
		w.ids++
		return fmt.Sprintf("id%d", w.ids)
	}
	var err error
	if w.bundles, err = bundle.New(bundle.Config{KV: kv, Packages: w.shelf, NewID: func() string {
		return fmt.Sprint("upload", w.uploads.Add(1))
	}}); err != nil {
		t.Fatal(err)
	}
	w.kv, w.records = kv, w.bundles.InstanceRecords()
	cfg := onap.Config{
		Regions: newRegions(), Surveys: w, Instances: w, Operations: w.engine, Live: w.live,
		NewID: newID, Staging: onap.InStore(kv), Checks: w.checks, Strict: strict, Clock: func() time.Time { return w.now }, Wait: time.Minute,
		Inventory: w.listing,
	}
	permit(w.rights.May).access(&cfg, w.bundles, nil)
	api, err := onap.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	router := mux.NewRouter().SkipClean(true)
	api.Routes(router)
	w.server = router
}

func (w *world) furnish(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := w.bundles.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1"})
	chart := archive(t, map[string]string{"fw/Chart.yaml": "{apiVersion: v2, name: fw, version: 1.0.0}", "fw/values.yaml": "a: 1"})
	if err == nil {
		err = w.bundles.UploadDefinition(ctx, "fw", "1", bytes.NewReader(chart))
	}
	if err == nil {
		_, err = w.bundles.CreateProfile(ctx, bundle.Profile{
			Definition: "fw", Version: "1", Name: "edge", Release: "fw-edge", Namespace: "edge", KubeVersion: "1.31.0",
			Labels: map[string]string{"tier": "gold"}, Extra: []bundle.Type{{Group: "example.org", Version: "v1", Kind: "Gizmo"}},
		})
	}
	if err == nil {
		overlay := archive(t, map[string]string{"manifest.yaml": "{version: v1, type: {values: v.yaml}}", "v.yaml": "b: 2"})
		err = w.bundles.UploadProfile(ctx, bundle.Key{Name: "fw", Version: "1", Profile: "edge"}, bytes.NewReader(overlay))
	}
	if err == nil {
		_, err = w.bundles.CreateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "ssh"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmpOr(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// said is what the API answers.
type said struct {
	status int
	header http.Header
	body   string
}

// ask sends a request, "POST /v1/instance", and returns the answer.
func (w *world) ask(t *testing.T, request, body string) said {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl says when it is not asked
	got := httptest.NewRecorder()
	w.server.ServeHTTP(got, r)
	return said{got.Code, got.Header(), got.Body.String()}
}

// want asks, and compares the status and the body: JSON as JSON, text as text.
func (w *world) want(t *testing.T, reason, request, body string, status int, want string) {
	t.Helper()
	got := w.ask(t, request, body)
	if got.status != status {
		t.Fatalf("%s: %s answers %d: %s", reason, request, got.status, got.body)
	}
	if !strings.HasPrefix(want, "{") && !strings.HasPrefix(want, "[") {
		if want != "" {
			want += "\n"
			if media := got.header.Get("Content-Type"); media != "text/plain; charset=utf-8" {
				t.Errorf("%s: the media type is %q", reason, media)
			}
		}
		if diff := cmp.Diff(want, got.body); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", reason, request, diff)
		}
		return
	}
	if media := got.header.Get("Content-Type"); media != "application/json" || !strings.HasSuffix(got.body, "}\n") && !strings.HasSuffix(got.body, "]\n") {
		t.Errorf("%s: the media type is %q, and the body ends %q", reason, media, got.body[max(0, len(got.body)-2):])
	}
	if diff := cmp.Diff(parsed(t, want), parsed(t, got.body)); diff != "" {
		t.Errorf("%s: %s (-want +got):\n%s", reason, request, diff)
	}
}

func parsed(t *testing.T, document string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(document), &out); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	return out
}

const (
	fwRequest = `{"rb-name": "fw", "rb-version": "1", "profile-name": "edge", "release-name": "", "cloud-region": "east", "labels": {"stack-name": "s"}, "override-values": {"a.b": "x", "image.tag": "1"}}`
	fwShown   = `"request": ` + fwRequest + `, "namespace": "edge", "release-name": "fw-edge",
		"resources": [{"GVK": {"Group": "", "Version": "v1", "Kind": "ConfigMap"}, "Name": "web"}, {"GVK": {"Group": "apps", "Version": "v1", "Kind": "Deployment"}, "Name": "web"}]`
	noInstance = "Get Instance: Error finding master table: mongo: no documents in result"
)

// create makes the instance id1.
func (w *world) create(t *testing.T) {
	t.Helper()
	w.want(t, "an instance is made", "POST /v1/instance", fwRequest, 201, `{"id": "id1", `+fwShown+`}`)
}

// into reads a JSON answer.
func into(t *testing.T, got said, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), out); err != nil {
		t.Fatalf("%v: %d %s", err, got.status, got.body)
	}
}

func (regions) Users(context.Context, nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(func(nf.Subject, error) bool) {}
}
