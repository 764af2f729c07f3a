package northbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

const (
	largePart = 80 << 20 // bytes of a part that no renderer reads
	mostHeld  = 32 << 20 // bytes that a request for such a package may hold
)

// heap measures the memory in use while chunks are read and written.
type heap struct {
	chunks atomic.Int64
	before int64
	peak   atomic.Int64
}

// look measures the memory after every 16th chunk: 4 MiB. What is no longer held
// does not count.
func (h *heap) look() {
	if h.chunks.Add(1)%16 == 0 {
		h.measure()
	}
}

func (h *heap) measure() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.peak.Store(max(h.peak.Load(), int64(m.HeapAlloc)))
}

// begin forgets the earlier peak.
func (h *heap) begin() {
	h.chunks.Store(0)
	h.peak.Store(0)
	h.measure()
	h.before = h.peak.Load()
}

// check fails if more was held since begin than a request may hold, or if fewer
// chunks were used than the large part has.
func (h *heap) check(t *testing.T, what string) {
	t.Helper()
	if held := h.peak.Load() - h.before; held > mostHeld {
		t.Errorf("%s holds %d MiB, and %d is the limit", what, held>>20, mostHeld>>20)
	}
	if least := int64(largePart / (256 << 10)); h.chunks.Load() < least {
		t.Errorf("%s used %d chunks, want at least %d", what, h.chunks.Load(), least)
	}
}

// TestLargeUploads uploads packages with a part that is larger than the memory for
// a request, in every form that a request can have.
func TestLargeUploads(t *testing.T) {
	files := map[string]string{"metadata.yaml": "name: vm\n", "fw/Chart.yaml": "name: fw\n"}
	const form, head, tail = "Content-Type: multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"c.zip\"\r\n\r\n", "\r\n--x--\r\n"
	zipped := func() io.Reader { return rendertest.LargeZip(files, "disk.img", largePart) }
	tarred := func() io.Reader { return rendertest.LargeTarGz(files, "disk.img", largePart) }
	inForm := func() io.Reader { return io.MultiReader(strings.NewReader(head), zipped(), strings.NewReader(tail)) }
	cases := map[string]struct {
		request string
		header  []string
		body    func() io.Reader
		status  int
	}{
		"Raw":          {"POST /v1/packages", []string{"Content-Type: application/zip"}, zipped, http.StatusCreated},
		"RawTar":       {"PUT /v1/packages/p", []string{"Content-Type: application/gzip"}, tarred, http.StatusCreated},
		"RawKeyed":     {"POST /v1/packages", []string{"Content-Type: application/zip", "Idempotency-Key: k"}, zipped, http.StatusCreated},
		"Form":         {"PUT /v1/packages/p", []string{form}, inForm, http.StatusCreated},
		"Chart":        {"POST /v1/packages", []string{"Content-Type: application/json"}, nil, http.StatusCreated},
		"Definition":   {"POST /v1/rb/definition/fw/1/content", nil, tarred, http.StatusOK},
		"ONAPForm":     {"POST /v1/rb/definition/fw/1/content", []string{form}, func() io.Reader { return io.MultiReader(strings.NewReader(head), tarred(), strings.NewReader(tail)) }, http.StatusOK},
		"NotAnArchive": {"POST /v1/packages", []string{"Content-Type: application/zip"}, func() io.Reader { return rendertest.Noise(largePart) }, http.StatusBadRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, kv := &heap{}, memory.New()
			u := newUploads(t, storetest.OnDisk(t, kv, h.look), tarred)
			body := io.Reader(strings.NewReader(`{"chart": {"url": "https://charts.example.org/fw.tgz"}}`))
			if tc.body != nil {
				body = tc.body()
			}
			h.begin()
			w := send(t, u.handler, tc.request, tc.header, body, httptest.NewRecorder())
			h.check(t, tc.request)
			if w.Code != tc.status {
				t.Errorf("it is answered %d %s", w.Code, w.Body)
			}
			if tc.status >= http.StatusBadRequest {
				for e, err := range kv.List(t.Context(), "chunks/", "") {
					t.Fatalf("%s is left: %v", e.Key, err)
				}
			}
		})
	}
}

