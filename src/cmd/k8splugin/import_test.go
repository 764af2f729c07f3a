package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// bring runs the command, and returns its exit code and its report.
func (p *plugin) bring(args ...string) (code int, report migration.Report, text string) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := importCommand(testProcess(&stdout, &stderr))
	cmd.SetArgs(append([]string{"onap", "--mongo", p.mongo, "--etcd", "http://" + p.etcd.Endpoints()[0], "-o", "json"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(p.t.Context())
	cli.Report(&stderr, err)
	code = cli.ExitCode(err)
	text = stdout.String() + stderr.String()
	if stdout.Len() == 0 {
		return code, report, text
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		p.t.Fatalf("%v: %s", err, text)
	}
	return code, report, text
}

// counts returns "kind result" → number.
func counts(r migration.Report) map[string]int {
	out := map[string]int{}
	for kind, results := range r.Counts {
		for result, n := range results {
			out[kind+" "+string(result)] = n
		}
	}
	return out
}

// TestImportONAP takes a running instance over, and through the rest of its
// life, by ONAP's own API.
func TestImportONAP(t *testing.T) {
	p := newPlugin(t)
	const id = "sad_einstein"
	p.define()
	p.record(id, "r1", recorded("", "Secret", "r1-gone"))
	p.configure(id)
	p.make(id, fmt.Sprintf(firewallDeployment, "r1", "2", goodImage), fmt.Sprintf(firewallMap, "r1", id),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: r1-ssh}\ndata: {key: second}\n")
	before := p.pods(id, 2)
	data := filepath.Join(t.TempDir(), "data")

	code, report, text := p.bring("--data", data, "--dry-run")
	want := map[string]int{
		"definition would be imported": 1, "profile would be imported": 2, "template would be imported": 1, "region would be imported": 1,
		"instance would be imported": 1, "configuration would be imported": 1,
	}
	if diff := cmp.Diff(want, counts(report)); code != 0 || diff != "" {
		t.Fatalf("dry run: code %d, %s (-want +got):\n%s", code, text, diff)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the dry run has left something: %v", err)
	}

	code, report, text = p.bring("--data", data)
	want = map[string]int{
		"definition imported": 1, "profile imported": 2, "template imported": 1, "region imported": 1, "instance imported": 1, "configuration imported": 1,
	}
	if diff := cmp.Diff(want, counts(report)); code != 0 || diff != "" {
		t.Fatalf("import: code %d, %s (-want +got):\n%s", code, text, diff)
	}
	if !strings.Contains(text, "Secret r1-gone is in ONAP's record but not in the chart") {
		t.Errorf("what is recorded and not in the chart is not told: %s", text)
	}
	if strings.Contains(text, "client-key-data") || strings.Contains(text, "certificate-authority-data") {
		t.Errorf("a kubeconfig is told: %s", text)
	}

	code, report, text = p.bring("--data", data)
	want = map[string]int{
		"definition there already": 1, "profile there already": 2, "template there already": 1, "region there already": 1,
		"instance there already": 1, "configuration there already": 1,
	}
	if diff := cmp.Diff(want, counts(report)); code != 0 || diff != "" {
		t.Fatalf("second import: code %d, %s (-want +got):\n%s", code, text, diff)
	}

	s := serveProgram(t, data)
	s.client = &http.Client{}
	p.live(s, id, before)
}

// TestImportONAPProblems has records that cannot be imported, and does not
// let them stand in the way of the others.
func TestImportONAPProblems(t *testing.T) {
	p := newPlugin(t)
	p.define()
	const secret = "do-not-show-me"
	p.record("ghost_fox", "r2")
	p.put("rbdef", document("rbname", "fw", "rbversion", "1", "profilename", "bare"), "profilemetadata", document("releasename", "bare", "namespace", p.ns))
	p.put("rbdef", document("id", "bare_fox"), "instance", document("id", "bare_fox", "status", "DONE",
		"request", document("rbname", "fw", "rbversion", "1", "profilename", "bare", "cloudregion", "sandbox", "overridevalues", document("k", secret))))
	p.configure("bare_fox")
	p.put("rbdef", document("id", "early_fox"), "instance", document("id", "early_fox", "status", "PRE-INSTALL"))
	p.put("connection", document("cloudregion", "west"), "metadata", document("cloudregion", "west", "cloudowner", "me",
		"kubeconfig", base64.StdEncoding.EncodeToString([]byte("users: [{name: u, user: {exec: {command: "+secret+"}}}]"))))
	// The objects of its configuration do not have its label.
	p.record("plain_fox", "r3")
	p.make("plain_fox", fmt.Sprintf(firewallDeployment, "r3", "2", goodImage), fmt.Sprintf(firewallMap, "r3", "plain_fox"))
	clustertest.Foreign(t, p.ns, "r3-ssh")
	p.configure("plain_fox")
	data := filepath.Join(t.TempDir(), "data")

	code, report, text := p.bring("--data", data)
	want := map[string]string{
		"instance plain_fox": "imported", "configuration plain_fox keys": "imported",
		"definition fw 1": "imported", "profile fw 1 default": "imported", "profile fw 1 edge": "imported", "profile fw 1 bare": "imported",
		"template fw 1 ssh": "imported", "region sandbox": "imported", "region west": "failed", "instance bare_fox": "left out",
		"instance early_fox": "left out", "instance ghost_fox": "left out",
	}
	if diff := cmp.Diff(want, results(report)); code != 1 || diff != "" {
		t.Errorf("code %d, want 1; %s (-want +got):\n%s", code, text, diff)
	}
	if strings.Contains(text, secret) {
		t.Errorf("a value is told: %s", text)
	}

	for _, warning := range []string{"its configurations cannot be layered over it", "its objects are not", "it does not belong to an instance"} {
		if !strings.Contains(text, warning) {
			t.Errorf("it is not told that %s: %s", warning, text)
		}
	}

	p.put("rbdef", document("rbname", "fw", "rbversion", "1"), "defmetadata", document("chartname", "fw", "description", "another"))
	p.put("rbdef", document("rbname", "fw", "rbversion", "1", "profilename", "edge"), "profilecontent", packed(map[string]string{"manifest.yaml": "version: v2\n"}))
	code, report, text = p.bring("--data", data)
	for name, result := range want {
		if result == "imported" {
			want[name] = "there already"
		}
	}
	want["definition fw 1"], want["profile fw 1 edge"] = "different", "different"
	if diff := cmp.Diff(want, results(report)); code != 1 || diff != "" {
		t.Errorf("code %d, want 1; %s (-want +got):\n%s", code, text, diff)
	}

	s := serveProgram(t, data)
	if code, _, text = p.bring("--data", data); code != 4 || !strings.Contains(text, "stop the service first") {
		t.Errorf("beside a running service: code %d, want 4: %s", code, text)
	}
	s.client = &http.Client{}
	if got := s.want(http.StatusOK, s.do("GET", "/v1/rb/definition/fw/1", nil)).field(t, "description"); got != "a firewall" {
		t.Errorf("what was there has been overwritten: %v", got)
	}
	if v := s.want(http.StatusOK, s.do("GET", "/v1/instance/plain_fox/config/keys", nil)); v.field(t, "values.key") != "second" {
		t.Errorf("the configuration is %s", v.body)
	}
}

// results returns "kind name" → result.
func results(r migration.Report) map[string]string {
	out := map[string]string{}
	for _, it := range r.Items {
		out[it.Kind+" "+it.Name] = string(it.Result)
	}
	return out
}

func TestImportONAPUsage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		text   string
		env    map[string]string
	}{
		"NoMongo": {"there must be something to read", nil, "--mongo is required", nil},
		"Output":  {"there are two forms", []string{"--mongo", "mongodb://h", "-o", "xml"}, "table or json", nil},
		"Etcd":    {"a password is not repeated", []string{"--mongo", "mongodb://h", "--etcd", "u:pass%word@h"}, "percent-encoded", nil},
		"Environment": {"the environment keeps passwords off the command line", nil, "percent-encoded", map[string]string{
			"K8SPLUGIN_MONGO": "mongodb://h", "K8SPLUGIN_ETCD": "u:pass%word@h",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testProcess(io.Discard, io.Discard)
			p.getenv = func(name string) string { return tc.env[name] }
			cmd := importCommand(p)
			cmd.SetArgs(append([]string{"onap"}, tc.args...))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			err := cmd.ExecuteContext(t.Context())
			if cli.ExitCode(err) != 2 || !strings.Contains(fmt.Sprint(err), tc.text) || strings.Contains(fmt.Sprint(err), "pass%word") {
				t.Errorf("%s: code %d, %v, want 2 and %q", tc.reason, cli.ExitCode(err), err, tc.text)
			}
		})
	}
}

func TestEtcdOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, text, want string }{
		"Bare":    {"a host has a port", "etcd", "http://etcd:2379"},
		"Scheme":  {"documentation shows URLs", "http://a:1,http://b:2", "http://a:1 http://b:2"},
		"Secure":  {"https needs no option", "https://a:1", "https://a:1"},
		"Options": {"nor is one refused", "etcd://a:1?tls=true", "https://a:1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := etcdOf(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(got.Endpoints, " "); text != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, text, tc.want)
			}
		})
	}
}

// live takes an instance through the rest of its life.
func (p *plugin) live(s *program, id string, before []string) {
	t, path := p.t, "/v1/instance/"+id
	t.Helper()
	if diff := cmp.Diff(before, p.pods(id, 2)); diff != "" {
		t.Errorf("pods were restarted (-before +after):\n%s", diff)
	}
	got := s.want(http.StatusOK, s.do("GET", path, nil))
	want := map[string]any{
		"id": id, "namespace": p.ns, "release-name": "r1",
		"request": map[string]any{
			"rb-name": "fw", "rb-version": "1", "profile-name": "edge", "release-name": "r1", "cloud-region": "sandbox",
			"labels": map[string]any{"testCaseName": "import"}, "override-values": map[string]any{"replicas": "2", "dbPassword": nf.Masked},
		},
		"resources": []any{
			map[string]any{"GVK": map[string]any{"Group": "", "Version": "v1", "Kind": "ConfigMap"}, "Name": "r1-fw"},
			map[string]any{"GVK": map[string]any{"Group": "apps", "Version": "v1", "Kind": "Deployment"}, "Name": "r1-fw"},
			map[string]any{"GVK": map[string]any{"Group": "", "Version": "v1", "Kind": "ConfigMap"}, "Name": "r1-ssh"},
		},
	}
	var shown map[string]any
	if err := json.Unmarshal(got.body, &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the instance (-want +got):\n%s", diff)
	}
	if ready := s.want(http.StatusOK, s.do("GET", path+"/status", nil)).field(t, "ready"); ready != true {
		t.Errorf("ready is %v", ready)
	}
	if pre := s.want(http.StatusOK, s.do("GET", path+"?full=true", nil)).field(t, "PreInstallTimeout"); pre != 60.0 {
		t.Errorf("the timeout is %v", pre)
	}
	p.empty(s)
	p.reconfigure(s, path)
	s.want(http.StatusCreated, s.do("POST", path+"/upgrade", map[string]any{
		"rb-name": "fw", "rb-version": "1", "profile-name": "edge", "cloud-region": "sandbox", "labels": map[string]string{},
		"override-values": map[string]string{"replicas": "3"},
	}))
	if after := p.pods(id, 3); !slices.Contains(after, before[0]) || !slices.Contains(after, before[1]) {
		t.Errorf("an upgrade that adds a pod has restarted others: %v, then %v", before, after)
	}
	deleted := s.want(http.StatusAccepted, s.do("DELETE", path, nil))
	if len(deleted.body) > 0 {
		t.Errorf("the answer is %s", deleted.body)
	}
	p.gone("Deployment", "r1-fw")
	p.gone("ConfigMap", "r1-fw")
}

