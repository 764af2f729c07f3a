//go:build tacker

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// shown runs a command that shows one object, and returns its fields.
func (c tackerClient) shown(reason string, args ...string) map[string]any {
	c.t.Helper()
	text := c.run(reason, 0, append(args, "-f", "json")...)
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Fatalf("%s: %v\n%s", reason, err, text)
	}
	return out
}

// column runs a list of packages, and returns one column of it, sorted.
func (c tackerClient) column(reason, column string, args ...string) []string {
	c.t.Helper()
	text := c.run(reason, 0, append([]string{"vnf", "package", "list", "-f", "json"}, args...)...)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		c.t.Fatalf("%s: %v\n%s", reason, err, text)
	}
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		value, found := row[column]
		if !found {
			c.t.Fatalf("%s: the list lacks the column %s:\n%s", reason, column, text)
		}
		out = append(out, fmt.Sprint(value))
	}
	slices.Sort(out)
	return out
}

// csarFile writes a CSAR of artifacts to a file.
func csarFile(t *testing.T, artifacts map[string]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sample.zip")
	if err := os.WriteFile(name, archive(csartest.Files(artifacts)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	sampleConfig = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sample}\ndata: {a: b}\n"
	sampleChart  = "apiVersion: v2\nname: sample\nversion: 0.1.0\n"
)

// TestTackerClientPackages runs the commands for VNF packages of the real client, and
// creates an instance of each package.
func TestTackerClientPackages(t *testing.T) {
	t.Parallel()
	manifests := map[string]string{"Files/kubernetes/sample.yaml": sampleConfig, "Files/readme.txt": "read me"}
	charts := map[string]string{"Files/kubernetes/sample-0.1.0.tgz": string(rendertest.TarGz(map[string]string{
		"sample/Chart.yaml": sampleChart, "sample/templates/sample.yaml": sampleConfig,
	}))}
	source := sourceOf(t, archive(csartest.Files(charts)))
	s := startService(t, func(c *Config) {
		c.ChartSources, c.ChartSourcesPlain = source.host, source.host
	})
	c := tackerClient{t, []string{"--os-auth-type", "none", "--os-endpoint", s.url}}

	one := c.shown("a package of manifests", "vnf", "package", "create", "--user-data", "ticket=4711")
	two := c.shown("a package of a chart", "vnf", "package", "create")
	if one["Onboarding State"] != "CREATED" || one["Operational State"] != "DISABLED" || one["Usage State"] != "NOT_IN_USE" {
		t.Errorf("the package is %v", one)
	}
	p, q := one["ID"].(string), two["ID"].(string)
	wrong := filepath.Join(t.TempDir(), "wrong.zip")
	if err := os.WriteFile(wrong, archive(map[string]string{"TOSCA-Metadata/TOSCA.meta": "nonsense\n"}), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := c.run("a wrong file", 1, "vnf", "package", "upload", "--path", wrong, p); !strings.Contains(text, "TOSCA-Metadata/TOSCA.meta") {
		t.Errorf("the client prints %q", text)
	}
	// The client has a column for the reason, and leaves it empty: it knows no such attribute.
	c.shown("a package without content", "vnf", "package", "show", p)
	if reason := s.want(http.StatusOK, s.do("GET", "/vnfpkgm/v1/vnf_packages/"+p, nil)).text(t, "onboardingFailureDetails.detail"); !strings.Contains(reason, "TOSCA-Metadata/TOSCA.meta") {
		t.Errorf("the upload failed because of %q", reason)
	}
	file := csarFile(t, manifests)
	if text := c.run("by a file", 0, "vnf", "package", "upload", "--path", file, p); !strings.Contains(text, "has been accepted") {
		t.Errorf("the client prints %q", text)
	}
	if text := c.run("a second time", 1, "vnf", "package", "upload", "--path", file, p); !strings.Contains(text, "it has content already") {
		t.Errorf("the client prints %q", text)
	}
	if text := c.run("another host", 1, "vnf", "package", "upload", "--url", "http://203.0.113.1/a.zip", q); !strings.Contains(text, "cannot fetch http://203.0.113.1/a.zip: ") {
		t.Errorf("the client prints %q", text)
	}
	if text := c.run("by a URL", 0, "vnf", "package", "upload", "--url", source.url, "--user-name", "ann", "--password", "s3cret", q); !strings.Contains(text, "has been accepted") {
		t.Errorf("the client prints %q", text)
	}
	shown := c.shown("an onboarded package", "vnf", "package", "show", p)
	if shown["Onboarding State"] != "ONBOARDED" || shown["Operational State"] != "ENABLED" || shown["VNFD ID"] != csartest.VNFD || shown["VNF Provider"] != "Example" {
		t.Errorf("the package is %v", shown)
	}
	c.lists(p, q)
	c.downloads(p, q, file)
	for id, parameters := range map[string]map[string]any{p: nil, q: {"helm_chart_path": "Files/kubernetes/sample-0.1.0.tgz"}} {
		request := map[string]any{"cloud_region_id": "sandbox", "csar_id": id, "namespace": clustertest.Namespace(t)}
		if parameters != nil {
			request["parameters"] = parameters
		}
		made := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", request))
		if got := c.shown("in use", "vnf", "package", "show", id)["Usage State"]; got != "IN_USE" {
			t.Errorf("the package of an instance is %v", got)
		}
		s.operation(made.text(t, "operation_id"))
		s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+made.text(t, "vnf_id"), nil))
	}
	c.changes(p, q)
}

