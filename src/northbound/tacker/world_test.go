package tacker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// world is the API on a catalog of regions whose clusters are a function.
type world struct {
	*catalog.Catalog

	t      *testing.T
	url    string
	client *http.Client
	probed []nf.Access
	logins []nf.OpenStack
	before func()         // called once before the next region is stored
	state  nf.RegionState // of every region
}

var errRefused = errors.New("it refuses")

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, state: nf.RegionState{Condition: nf.RegionAvailable}, before: func() {}}
	var err error
	w.Catalog, err = catalog.New(catalog.Config{
		KV: memory.New(), Renderers: map[string]render.Renderer{"manifest": manifest.New(render.NewGate(render.GateConfig{}))}, Limits: render.DefaultLimits(),
		NewID: func() string { return "id" }, Clock: func() time.Time { return time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC) },
		Probe: w.probe, Login: w.login,
		Parse: func(kubeconfig nf.Secret) (nf.Access, error) {
			return nf.Access{Server: "https://10.0.0.1:6443", Token: nf.Secret("s3cret-file"), Kubeconfig: kubeconfig}, nil
		},
		Check: func(a nf.Access) error {
			if strings.Contains(a.Server, "169.254") {
				return nf.E(nf.Invalid, "use", "access", nf.Violations{{Field: "access.server", Message: "is not allowed"}})
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	api, err := tacker.New(tacker.Config{Regions: w, Reader: w, Conditions: w})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, APIs: []northbound.API{api}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(tacker.Formats(handler))
	t.Cleanup(server.Close)
	w.url, w.client = server.URL, northboundtest.Client(t, k8splugin.Swagger)
	return w
}

// probe is the clusters: one is down, and one refuses a token.
func (w *world) probe(_ context.Context, a nf.Access) (nf.Probe, error) {
	w.probed = append(w.probed, a)
	reason := ""
	switch {
	case strings.Contains(a.Server, "down"):
		reason = nf.ReasonTCP
	case string(a.Token) == "s3cret-wrong":
		reason = nf.ReasonUnauthorized
	default:
		before := w.before
		w.before = func() {}
		before()
		return nf.Probe{Server: a.Server, Version: "v1.37.1"}, nil
	}
	return nf.Probe{}, &nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "API server " + a.Server, Reason: reason, Err: errRefused}
}

// login is the clouds: one is down, and all refuse a password.
func (w *world) login(_ context.Context, o nf.OpenStack) error {
	w.logins = append(w.logins, o)
	switch {
	case strings.Contains(o.AuthURL, "down"):
		return &nf.Error{Kind: nf.Unreachable, Op: "log in at", Subject: "cloud down", Reason: nf.ReasonTCP, Err: errRefused}
	case string(o.Password) == "s3cret-wrong":
		return &nf.Error{Kind: nf.Unreachable, Op: "log in at", Subject: "cloud", Reason: nf.ReasonUnauthorized, Err: errRefused}
	}
	return nil
}

// RegionState implements tacker.Conditions.
func (w *world) RegionState(nf.Region) nf.RegionState { return w.state }

// ask sends a request, and fails if the answer has a secret.
func (w *world) ask(method, path, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if text := string(content); strings.Contains(text, "s3cret") || strings.Contains(text, "BEGIN") {
		w.t.Errorf("%s %s: the answer has a secret: %s", method, path, text)
	}
	return res.StatusCode, strings.TrimSpace(string(content))
}

// vim sends a request that must succeed, and returns the VIM of its answer.
func (w *world) vim(reason, method, path, body string) map[string]any {
	w.t.Helper()
	status, text := w.ask(method, path, body)
	var out struct {
		VIM map[string]any `json:"vim"`
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil || status > 299 || out.VIM == nil {
		w.t.Fatalf("%s: %s %s: status %d, %s", reason, method, path, status, text)
	}
	return out.VIM
}

// fails sends a request that must be refused, and compares the whole answer.
func (w *world) fails(reason, method, path, body string, status int, kind, message string) {
	w.t.Helper()
	want, err := json.Marshal(map[string]any{"TackerError": map[string]string{"type": kind, "message": message, "detail": ""}})
	if err != nil {
		w.t.Fatal(err)
	}
	got, text := w.ask(method, path, body)
	var compact any
	if err := json.Unmarshal([]byte(text), &compact); err != nil {
		w.t.Fatalf("%s: %s", reason, text)
	}
	sorted, _ := json.Marshal(compact)
	if got != status || string(sorted) != string(want) {
		w.t.Errorf("%s: %s %s\n got %d %s\nwant %d %s", reason, method, path, got, sorted, status, want)
	}
}

// region returns the region that is stored under an id.
func (w *world) region(id string) nf.Region {
	w.t.Helper()
	r, err := w.Region(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// pair returns a new certificate and its key, as PEM.
func pair(t testing.TB) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "k8s"}, NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}
