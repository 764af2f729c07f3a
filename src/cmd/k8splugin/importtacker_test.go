package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/migration"
)

// importTacker runs the command, and returns its exit code, its report and all that it
// prints.
func importTacker(t *testing.T, args ...string) (code int, report migration.Report, text string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := importCommand(testProcess(&stdout, &stderr))
	cmd.SetArgs(append([]string{"tacker", "-o", "json"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	cli.Report(&stderr, err)
	text = stdout.String() + stderr.String()
	if stdout.Len() > 0 {
		if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return cli.ExitCode(err), report, text
}

// TestImportTacker imports from a service that serves Tacker's API.
func TestImportTacker(t *testing.T) {
	t.Parallel()
	from := startBareService(t)
	request, token := vimOf(t, "east", "default")
	from.want(http.StatusCreated, from.do("POST", "/v1.0/vims", request))
	second, _ := vimOf(t, "west", "default")
	from.want(http.StatusCreated, from.do("POST", "/v1.0/vims", second))
	const packages = "/vnfpkgm/v1/vnf_packages"
	made := from.want(http.StatusCreated, from.do("POST", packages, map[string]any{"userDefinedData": map[string]string{"ticket": "4711"}})).text(t, "id")
	content := archive(csartest.Files(map[string]string{"Files/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}))
	from.want(http.StatusAccepted, from.do("PUT", packages+"/"+made+"/package_content", content))
	credentials, err := json.Marshal(map[string]any{"east": request["vim"].(map[string]any)["auth_cred"]})
	if err != nil {
		t.Fatal(err)
	}
	file, data := configFileOf(t, string(credentials)), filepath.Join(t.TempDir(), "data")
	args := []string{"--url", from.url, "--credentials", file, "--data", data}

	code, report, text := importTacker(t, append(args, "--dry-run")...)
	want := map[string]int{"vim would be imported": 1, "vim failed": 1, "package would be imported": 1}
	if diff := cmp.Diff(want, counts(report)); code != 1 || diff != "" {
		t.Fatalf("dry run: code %d, %s (-want +got):\n%s", code, text, diff)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the dry run has left something: %v", err)
	}
	code, report, text = importTacker(t, args...)
	want = map[string]int{"vim imported": 1, "vim failed": 1, "package imported": 1}
	if diff := cmp.Diff(want, counts(report)); code != 1 || diff != "" || !strings.Contains(text, "give them with --credentials") {
		t.Fatalf("import: code %d, %s (-want +got):\n%s", code, text, diff)
	}
	code, report, text = importTacker(t, args...)
	want = map[string]int{"vim there already": 1, "vim failed": 1, "package there already": 1}
	if diff := cmp.Diff(want, counts(report)); code != 1 || diff != "" {
		t.Fatalf("second import: code %d, %s (-want +got):\n%s", code, text, diff)
	}
	if strings.Contains(text, token) {
		t.Errorf("the report has a credential: %s", text)
	}
	s := serveProgram(t, data)
	got := s.want(http.StatusOK, s.do("GET", packages+"/"+made, nil))
	if got.text(t, "onboardingState") != "ONBOARDED" || got.text(t, "userDefinedData.ticket") != "4711" {
		t.Errorf("the package is %s", got.body)
	}
	if got := s.want(http.StatusOK, s.do("GET", packages+"/"+made+"/package_content", nil)); !bytes.Equal(got.body, content) {
		t.Error("the content differs")
	}
	s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/east", nil))
}

func TestImportTackerUsage(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"no URL":              {},
		"no such form":        {"--url", "http://tacker", "--os-auth-type", "v2password"},
		"no token":            {"--url", "http://tacker", "--os-auth-type", "admin_token"},
		"no project":          {"--url", "http://tacker", "--os-auth-type", "password", "--os-username", "ann"},
		"credentials missing": {"--url", "http://tacker", "--credentials", "absent.yaml"},
		"credentials wrong":   {"--url", "http://tacker", "--credentials", configFileOf(t, "east: s3cret")},
	} {
		code, _, text := importTacker(t, append(args, "--store", "memory")...)
		if code != 2 || strings.Contains(text, "s3cret") {
			t.Errorf("%s: code %d, %s", reason, code, text)
		}
	}
}
