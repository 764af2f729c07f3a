package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/peer"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// simulatedAAI is a simulator of A&AI on a port of its own, as SO sees it.
type simulatedAAI struct {
	*testing.T
	*simulator.Simulator

	url string
}

// newAAI starts a simulator without objects. Publish takes its events; it may be nil.
func newAAI(t *testing.T, publish func([]byte)) *simulatedAAI {
	t.Helper()
	sim, err := simulator.New(simulator.Config{Users: map[string]string{"k8splugin": "p4ss", "so": "so"}, Publish: publish})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if wrong := sim.Violations(); len(wrong) > 0 {
			t.Errorf("requests that A&AI takes only in part: %q", wrong)
		}
	})
	return &simulatedAAI{t, sim, server.URL}
}

// startAAI starts a simulator that has the sandbox's region with a tenant.
func startAAI(t *testing.T) *simulatedAAI {
	t.Helper()
	a := newAAI(t, nil)
	a.put(aaiRegion, `{"cloud-type": "k8s", "cloud-region-version": "1.0"}`)
	a.put(aaiTenant, `{"tenant-name": "edge"}`)
	return a
}

// connection returns the settings of a service that connects to it.
func (a *simulatedAAI) connection() aaiSettings {
	a.Helper()
	file := func(name, content string) string {
		path := filepath.Join(a.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			a.Fatal(err)
		}
		return path
	}
	return aaiSettings{URL: a.url, Version: 30, AppID: "k8splugin", Rate: 1000, Files: peer.Files{User: file("user", "k8splugin"), Password: file("password", "p4ss")}}
}

// settings configures a service that writes to it.
func (a *simulatedAAI) settings(objects string) func(*Config) {
	a.Helper()
	connection := a.connection()
	return func(c *Config) {
		c.AAI = connection
		c.AAI.Write, c.AAI.Objects, c.AAI.Service, c.AAI.Interval, c.AAI.Sweep, c.AAI.Parallel = true, objects, "https://k8splugin.example", time.Second, time.Hour, 2
	}
}

// as sends a request of SO. The answer to a GET is nil if nothing is there.
func (a *simulatedAAI) as(method, path, body string) (int, map[string]any) {
	a.Helper()
	w := a.Do(a.Context(), "MSO", method, path, body)
	var out map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &out) // a write has no body
	if w.Code == http.StatusNotFound {
		return w.Code, nil
	}
	return w.Code, out
}

func (a *simulatedAAI) put(path, body string) {
	a.Helper()
	if status, out := a.as(http.MethodPut, path, body); status != http.StatusCreated {
		a.Fatalf("cannot put %s: %d %v", path, status, out)
	}
}

// delete deletes an object that SO has read before.
func (a *simulatedAAI) delete(path string) {
	a.Helper()
	_, object := a.as(http.MethodGet, path, "")
	if status, out := a.as(http.MethodDelete, fmt.Sprint(path, "?resource-version=", object["resource-version"]), ""); status != http.StatusNoContent {
		a.Errorf("cannot delete %s: %d %v", path, status, out)
	}
}

// list returns an attribute of the objects of a collection, sorted.
func (a *simulatedAAI) list(path, element string, attributes ...string) []string {
	a.Helper()
	_, all := a.as(http.MethodGet, path+"?depth=all", "")
	items, _ := all[element].([]any)
	out := []string{}
	for _, item := range items {
		object, _ := item.(map[string]any)
		var line []string
		for _, name := range attributes {
			line = append(line, fmt.Sprint(object[name]))
		}
		out = append(out, strings.Join(line, " "))
	}
	return slices.Sorted(slices.Values(out))
}
