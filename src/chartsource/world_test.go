package chartsource_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	archive  = "the bytes of a chart"
	password = "s3cret"
	token    = "a-registry-token"
)

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// registry is an OCI registry, as far as it takes to download from one.
type registry struct {
	url       string
	auth      string            // "", "basic" or "bearer"
	tags      []string          // in pages of two
	manifests map[string]string // by tag and digest
	blobs     map[string]string // by digest
	redirect  string            // where blobs are; empty: here
	realm     string            // default: here

	challenges []string // of "bearer"; REALM stands for the realm

	mu    sync.Mutex
	asked []string // "GET /v2/…", with " as <who>" where somebody said so
}

const repository = "charts/web"

// manifest is one of a chart whose layer is said to have a size.
func manifest(config, layer, digest string, size int) string {
	text, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": config, "digest": "sha256:" + strings.Repeat("0", 64), "size": 2},
		"layers": []any{
			map[string]any{"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": "sha256:" + strings.Repeat("1", 64), "size": 1},
			map[string]any{"mediaType": layer, "digest": digest, "size": size},
		},
		"annotations": map[string]any{"org.opencontainers.image.version": "1.2.0"},
	})
	return string(text)
}

const (
	config     = "application/vnd.cncf.helm.config.v1+json"
	chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

func newRegistry() *registry {
	chart := manifest(config, chartLayer, digest(archive), len(archive))
	r := &registry{tags: []string{"1.2.0", "1.10.0_build.5", "2.0.0-rc.1", "latest", "0.9.0"}, manifests: map[string]string{}, blobs: map[string]string{digest(archive): archive}}
	r.challenges = []string{`Bearer realm="REALM",service="r",scope="repository:` + repository + `:pull"`}
	for _, reference := range append(r.tags, digest(chart)) {
		r.manifests[reference] = chart
	}
	r.manifests["image"] = manifest("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", digest(archive), len(archive))
	r.manifests["large"] = manifest(config, chartLayer, digest(archive), 1<<40)
	r.manifests["lies"] = manifest(config, chartLayer, digest("something else"), len(archive))
	r.manifests["text"] = "no manifest"
	r.blobs[digest("something else")] = archive
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	user, pass, basic := req.BasicAuth()
	r.note(req, user)
	if req.URL.Path == "/token" {
		if basic && (user != "ann" || pass != password) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		granted := token
		if !basic {
			granted = "for-anybody"
		}
		fmt.Fprintf(w, `{"token": %q}`, granted)
		return
	}
	realm := r.realm
	if realm == "" {
		realm = r.url + "/token"
	}
	switch {
	case r.auth == "basic" && (!basic || user != "ann" || pass != password):
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.auth == "bearer" && req.Header.Get("Authorization") != "Bearer "+token:
		for _, challenge := range r.challenges {
			w.Header().Add("WWW-Authenticate", strings.ReplaceAll(challenge, "REALM", realm))
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	rest, ours := strings.CutPrefix(req.URL.Path, "/v2/"+repository+"/")
	kind, name, _ := strings.Cut(rest, "/")
	if !ours {
		kind = ""
	}
	r.answer(w, req, kind, name)
}

func (r *registry) answer(w http.ResponseWriter, req *http.Request, kind, name string) {
	switch {
	case kind == "tags":
		from := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("from"), &from)
		page := r.tags[from:min(from+2, len(r.tags))]
		if from+2 < len(r.tags) {
			w.Header().Set("Link", fmt.Sprintf(`</v2/%s/tags/list?from=%d>; rel="next"`, repository, from+2))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": repository, "tags": page})
	case kind == "manifests" && r.manifests[name] != "":
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digest(r.manifests[name]))
		_, _ = w.Write([]byte(r.manifests[name]))
	case kind == "blobs" && r.redirect != "":
		http.Redirect(w, req, r.redirect+"?signature=s3cret", http.StatusTemporaryRedirect)
	case kind == "blobs" && r.blobs[name] != "":
		_, _ = w.Write([]byte(r.blobs[name]))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (r *registry) note(req *http.Request, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := req.Method + " " + req.URL.Path
	if user != "" {
		line += " as " + user
	}
	r.asked = append(r.asked, line)
}

// heard returns what the registry was asked for, and clears the list.
func (r *registry) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asked
	r.asked = nil
	return out
}

// serve serves over TLS, and returns the authority that vouches for the server.
func serve(t *testing.T, h http.Handler) (*url.URL, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // of clients that do not trust it
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u, roots
}

func newSource(t *testing.T, cfg chartsource.Config) *chartsource.Source {
	t.Helper()
	s, err := chartsource.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outcome is what came of a fetch.
type outcome struct {
	Archive, Version string
	Source           string // without the host
	Kind             nf.Kind
	Reason, Field    string
	Failed           bool
}

// fetched is a chart with its archive.
type fetched struct {
	chartsource.Chart

	archive string
}

func fetchInto(ctx context.Context, s *chartsource.Source, ref chartsource.ChartRef) (fetched, error) {
	var archive []byte
	chart, err := s.Fetch(ctx, ref, func(_ context.Context, body io.Reader) (err error) {
		archive, err = io.ReadAll(body)
		return err
	})
	return fetched{chart, string(archive)}, err
}

func fetch(t *testing.T, s *chartsource.Source, ref chartsource.ChartRef, host string) outcome {
	t.Helper()
	got, err := fetchInto(t.Context(), s, ref)
	if err != nil {
		if strings.Contains(err.Error(), password) {
			t.Errorf("the error tells a secret: %v", err)
		}
		t.Logf("%s: %v", ref.URL, err)
		out := outcome{Kind: nf.KindOf(err), Reason: nf.ReasonOf(err), Failed: true}
		if v := nf.ViolationsOf(err); v != nil {
			out.Field = v[0].Field
		}
		return out
	}
	if got.Digest != digest(archive) {
		t.Errorf("the digest of what was fetched is said to be %s", got.Digest)
	}
	return outcome{Archive: got.archive, Version: got.Version, Source: strings.ReplaceAll(got.Source, host, "HOST")}
}
