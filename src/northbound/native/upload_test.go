package native_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// TestUploadAsksFirst sends archives that cannot be read: a client that may not
// upload is denied before its archive is read.
func TestUploadAsksFirst(t *testing.T) {
	t.Parallel()
	const key = "Idempotency-Key: k"
	file := "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n"
	field := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	cases := map[string]struct {
		reason  string
		request string
		header  []string
		head    string // before the archive
		want    mayUpload
	}{
		"Keyed":        {"a package without a project is of the default one", "POST /v1/packages", []string{asZip, key}, "", mayUpload{"default", ""}},
		"KeyedProject": {"the query names the project", "POST /v1/packages?project=blue", []string{asZip, key}, "", mayUpload{"blue", ""}},
		"Form":         {"what a form says after the archive is not known yet", "POST /v1/packages", []string{asForm}, file, mayUpload{"", ""}},
		"FormFields":   {"what it says before is", "POST /v1/packages", []string{asForm}, field("project", "blue") + field("csar_id", "mine") + file, mayUpload{"blue", "mine"}},
		"PutForm":      {"the path names the package", "PUT /v1/packages/mine", []string{asForm}, file, mayUpload{"", "mine"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStandIn()
			s.fail["MayUpload"] = nf.E(nf.Forbidden, "upload", "package", nil)
			api, err := native.New(config(s))
			if err != nil {
				t.Fatal(err)
			}
			router := mux.NewRouter()
			api.Routes(router)
			method, path, _ := strings.Cut(tc.request, " ")
			body := io.MultiReader(strings.NewReader(tc.head), iotest.ErrReader(errors.New("the archive is read")))
			r := httptest.NewRequestWithContext(t.Context(), method, path, body)
			for _, line := range tc.header {
				key, value, _ := strings.Cut(line, ": ")
				r.Header.Add(key, value)
			}
			w := httptest.NewRecorder()
			router.ServeHTTP(w, r)
			if w.Code != http.StatusForbidden {
				t.Errorf("%s: it is answered %d %s", tc.reason, w.Code, w.Body)
			}
			if diff := cmp.Diff(any(tc.want), s.asked, cmp.AllowUnexported(mayUpload{})); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestArchiveKey compares the digest of a request with an archive with that of a
// document that says the same, which is stored with packages.
func TestArchiveKey(t *testing.T) {
	t.Parallel()
	form := "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n"
	cases := map[string]struct {
		reason       string
		path, header string
		head, tail   string
		id, project  string
		archive      string
	}{
		"Plain":   {"an archive as it is", "/v1/packages", asZip, "", "", "", "default", "archive"},
		"Padded":  {"of any length", "/v1/packages", asZip, "", "", "", "default", "archives"},
		"Project": {"with what the query says", "/v1/packages?project=blue", asZip, "", "", "", "blue", "archive"},
		"Form":    {"and what a form says", "/v1/packages", asForm, form, "\r\n--x\r\nContent-Disposition: form-data; name=\"csar_id\"\r\n\r\nmine\r\n--x--\r\n", "mine", "default", "archive"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStandIn()
			if got := serve(t, s).ask(t, "POST "+tc.path, tc.head+tc.archive+tc.tail, tc.header, "Idempotency-Key: k"); got.StatusCode != http.StatusCreated {
				t.Fatalf("%s: %s %s", tc.reason, got.Status, got.body)
			}
			document, err := json.Marshal([]any{tc.id, tc.project, []byte(tc.archive)})
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(append([]byte("POST /v1/packages\n"), document...))
			want := nf.RequestKey{Key: "k", Digest: "sha256:" + hex.EncodeToString(sum[:])}
			if diff := cmp.Diff(want, keyOf(t, s)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
