package aai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

const (
	regionPath = "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1"
	tenantPath = regionPath + "/tenants/tenant/t1"
	vnfPath    = "/network/generic-vnfs/generic-vnf/V1"
	modulePath = vnfPath + "/vf-modules/vf-module/M1"
	bulkPath   = "/bulk/single-transaction"
)

// inventory is a simulated A&AI with a writer.
type inventory struct {
	*testing.T

	simulator *simulator.Simulator
	server    *httptest.Server
	writer    *aai.Writer
}

// newInventory returns an A&AI with a region and a tenant, and with what SO creates.
func newInventory(t *testing.T, batch int) *inventory {
	t.Helper()
	s, err := simulator.New(simulator.Config{Users: map[string]string{"u": "p"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	v := &inventory{T: t, simulator: s, server: server}
	v.writer = aai.NewWriter(v.client(func(*aai.ClientConfig) {}), "k8splugin", batch)
	v.as("PUT", regionPath, `{}`)
	v.as("PUT", tenantPath, `{"tenant-name":"default"}`)
	v.as("PUT", vnfPath, `{"vnf-type":"x"}`)
	v.as("PUT", modulePath, `{}`)
	s.Journal()
	t.Cleanup(func() {
		if got := s.Violations(); got != nil {
			t.Errorf("A&AI would ignore a part of the requests: %q", got)
		}
	})
	return v
}

// client returns a client of the simulator.
func (v *inventory) client(edit func(*aai.ClientConfig)) *aai.Client {
	v.Helper()
	var ids atomic.Int64
	cfg := aai.ClientConfig{
		URL: v.server.URL, AppID: "k8splugin", Transport: v.server.Client().Transport, NewID: func() string { return fmt.Sprint(ids.Add(1)) },
		Credentials: func(context.Context) (string, nf.Secret) { return "u", nf.Secret("p") },
	}
	edit(&cfg)
	c, err := aai.NewClient(cfg)
	if err != nil {
		v.Fatal(err)
	}
	return c
}

// as sends a request of another client, and returns the response.
func (v *inventory) as(method, path, body string) *httptest.ResponseRecorder {
	return v.simulator.Do(v.Context(), "MSO", method, path, body)
}

// read returns an object with its children, or nil.
func (v *inventory) read(path string) map[string]any {
	v.Helper()
	w := v.as("GET", path+"?depth=all", "")
	var out map[string]any
	if w.Code != http.StatusOK {
		return nil
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		v.Fatal(err)
	}
	return out
}

// delete deletes an object as another client.
func (v *inventory) delete(path string) {
	v.Helper()
	if w := v.as("DELETE", fmt.Sprintf("%s?resource-version=%v", path, v.read(path)["resource-version"]), ""); w.Code != http.StatusNoContent {
		v.Fatalf("cannot delete %s: %d %s", path, w.Code, w.Body)
	}
}

// write writes documents, and requires that A&AI is then equal to them.
func (v *inventory) write(wanted []aai.Document, last aai.Written, verify bool) aai.Report {
	v.Helper()
	r, err := v.writer.Write(v.Context(), wanted, last, verify)
	if err != nil || !r.Done() {
		v.Fatalf("cannot write: %+v, %v", r, err)
	}
	return r
}

// requests returns the requests of the writer since the last call, as "METHOD changes
// status".
func (v *inventory) requests() (out []string) {
	for _, e := range v.simulator.Journal() {
		if e.AppID == "k8splugin" {
			out = append(out, fmt.Sprintf("%s %d %d", e.Method, e.Changes, e.Status))
		}
	}
	return out
}

// all returns all documents of an instance.
func all(in aai.Instance) []aai.Document {
	return slices.Concat(scheme.Resources(in), scheme.Servers(in))
}