func send[W http.ResponseWriter](t *testing.T, handler http.Handler, request string, header []string, body io.Reader, w W) W {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, path, body)
	for _, line := range header {
		key, value, _ := strings.Cut(line, ": ")
		r.Header.Add(key, value)
	}
	r.Host = "localhost"
	handler.ServeHTTP(w, r)
	return w
}

// counter is a client that counts what it receives.
type counter struct {
	header http.Header
	status int
	size   int64
}

func (c *counter) Header() http.Header { return c.header }

func (c *counter) WriteHeader(status int) { c.status = status }

func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return len(p), nil
}

// TestLargePackages uses packages with a part that is larger than the memory for a
// request.
func TestLargePackages(t *testing.T) {
	files := map[string]string{"metadata.yaml": "name: vm\n", "cm.yaml": "kind: ConfigMap\n"}
	h := &heap{}
	u := newUploads(t, storetest.OnDisk(t, memory.New(), h.look), nil)
	for path, body := range map[string]io.Reader{
		"/v1/packages/zip": rendertest.LargeZip(files, "disk.img", largePart), "/v1/packages/tar": rendertest.LargeTarGz(files, "disk.img", largePart),
	} {
		if w := send(t, u.handler, "PUT "+path, []string{"Content-Type: application/octet-stream"}, body, httptest.NewRecorder()); w.Code != http.StatusCreated {
			t.Fatalf("it is answered %d %s", w.Code, w.Body)
		}
		h.begin()
		c := send(t, u.handler, "GET "+path+"/content", nil, nil, &counter{header: http.Header{}})
		h.check(t, "a download")
		if c.status != 0 && c.status != http.StatusOK || c.size < largePart {
			t.Errorf("%d bytes are downloaded, with status %d", c.size, c.status)
		}
	}
	for id, most := range map[string]int64{"zip": 100, "tar": 1000} {
		h.begin()
		p, got, done, err := u.packages.Files(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"cm.yaml", "disk.img", "metadata.yaml"}, p.Files); diff != "" || !got.PassedBy("disk.img") || string(got["cm.yaml"]) != files["cm.yaml"] {
			t.Errorf("%s: the files are (-want +got):\n%s", id, diff)
		}
		done()
		if n := h.chunks.Load(); n > most || h.peak.Load()-h.before > mostHeld {
			t.Errorf("%s: reading the manifests takes %d chunks and %d MiB", id, n, (h.peak.Load()-h.before)>>20)
		}
	}
}

// TestLargeComposition composes a package of a chart with a large part beside it.
func TestLargeComposition(t *testing.T) {
	h := &heap{}
	u := newUploads(t, storetest.OnDisk(t, memory.New(), h.look), nil)
	upload := func(path string, files map[string]string) {
		body := rendertest.LargeTarGz(files, "disk.img", largePart)
		if w := send(t, u.handler, "POST "+path, nil, body, httptest.NewRecorder()); w.Code != http.StatusOK {
			t.Fatalf("%s is answered %d %s", path, w.Code, w.Body)
		}
	}
	upload("/v1/rb/definition/fw/1/content", map[string]string{"fw/Chart.yaml": "name: fw\n"})
	upload("/v1/rb/definition/fw/1/profile/p/content", map[string]string{"manifest.yaml": "version: v1\n"})
	h.begin()
	c, err := u.bundles.Compose(t.Context(), bundle.Key{Name: "fw", Version: "1", Profile: "p"})
	if err != nil {
		t.Fatal(err)
	}
	h.check(t, "a composition")
	p, err := u.packages.Package(t.Context(), c.Package)
	if diff := cmp.Diff([]string{"fw/Chart.yaml"}, p.Files); diff != "" || err != nil {
		t.Errorf("the package has (-want +got): %v\n%s", err, diff)
	}
}
