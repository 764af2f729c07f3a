package vnfpkgm_test

import (
	"archive/zip"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestDownload has downloads of the CSAR and of an artifact, whole and in ranges.
func TestDownload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := csartest.Files(map[string]string{"Files/kubernetes/a.yaml": configMap, "Files/empty.txt": ""})
	at, archive := w.onboard(files), string(rendertest.Zip(files))
	size := len(archive)
	cases := map[string]struct {
		reason string
		path   string
		of     string // the header Range
		status int
		want   string
		header string // Content-Range
	}{
		"Whole":         {"the CSAR as it was uploaded", "/package_content", "", 200, archive, ""},
		"First":         {"its first bytes", "/package_content", "bytes=0-9", 206, archive[:10], fmt.Sprintf("bytes 0-9/%d", size)},
		"Rest":          {"from a byte on", "/package_content", "bytes=10-", 206, archive[10:], fmt.Sprintf("bytes 10-%d/%d", size-1, size)},
		"Last":          {"the last bytes", "/package_content", "bytes=-5", 206, archive[size-5:], fmt.Sprintf("bytes %d-%d/%d", size-5, size-1, size)},
		"Beyond":        {"a range that ends after the end", "/package_content", "bytes=10-999999", 206, archive[10:], fmt.Sprintf("bytes 10-%d/%d", size-1, size)},
		"LastOfMore":    {"more of the last bytes than there are", "/package_content", "bytes=-999999", 206, archive, fmt.Sprintf("bytes 0-%d/%d", size-1, size)},
		"Outside":       {"a range after the end", "/package_content", "bytes=999999-", 416, "", fmt.Sprintf("bytes */%d", size)},
		"None":          {"no bytes", "/package_content", "bytes=-0", 416, "", fmt.Sprintf("bytes */%d", size)},
		"Several":       {"several ranges are all", "/package_content", "bytes=0-1,3-4", 200, archive, ""},
		"Backward":      {"a range that is none is ignored", "/package_content", "bytes=4-2", 200, archive, ""},
		"Other":         {"and so is another unit", "/package_content", "lines=1-2", 200, archive, ""},
		"Artifact":      {"a file of the CSAR", "/artifacts/Files/kubernetes/a.yaml", "", 200, configMap, ""},
		"Escaped":       {"whose slashes may be escaped", "/artifacts/Files%2Fkubernetes%2Fa.yaml", "", 200, configMap, ""},
		"ArtifactRange": {"a range of a file", "/artifacts/Files/kubernetes/a.yaml", "bytes=4-6", 206, configMap[4:7], fmt.Sprintf("bytes 4-6/%d", len(configMap))},
		"EmptyFile":     {"a file without content has no range", "/artifacts/Files/empty.txt", "bytes=0-", 416, "", "bytes */0"},
		"Absent":        {"a file that is not there", "/artifacts/Files/b.yaml", "", 404, "", ""},
		"Out":           {"a path that leads out", "/artifacts/..%2F..%2Fetc%2Fpasswd", "", 404, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if tc.of != "" {
				headers = []string{"Range", tc.of}
			}
			got := w.ask("GET", at+tc.path, "", append(headers, "Accept", "application/json")...)
			if got.status != tc.status || got.status < 300 && got.body != tc.want || got.header.Get("Content-Range") != tc.header {
				t.Errorf("%s: %d, %d bytes, Content-Range %q", tc.reason, got.status, len(got.body), got.header.Get("Content-Range"))
			}
			if media := got.header.Get("Content-Type"); tc.path == "/package_content" && got.status < 300 && media != "application/zip" {
				t.Errorf("%s: Content-Type %q", tc.reason, media)
			}
		})
	}
}

func TestVNFD(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	single, several := w.onboard(csartest.Single(nil)), w.onboard(csartest.Files(nil))
	cases := map[string]struct {
		reason string
		at     string
		accept string
		status int
		media  string
	}{
		"Text":        {"one file is text", single, "text/plain", 200, "text/plain"},
		"Zip":         {"or a zip", single, "application/zip", 200, "application/zip"},
		"Both":        {"text is first", single, "text/plain,application/zip", 200, "text/plain"},
		"Any":         {"any type is text, too", single, "*/*", 200, "text/plain"},
		"None":        {"and no header", several, "", 200, "application/zip"},
		"SeveralText": {"several files are not text", several, "text/plain", 400, "application/problem+json"},
		"SeveralBoth": {"but a zip", several, "text/plain, application/zip", 200, "application/zip"},
		"JSON":        {"a VNFD is not JSON", single, "application/json", 406, "application/problem+json"},
		"Refused":     {"nor what is refused", single, "text/plain;q=0", 406, "application/problem+json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if tc.accept != "" {
				headers = []string{"Accept", tc.accept}
			}
			got := w.ask("GET", tc.at+"/vnfd", "", headers...)
			if got.status != tc.status || got.header.Get("Content-Type") != tc.media {
				t.Errorf("%s: %d %q: %s", tc.reason, got.status, got.header.Get("Content-Type"), got.body)
			}
		})
	}
	got := w.want(http.StatusOK, "GET", several+"/vnfd", "", "Accept", "application/zip")
	r, err := zip.NewReader(strings.NewReader(got.body), int64(len(got.body)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"TOSCA-Metadata/TOSCA.meta", "Definitions/top.yaml", "Definitions/types.yaml", "Definitions/df_simple.yaml"}, names); diff != "" {
		t.Errorf("the files of the VNFD (-want +got):\n%s", diff)
	}
}

// TestArtifactMedia has the client that decodes all but zips as text.
func TestArtifactMedia(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.onboard(csartest.Files(map[string]string{"Files/chart.tgz": "\x1f\x8b"}))
	for agent, want := range map[string]string{"python-tackerclient": "application/zip", "curl/8.0": "application/octet-stream"} {
		got := w.want(http.StatusOK, "GET", at+"/artifacts/Files/chart.tgz", "", "User-Agent", agent)
		if media := got.header.Get("Content-Type"); media != want {
			t.Errorf("for %s: %s, want %s", agent, media, want)
		}
	}
}

// TestUploadContinues has a client that does not wait for the response.
func TestUploadContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	left, done := make(chan struct{}), make(chan error, 1)
	w.fetching = func(server context.Context) {
		leave()
		<-left
		done <- server.Err()
	}
	w.sources["https://files.example.com/a"] = rendertest.Zip(csartest.Files(nil))
	at := w.create("")
	r, err := http.NewRequestWithContext(ctx, "POST", w.url+at+"/package_content/upload_from_uri", strings.NewReader(`{"addressInformation": "https://files.example.com/a"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if res, err := w.client.Do(r); err == nil {
		_ = res.Body.Close()
		t.Fatal("the client has waited")
	}
	close(left)
	if err := <-done; err != nil {
		t.Errorf("the download ends with its client: %v", err)
	}
}
