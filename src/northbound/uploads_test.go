package northbound_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/heaptest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

const besides = 48 << 20 // bytes that the test and the service need otherwise

// TestUploadRoutesHoldLittle has clients send almost all of a large archive to a
// route and then stall. They hold little memory, and another client does not wait
// for them.
func TestUploadRoutesHoldLittle(t *testing.T) {
	const clients = 8
	chart := largeChart(t)
	zip, form := "Content-Type: application/zip", "Content-Type: multipart/form-data; boundary=x"
	const file = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"c.tgz\"\r\n\r\n"
	cases := map[string]struct {
		reason     string
		request    string // %d is the client's number
		header     []string
		head, tail string // around the archive
	}{
		"Create":      {"a body as it is", "POST /v1/packages", []string{zip}, "", ""},
		"CreateKeyed": {"a request with a key is known by its content", "POST /v1/packages", []string{zip, "Idempotency-Key: k%d"}, "", ""},
		"CreateForm":  {"a part of a form", "POST /v1/packages", []string{form}, file, "\r\n--x--\r\n"},
		"CreateKeyedForm": {
			"both", "POST /v1/packages", []string{form, "Idempotency-Key: k%d"}, file, "\r\n--x--\r\n",
		},
		"CreateChart": {"a chart is fetched", "POST /v1/packages", []string{"Content-Type: application/json"}, "", ""},
		"Put":         {"a body as it is", "PUT /v1/packages/p%d", []string{zip}, "", ""},
		"PutForm":     {"a part of a form", "PUT /v1/packages/p%d", []string{form}, file, "\r\n--x--\r\n"},
		"Definition":  {"a body as it is", "POST /v1/rb/definition/fw/1/content", nil, "", ""},
		"DefinitionForm": {
			"a part of a form", "POST /v1/rb/definition/fw/1/content", []string{form}, file, "\r\n--x--\r\n",
		},
		"Profile":  {"a body as it is", "POST /v1/rb/definition/fw/1/profile/p/content", nil, "", ""},
		"Template": {"a body as it is", "POST /v1/rb/definition/fw/1/config-template/t/content", nil, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan struct{})
				source := &stalled{content: chart, gone: gone}
				handler := newUploads(t, storetest.OnDisk(t, memory.New(), func() {}), func() io.Reader { return source.again() }).handler
				send := func(i int, archive io.Reader) *httptest.ResponseRecorder {
					method, path, _ := strings.Cut(tc.request, " ")
					body := io.MultiReader(strings.NewReader(tc.head), archive, strings.NewReader(tc.tail))
					if name == "CreateChart" {
						body = strings.NewReader(`{"chart": {"url": "https://charts.example.org/fw.tgz"}}`)
					}
					r := httptest.NewRequestWithContext(t.Context(), method, strings.ReplaceAll(path, "%d", fmt.Sprint(i)), body)
					for _, line := range tc.header {
						key, value, _ := strings.Cut(line, ": ")
						r.Header.Add(key, strings.ReplaceAll(value, "%d", fmt.Sprint(i)))
					}
					r.Host = "localhost"
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					return w
				}
				before := heaptest.InUse()
				answers := make(chan *httptest.ResponseRecorder, clients)
				for i := range clients {
					go func() { answers <- send(i, source.again()) }()
				}
				synctest.Wait()
				if now := heaptest.InUse() - before; now > besides {
					t.Errorf("%s: %d clients hold %d MiB, and %d is the limit", tc.reason, clients, now>>20, besides>>20)
				}
				if len(answers) > 0 {
					t.Fatalf("%s: %s", tc.reason, (<-answers).Body)
				}
				source.whole.Store(true)
				if w := send(clients, source.again()); w.Code != http.StatusCreated && w.Code != http.StatusOK {
					t.Errorf("%s: the next client is told %d %s", tc.reason, w.Code, w.Body)
				}
				close(gone)
				for range clients {
					if w := <-answers; w.Code == http.StatusCreated || w.Code == http.StatusOK {
						t.Errorf("%s: a part of an archive is accepted: %d %s", tc.reason, w.Code, w.Body)
					}
				}
			})
		})
	}
}

// stalled is an archive that a client sends almost all of, until it is gone.
type stalled struct {
	content []byte
	gone    chan struct{}
	whole   atomic.Bool // from now on it is sent to its end
}

func (s *stalled) again() io.Reader {
	if s.whole.Load() {
		return bytes.NewReader(s.content)
	}
	return io.MultiReader(bytes.NewReader(s.content[:len(s.content)-100]), stop(s.gone))
}

// stop is a body that breaks off when the channel is closed.
type stop chan struct{}

func (s stop) Read([]byte) (int, error) {
	<-s
	return 0, errors.New("the client is gone")
}

