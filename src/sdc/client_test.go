package sdc_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

const (
	password = "s3cret-password"
	limit    = 1 << 10
	chartURL = "/sdc/v1/catalog/services/Vfw/1.0/resourceInstances/vf0/artifacts/helm_vf.tgz"
)

// start starts a simulator with a service, and a client of it.
func start(t *testing.T, edit ...func(*sdc.Config)) (*simulator.Simulator, *sdc.Client, simulator.Service) {
	t.Helper()
	s, err := simulator.New(simulator.Config{Users: map[string]string{"multicloud": password}, KafkaUser: "k", KafkaPassword: "k"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	service, err := s.Put(simulator.Service{Name: "Vfw", Resources: []simulator.Resource{{
		Instance: "vf 0", Name: "vf", Artifacts: []simulator.Artifact{
			{Name: "helm_vf.tgz", Type: sdc.TypeHelm, Content: []byte("a chart")},
			{Name: "raw.tgz", Type: sdc.TypeHelm, Content: []byte("another chart"), Raw: true},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := sdc.Config{
		URL: server.URL, Consumer: "multicloud-k8s", NewID: simulator.NewUUID, Transport: server.Client().Transport, Limit: limit,
		Credentials: func(context.Context) (string, nf.Secret) { return "multicloud", nf.Secret(password) },
	}
	for _, e := range edit {
		e(&cfg)
	}
	c, err := sdc.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, c, service
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	s, c, service := start(t)
	topics, err := c.KafkaTopics(t.Context())
	want := sdc.KafkaTopics{Brokers: s.Brokers()[0], Notification: "SDC-DISTR-NOTIF-TOPIC-AUTO", Status: "SDC-DISTR-STATUS-TOPIC-AUTO"}
	if diff := cmp.Diff(want, topics); err != nil || diff != "" {
		t.Errorf("the topics: %v (-want +got):\n%s", err, diff)
	}
	if types, err := c.ArtifactTypes(t.Context()); err != nil || !strings.Contains(strings.Join(types, " "), sdc.TypeModules) {
		t.Errorf("the types are %q, %v", types, err)
	}
	all, err := c.Distributed(t.Context())
	if diff := cmp.Diff([]sdc.Summary{{UUID: service.UUID, Name: "Vfw", Version: "1.0"}}, all); err != nil || diff != "" {
		t.Errorf("the services: %v (-want +got):\n%s", err, diff)
	}
	m, err := c.Service(t.Context(), service.UUID)
	if err != nil || len(m.Resources) != 1 || m.Resources[0].Type != sdc.ResourceVF || len(m.Resources[0].Artifacts) != 2 {
		t.Fatalf("the metadata is %+v, %v", m, err)
	}
	if got := download(t, c, m.Resources[0].Artifacts[0]); got != "a chart" {
		t.Errorf("the artifact is %q", got)
	}
	if got := download(t, c, m.Resources[0].Artifacts[1]); got != "another chart" {
		t.Errorf("a checksum of the raw digest is accepted, too: %q", got)
	}
	if r, err := c.Resource(t.Context(), m.Resources[0].UUID); err != nil || len(r.Artifacts) != 2 {
		t.Errorf("the resource is %+v, %v", r, err)
	}
	for _, id := range []string{"", "unknown", "../../x", strings.Repeat("x", 300)} {
		if _, err := c.Service(t.Context(), id); nf.KindOf(err) != nf.NotFound {
			t.Errorf("service %q: %v", id, err)
		}
	}
	if v := s.Violations(); len(v) != 0 {
		t.Errorf("violations: %q", v)
	}
}

// TestNothingDistributed reads the 404 that SDC sends instead of an empty list.
func TestNothingDistributed(t *testing.T) {
	t.Parallel()
	s, c, service := start(t)
	if err := s.Delete(t.Context(), service.UUID); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Distributed(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the services are %v, %v", all, err)
	}
}

func download(t *testing.T, c *sdc.Client, a sdc.Artifact) string {
	t.Helper()
	var out []byte
	err := c.Download(t.Context(), a, func(_ context.Context, r io.Reader) (err error) {
		out, err = io.ReadAll(r)
		return err
	})
	if err != nil {
		t.Errorf("cannot download %s: %v", a.Name, err)
	}
	return string(out)
}

// TestHostile downloads from a peer that is wrong or hostile.
func TestHostile(t *testing.T) {
	t.Parallel()
	const md5 = "ZTc0N2E5ZjYxOTgzYjdjMjcxYzBkOTI1OTZmZTVkZjY=" // of something else
	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		artifact func(*sdc.Artifact)
		client   func(*sdc.Config)
		kind     nf.Kind
		asked    bool // the peer gets a request
	}{
		"Damaged":        {reason: "the checksum differs", fault: simulator.Fault{Damage: true}, kind: nf.Unreachable, asked: true},
		"Other checksum": {reason: "the notification is wrong", artifact: func(a *sdc.Artifact) { a.Checksum = md5 }, kind: nf.Unreachable, asked: true},
		"No checksum":    {reason: "a checksum is required", artifact: func(a *sdc.Artifact) { a.Checksum = "" }, kind: nf.Invalid},
		"No MD5":         {reason: "a checksum is an MD5", artifact: func(a *sdc.Artifact) { a.Checksum = "YWJj" }, kind: nf.Invalid},
		"Gone":           {reason: "the artifact was deleted", artifact: func(a *sdc.Artifact) { a.URL += "x" }, kind: nf.NotFound, asked: true},
		"Too long":       {reason: "the limit holds, whatever the peer sends", fault: simulator.Fault{Longer: 64 << 20}, kind: nf.TooLarge, asked: true},
		"Slow":           {reason: "a download has a time limit", fault: simulator.Fault{Delay: time.Hour}, client: func(c *sdc.Config) { c.Time = 50 * time.Millisecond }, kind: nf.Unreachable, asked: true},
		"Cut":            {reason: "the connection is closed", fault: simulator.Fault{Cut: true}, kind: nf.Unreachable, asked: true},
		"Redirect":       {reason: "a redirect to a metadata address is not followed", fault: simulator.Fault{Redirect: "http://169.254.169.254/latest/meta-data"}, kind: nf.Unreachable, asked: true},
		"Redirect here":  {reason: "not even one to the same host", fault: simulator.Fault{Redirect: chartURL}, kind: nf.Unreachable, asked: true},
		"Failing":        {reason: "SDC fails", fault: simulator.Fault{Status: 500}, kind: nf.Unreachable, asked: true},
		"Other host":     {reason: "a URL is a path", artifact: func(a *sdc.Artifact) { a.URL = "http://169.254.169.254" + chartURL }, kind: nf.Invalid},
		"Other host 2":   {reason: "a URL without a scheme is not a path", artifact: func(a *sdc.Artifact) { a.URL = "//169.254.169.254" + chartURL }, kind: nf.Invalid},
		"Other port":     {reason: "a path cannot extend the host", artifact: func(a *sdc.Artifact) { a.URL = ":80@evil" + chartURL }, kind: nf.Invalid},
		"Climbing":       {reason: "a path cannot leave the catalog", artifact: func(a *sdc.Artifact) { a.URL = "/sdc/v1/catalog/../../admin" }, kind: nf.Invalid},
		"Climbing 2":     {reason: "not even encoded", artifact: func(a *sdc.Artifact) { a.URL = "/sdc/v1/catalog/%2e%2e/x" }, kind: nf.Invalid},
		"Outside":        {reason: "only the catalog has artifacts", artifact: func(a *sdc.Artifact) { a.URL = "/sdc/v1/artifactTypes" }, kind: nf.Invalid},
		"Query":          {reason: "a path has no query", artifact: func(a *sdc.Artifact) { a.URL += "?x=1" }, kind: nf.Invalid},
		"Credentials": {reason: "wrong credentials are told", client: func(c *sdc.Config) {
			c.Credentials = func(context.Context) (string, nf.Secret) { return "multicloud", nf.Secret("wrong-" + password) }
		}, kind: nf.Unreachable, asked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, service := start(t, func(cfg *sdc.Config) {
				if tc.client != nil {
					tc.client(cfg)
				}
			})
			s.Script(tc.fault)
			a := announced(t, service)
			if tc.artifact != nil {
				tc.artifact(&a)
			}
			err := c.Download(t.Context(), a, func(_ context.Context, r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
			if err == nil || nf.KindOf(err) != tc.kind {
				t.Fatalf("%s: got %v of the kind %s, want %s", tc.reason, err, nf.KindOf(err), tc.kind)
			}
			if text := err.Error(); strings.Contains(text, password) || strings.Contains(text, "169.254") || strings.Contains(text, "latest/meta-data") {
				t.Errorf("%s: the error has too much: %s", tc.reason, text)
			}
			if asked := len(s.Journal()) > 0; asked != tc.asked && !tc.asked {
				t.Errorf("%s: a request was sent", tc.reason)
			}
		})
	}
}

// announced returns the artifact helm_vf.tgz as notifications have it.
func announced(t *testing.T, service simulator.Service) sdc.Artifact {
	t.Helper()
	return sdc.Artifact{Name: "helm_vf.tgz", Type: sdc.TypeHelm, UUID: service.Resources[0].Artifacts[0].UUID, URL: chartURL,
		Checksum: "OTMwMTNjZTc1ODU2OWQ1MGU4MzgzNGRjMmE3MDUzYmI="}
}

// TestUnreachable tells how a peer cannot be reached.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	_, c, _ := start(t, func(cfg *sdc.Config) { cfg.URL = "http://127.0.0.1:1" })
	if _, err := c.Distributed(t.Context()); nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) == "" {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := c.Distributed(ended); nf.KindOf(err) != nf.Cancelled {
		t.Errorf("got %v", err)
	}
}

// TestMalformedDocuments reads documents that are not those of SDC.
func TestMalformedDocuments(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"empty": "", "no JSON": "<html>", "other type": `{"uuid": "x"}`, "endless": `["` + strings.Repeat("x", 17<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, bytes.NewReader([]byte(body))) }))
			t.Cleanup(server.Close)
			_, c, _ := start(t, func(cfg *sdc.Config) { cfg.URL = server.URL })
			if _, err := c.Distributed(t.Context()); nf.KindOf(err) != nf.Unreachable && nf.KindOf(err) != nf.TooLarge {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNewClient(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "sdc-be:8080", "ftp://sdc", "http://user:pw@sdc", "http://sdc?x=1"} {
		_, err := sdc.NewClient(sdc.Config{URL: wrong, Consumer: "c", NewID: simulator.NewUUID, Transport: http.DefaultTransport,
			Credentials: func(context.Context) (string, nf.Secret) { return "", nil }})
		if err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
	if _, err := sdc.NewClient(sdc.Config{URL: "http://sdc"}); err == nil {
		t.Error("a client needs credentials")
	}
}