// lists lists packages with every selector. One has user data, the other one has not.
func (c tackerClient) lists(p, q string) {
	c.t.Helper()
	both := []string{p, q}
	slices.Sort(both)
	cases := map[string]struct {
		reason, column string
		args, want     []string
	}{
		"All":            {"all packages", "Id", nil, both},
		"Filter":         {"a filter", "Id", []string{"--filter", "(eq,userDefinedData/ticket,4711)"}, []string{p}},
		"Fields":         {"attributes", "Vnfd Id", []string{"--fields", "vnfdId,checksum"}, []string{csartest.VNFD, csartest.VNFD}},
		"ExcludeFields":  {"other attributes", "Id", []string{"--exclude_fields", "checksum,softwareImages"}, both},
		"ExcludeDefault": {"without large ones", "Id", []string{"--exclude_default"}, both},
		"AllFields":      {"with all", "Id", []string{"--all_fields"}, both},
	}
	for name, tc := range cases {
		c.t.Run("List"+name, func(t *testing.T) {
			on := tackerClient{t, c.auth}
			if got := on.column(tc.reason, tc.column, tc.args...); !slices.Equal(got, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// downloads downloads the parts of a package that was uploaded as a file, and another
// package.
func (c tackerClient) downloads(p, q, file string) {
	c.t.Helper()
	uploaded, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	get := func(reason string, code int, args ...string) []byte {
		c.t.Helper()
		to := filepath.Join(c.t.TempDir(), "got")
		text := c.run(reason, code, append([]string{"vnf", "package"}, append(args, "--file", to)...)...)
		content, err := os.ReadFile(to)
		if (err != nil) != (code != 0) {
			c.t.Errorf("%s: %v\n%s", reason, err, text)
		}
		return content
	}
	if !bytes.Equal(get("the whole", 0, "download", p), uploaded) {
		c.t.Error("the downloaded package differs from the uploaded one")
	}
	for _, media := range []string{"application/zip", "both"} {
		content := get("its descriptor as "+media, 0, "download", "--vnfd", "--type", media, p)
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil || len(z.File) != 4 {
			c.t.Errorf("the descriptor as %s: %v, %v", media, z, err)
		}
	}
	get("several files as text", 1, "download", "--vnfd", "--type", "text/plain", p)
	if got := get("an artifact", 0, "artifact", "download", p, "Files/readme.txt"); string(got) != "read me" {
		c.t.Errorf("the artifact is %q", got)
	}
	if got := get("a chart", 0, "artifact", "download", q, "Files/kubernetes/sample-0.1.0.tgz"); !bytes.HasPrefix(got, []byte{0x1f, 0x8b}) {
		c.t.Errorf("the chart begins with %x", got[:min(len(got), 8)])
	}
	if text := c.run("an artifact that is not in it", 1, "vnf", "package", "artifact", "download", "--file", filepath.Join(c.t.TempDir(), "none"), p, "Files/none"); !strings.Contains(text, "Files/none") {
		c.t.Errorf("the client prints %q", text)
	}
}

// changes updates and deletes packages.
func (c tackerClient) changes(p, q string) {
	c.t.Helper()
	if text := c.run("an enabled package", 1, "vnf", "package", "delete", p); !strings.Contains(text, "DISABLED") {
		c.t.Errorf("the client prints %q", text)
	}
	changed := c.shown("a change", "vnf", "package", "update", "--operational-state", "DISABLED", "--user-data", "a=b", p)
	if changed["Operational State"] != "DISABLED" || !strings.Contains(fmt.Sprint(changed["User Defined Data"]), "b") {
		c.t.Errorf("the change is %v", changed)
	}
	if text := c.run("no change", 1, "vnf", "package", "update", "--operational-state", "DISABLED", p); !strings.Contains(text, "it has these values already") {
		c.t.Errorf("the client prints %q", text)
	}
	c.run("the other one", 0, "vnf", "package", "update", "--operational-state", "DISABLED", q)
	c.run("both", 0, "vnf", "package", "delete", p, q)
	if got := c.column("none is left", "Id"); len(got) != 0 {
		c.t.Errorf("packages %v are left", got)
	}
	if text := c.run("a package that does not exist", 1, "vnf", "package", "show", p); !strings.Contains(text, p) {
		c.t.Errorf("the client prints %q", text)
	}
}

// TestTackerClientSingleFile downloads a descriptor of one file as text.
func TestTackerClientSingleFile(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	c := tackerClient{t, []string{"--os-auth-type", "none", "--os-endpoint", s.url}}
	made := s.want(http.StatusCreated, s.do("POST", "/vnfpkgm/v1/vnf_packages", map[string]any{})).text(t, "id")
	files := csartest.Single(map[string]string{"Files/a.yaml": sampleConfig})
	s.want(http.StatusAccepted, s.do("PUT", "/vnfpkgm/v1/vnf_packages/"+made+"/package_content", archive(files)))
	for _, media := range []string{"text/plain", "both"} {
		to := filepath.Join(t.TempDir(), "got")
		c.run("one file as "+media, 0, "vnf", "package", "download", "--vnfd", "--type", media, "--file", to, made)
		if got, err := os.ReadFile(to); err != nil || string(got) != files["Definitions/top.yaml"] {
			t.Errorf("the descriptor as %s: %v: %q", media, err, got)
		}
	}
}