// largeChart returns an archive of 16 MiB, which is a chart and a profile, too.
// Nothing in it is compressed.
func largeChart(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zipped)
	files := []struct {
		name    string
		content []byte
	}{{"manifest.yaml", []byte("version: v1\n")}, {"fw/Chart.yaml", []byte("name: fw\n")}}
	for i := range 4 {
		files = append(files, struct {
			name    string
			content []byte
		}{fmt.Sprint("fw/file", i), make([]byte, 4<<20)})
	}
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// anything accepts every package.
type anything struct{}

func (anything) Fit(render.Files) render.Fit { return render.DefaultFit }

func (anything) Check(context.Context, render.Files) (render.Summary, error) {
	return render.Summary{}, nil
}

func (anything) Render(context.Context, render.Input) (render.Output, error) {
	return render.Output{}, errors.New("nobody renders it")
}

// open allows every upload.
type open struct{ *catalog.Catalog }

func (open) MayUpload(context.Context, nf.Package) error { return nil }

// openBundles allows every access to bundles.
type openBundles struct {
	onap.Bundles
	bundles *bundle.Bundles
}

func (b openBundles) Read(context.Context, ...string) (onap.BundleReader, error) {
	return b.bundles, nil
}
func (b openBundles) Write(context.Context, ...string) (onap.BundleWriter, error) {
	return b.bundles, nil
}

// charts fetches the same chart each time.
type charts struct{ next func() io.Reader }

func (c charts) Fetch(ctx context.Context, _ string, _ native.ChartRef, into func(context.Context, io.Reader) error) (string, error) {
	return "", into(ctx, c.next())
}

// What is not asked for anything, under names that no method has.
type (
	ownRegions         = native.Regions
	ownUsage           = native.Usage
	ownInstances       = native.Instances
	ownInspector       = native.Inspector
	ownHistory         = native.History
	ownOperations      = native.Operations
	ownRepairs         = native.Repairs
	theirRegions       = onap.Regions
	theirConnections   = onap.Connections
	theirAliases       = onap.Aliases
	theirRecords       = onap.Records
	theirInstances     = onap.Instances
	theirOperations    = onap.Operations
	theirLive          = onap.Live
	theirSubscriptions = onap.Subscriptions
)

// uploads are the APIs that take archives, over a store that has something to
// upload to.
type uploads struct {
	handler  http.Handler
	packages *catalog.Catalog
	bundles  *bundle.Bundles
}

// newUploads returns uploads of archives of at most 1 GiB.
func newUploads(t *testing.T, kv store.KV, chart func() io.Reader) uploads {
	t.Helper()
	var ids atomic.Int64
	newID := func() string { return fmt.Sprint("new", ids.Add(1)) }
	limits := render.DefaultLimits().For(1 << 30)
	packages, err := catalog.New(catalog.Config{
		KV: kv, Limits: limits, Renderers: map[string]render.Renderer{"manifest": anything{}, "helm": anything{}}, NewID: newID,
		Probe: func(context.Context, nf.Access) (nf.Probe, error) { return nf.Probe{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	staging := func(ctx context.Context, content io.Reader) (northbound.Staged, error) {
		staged, err := store.NewBlobs(kv).Stage(ctx, content, limits.Archive)
		if err != nil {
			return nil, err
		}
		return staged, nil
	}
	bundles, err := bundle.New(bundle.Config{KV: kv, Packages: packages, Limits: limits, NewID: newID})
	if err != nil {
		t.Fatal(err)
	}
	_, err = bundles.CreateDefinition(t.Context(), bundle.Definition{Name: "fw", Version: "1"})
	if err == nil {
		_, err = bundles.CreateProfile(t.Context(), bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
	}
	if err == nil {
		_, err = bundles.CreateTemplate(t.Context(), bundle.Template{Definition: "fw", Version: "1", Name: "t"})
	}
	if err != nil {
		t.Fatal(err)
	}
	own, err := native.New(native.Config{
		Packages: open{packages}, Staging: staging, Charts: charts{chart},
		Regions: struct{ ownRegions }{}, Usage: struct{ ownUsage }{}, Instances: struct{ ownInstances }{},
		Inspector: struct{ ownInspector }{}, History: struct{ ownHistory }{}, Operations: struct{ ownOperations }{},
		Repairs: struct{ ownRepairs }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	multicloud, err := onap.New(onap.Config{
		Bundles: openBundles{bundles: bundles}, Connections: struct{ theirConnections }{}, Aliases: struct{ theirAliases }{}, Records: struct{ theirRecords }{}, Staging: staging, NewID: newID,
		Regions: struct{ theirRegions }{}, Instances: struct{ theirInstances }{}, Operations: struct{ theirOperations }{},
		Live: struct{ theirLive }{}, Subscriptions: struct{ theirSubscriptions }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, APIs: []northbound.API{own, multicloud}, UploadLimit: limits.Archive})
	if err != nil {
		t.Fatal(err)
	}
	return uploads{handler, packages, bundles}
}