// empty reads objects and lists that ONAP has stored empty, and some that are
// null there.
func (p *plugin) empty(s *program) {
	t, edge := p.t, s.want(http.StatusOK, s.do("GET", "/v1/rb/definition/fw/1/profile/edge", nil))
	t.Helper()
	got := map[string]any{
		"definition labels": s.want(http.StatusOK, s.do("GET", "/v1/rb/definition/fw/1", nil)).field(t, "labels"),
		"profile labels":    edge.field(t, "labels"), "profile types": edge.field(t, "extra-resource-types"),
		"default labels": s.want(http.StatusOK, s.do("GET", "/v1/rb/definition/fw/1/profile/default", nil)).field(t, "labels"),
	}
	want := map[string]any{"definition labels": map[string]any{}, "profile labels": map[string]any{}, "profile types": []any{}, "default labels": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is empty (-want +got):\n%s", diff)
	}
}

// reconfigure changes a configuration that was brought over, and takes it back.
func (p *plugin) reconfigure(s *program, path string) {
	t := p.t
	t.Helper()
	now := s.want(http.StatusOK, s.do("GET", path+"/config/keys", nil))
	if v := now.field(t, "config-version"); v != 2.0 || now.field(t, "values.key") != "second" {
		t.Errorf("the configuration is %s", now.body)
	}
	for _, version := range []string{"1", "2"} {
		if shown := s.want(http.StatusOK, s.do("GET", path+"/config/keys/version/"+version, nil)); shown.field(t, "values.token") != nf.Masked {
			t.Errorf("version %s is %s", version, shown.body)
		}
	}
	if tags := s.want(http.StatusOK, s.do("GET", path+"/config/keys/tag", nil)); !strings.Contains(string(tags.body), `"golden"`) {
		t.Errorf("the tags are %s", tags.body)
	}
	key := func() any {
		live, err := p.api("ConfigMap").Get(t.Context(), "r1-ssh", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		value, _, _ := unstructured.NestedString(live.Object, "data", "key")
		return value
	}
	s.want(http.StatusCreated, s.do("PUT", path+"/config/keys", map[string]any{"config-name": "keys", "template-name": "ssh", "values": map[string]any{"key": "third"}}))
	if key() != "third" {
		t.Errorf("the key is %q", key())
	}
	s.want(http.StatusOK, s.do("POST", path+"/config/keys/rollback", map[string]any{"config-tag": "golden"}))
	if key() != "first" {
		t.Errorf("the key is %q", key())
	}
}
