package main

import (
	"fmt"
	"net/http"
	"testing"
)

// TestClientArtifactBroker is what the artifact broker, which listens to SDC,
// makes of a distributed service: a definition for each module of a VNF, and its
// chart. It sends a form whatever it sends, has a slip in a field's name, and does
// no more than look at the status.
func TestClientArtifactBroker(t *testing.T) {
	t.Parallel()
	c := newCaller(t, "User-Agent", "Go-http-client/1.1", "Content-Type", "application/x-www-form-urlencoded")
	modules := map[string]string{"firewall": "firewall", "vault": "vault-consul-dev", "edgex": "edgex"} // folders, and the charts in them
	definition := func(module, described string) string {
		return fmt.Sprintf(`{"rb-name": "%[1]s-invariant", "rb-version": "%[1]s-customization", "descritpion": %[2]q, "labels": {"vf_module_model_uuid": "%[1]s-uuid", "vf_module_model_name": "Vf%[1]s..base..module-0"}}`, module, described) //nolint:misspell // the broker writes it so
	}
	for module, chart := range modules {
		at := "/v1/rb/definition/" + module + "-invariant/" + module + "-customization"
		made := c.ask("a module is distributed", http.StatusCreated, "POST /v1/rb/definition", definition(module, "first"))
		c.has("the slip in the name is nobody's", made, "description", "")
		c.has("its labels are kept", made, "labels", any(map[string]any{"vf_module_model_uuid": module + "-uuid", "vf_module_model_name": "Vf" + module + "..base..module-0"}))
		c.ask("with its chart", http.StatusOK, "POST "+at+"/content", c.bundle(module+"/bundle"))
		c.has("whose name was not told", c.ask("it is there", http.StatusOK, "GET "+at, nil), "chart-name", any(chart))
	}
	// It comes again, and must stay as it was: the broker then sends no chart.
	for module, chart := range modules {
		again := c.ask("A2: a module is distributed again", http.StatusInternalServerError, "POST /v1/rb/definition", definition(module, "second"))
		if string(again.body) != "Definition already exists\n" {
			t.Errorf("A2: it says %q", again.body)
		}
		at := "/v1/rb/definition/" + module + "-invariant/" + module + "-customization"
		c.has("it is as it was", c.ask("it is there", http.StatusOK, "GET "+at, nil), "chart-name", any(chart))
	}
	// What SDC has of a module may be wrong, and the broker continues with the next.
	const broken = "/v1/rb/definition/broken-invariant/broken-customization"
	c.ask("a module is distributed", http.StatusCreated, "POST /v1/rb/definition", definition("broken", "first"))
	c.told("A4: without its artifact", http.StatusBadRequest, "POST "+broken+"/content", nil, "Empty body\n")
	c.told("A4: with another artifact", http.StatusInternalServerError, "POST "+broken+"/content", "heat_template_version: 2013-05-23", "Error in file format: Invalid gzip format")
	c.ask("and with the right one after all", http.StatusOK, "POST "+broken+"/content", c.bundle("vault/bundle"))
	if n := len(c.list("all modules", c.ask("all modules", http.StatusOK, "GET /v1/rb/definition", nil))); n != len(modules)+1 {
		t.Errorf("there are %d definitions", n)
	}
}
