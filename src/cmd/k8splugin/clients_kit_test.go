package main

// The clients of ONAP's v1 API as scenarios: each asks what the real one asks,
// in its order, with its headers and media types, and reads the answers as
// strictly as it does. A reason that begins with A and a number asserts the
// golden exchange of that number, which every drop-in for ONAP has to hold.

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// noDocuments is how ONAP says that something is not there: its clients look for
// parts of it.
const noDocuments = "Error finding master table: mongo: no documents in result"

// caller is one of ONAP's clients.
type caller struct {
	*testService
	ns     string
	header []string // pairs of name and value that each of its requests has
}

// newCaller starts a service, which knows nothing, and its client.
func newCaller(t *testing.T, header ...string) caller {
	t.Helper()
	s := startBareService(t, func(c *Config) { c.CallbackAllow = "127.0.0.1" })
	return caller{testService: s, ns: clustertest.Namespace(t), header: header}
}

// ask sends a request, "POST /v1/instance", and fails the test unless the answer
// has the status. A body that is a text is sent as it is.
func (c caller) ask(reason string, status int, request string, body any, header ...string) answer {
	c.t.Helper()
	method, at, _ := strings.Cut(request, " ")
	if text, ok := body.(string); ok {
		body = []byte(text)
	}
	a := c.send(c.t.Context(), method, at, body, slices.Concat(c.header, header)...)
	if a.status != status {
		c.t.Fatalf("%s: %s: status %d, want %d: %s", reason, request, a.status, status, a.body)
	}
	return a
}

// told is ask for a rejected request. The response is a line that contains the
// given text, within the part that clients keep.
func (c caller) told(reason string, status int, request string, body any, text string) {
	c.t.Helper()
	const kept = 200
	a := c.ask(reason, status, request, body)
	if line := string(a.body[:min(len(a.body), kept)]); !strings.Contains(line, text) {
		c.t.Errorf("%s: %s: %q does not say %q", reason, request, line, text)
	}
	if media := a.header.Get("Content-Type"); media != "text/plain; charset=utf-8" {
		c.t.Errorf("%s: %s: its media type is %q", reason, request, media)
	}
}

// fails asks for what must be an error, whichever: scripts look no closer.
func (c caller) fails(reason, request string) {
	c.t.Helper()
	method, at, _ := strings.Cut(request, " ")
	if a := c.send(c.t.Context(), method, at, nil, c.header...); a.status < http.StatusBadRequest {
		c.t.Errorf("%s: %s: status %d: %s", reason, request, a.status, a.body)
	}
}

// poll asks until the answer is the one that is waited for, as clients do.
func (c caller) poll(reason, request string, done func(answer) bool) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		a := c.ask(reason, http.StatusOK, request, nil)
		if done(a) {
			return a
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("%s: %s is still %s", reason, request, a.body)
		case <-ticker.C:
		}
	}
}

// strictly reads an answer as a client does that stops at a field which it does
// not know.
func strictly[T any](t *testing.T, reason string, a answer) (out T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%s: %s: %v in %s", reason, a.request, err, a.body)
	}
	return out
}

// has compares the value at a dotted path of an answer.
func (c caller) has(reason string, a answer, at string, want any) {
	c.t.Helper()
	if diff := cmp.Diff(want, a.field(c.t, at)); diff != "" {
		c.t.Errorf("%s: %s: %s (-want +got):\n%s", reason, a.request, at, diff)
	}
}

// keys fails the test unless a JSON object has exactly the given keys.
func (c caller) keys(reason string, document []byte, want ...string) {
	c.t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal(document, &object); err != nil {
		c.t.Fatalf("%s: %v in %s", reason, err, document)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(object))); diff != "" {
		c.t.Errorf("%s: the keys (-want +got):\n%s", reason, diff)
	}
}

// list reads an answer that must be an array: null is none to a client that
// iterates.
func (c caller) list(reason string, a answer) []map[string]any {
	c.t.Helper()
	var out []map[string]any
	if err := json.Unmarshal(a.body, &out); err != nil || out == nil {
		c.t.Fatalf("%s: %s: %v: no array in %s", reason, a.request, err, a.body)
	}
	return out
}

// kubectl gets an object of the client's namespace, once: nil when it is not
// there.
func (c caller) kubectl(version, kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	of := &unstructured.Unstructured{}
	of.SetAPIVersion(version)
	of.SetKind(kind)
	of.SetNamespace(c.ns)
	of.SetName(name)
	return clustertest.Get(c.t, of)
}

// there is kubectl for what must be there.
func (c caller) there(reason, version, kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	got := c.kubectl(version, kind, name)
	if got == nil {
		c.t.Fatalf("%s: there is no %s %s", reason, kind, name)
	}
	return got
}

// value is a value of an object as text.
func value(t *testing.T, object *unstructured.Unstructured, at ...string) string {
	t.Helper()
	text, _, err := unstructured.NestedString(object.Object, at...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The group of the firewall's networks: definitions outlive the test, so that
// each has its own group.
const networkGroup = "k8s.plugin.opnfv.org"

// tarball packs a folder of testdata/clients as `tar -C folder .` does: with its
// folders, and all paths beginning with "./".
func (c caller) tarball(folder string) []byte { return c.pack(folder, "./") }

// folder packs a folder of testdata/clients as CDS does: its packer writes the
// folder itself as a file without a name and without content.
func (c caller) folder(name string) []byte {
	c.t.Helper()
	headers, contents := c.entries(name, "")
	return rendertest.Tar(append([]tar.Header{{Mode: 0o644}}, headers...), contents)
}

// bundle packs the chart in a folder of testdata/clients as `tar chart` does.
func (c caller) bundle(folder string) []byte { return c.pack(folder, "") }

func (c caller) pack(folder, prefix string) []byte {
	c.t.Helper()
	headers, contents := c.entries(folder, prefix)
	return rendertest.Tar(headers, contents)
}

// entries returns the entries of a folder of testdata/clients in an archive.
func (c caller) entries(folder, prefix string) (headers []tar.Header, contents map[string]string) {
	c.t.Helper()
	contents = map[string]string{}
	files := os.DirFS(path.Join("testdata/clients", folder))
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == "." && prefix == "":
			return err
		case name == ".":
			headers = append(headers, tar.Header{Name: prefix, Typeflag: tar.TypeDir, Mode: 0o755})
		case d.IsDir():
			headers = append(headers, tar.Header{Name: prefix + name + "/", Typeflag: tar.TypeDir, Mode: 0o755})
		default:
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(string(content), networkGroup, c.ns+"."+networkGroup)
			headers = append(headers, tar.Header{Name: prefix + name, Mode: 0o644, Size: int64(len(text))})
			contents[prefix+name] = text
		}
		return nil
	})
	if err != nil || len(contents) == 0 {
		c.t.Fatalf("cannot pack %s: %d files, %v", folder, len(contents), err)
	}
	return headers, contents
}

// connection is a form with the properties of a region, and its kubeconfig. The
// metadata is a plain field, and the file is called as the client calls it.
func (c caller) connection(region, owner, filename string) (form []byte, header []string) {
	c.t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	err := w.WriteField("metadata", `{"cloud-region": "`+region+`", "cloud-owner": "`+owner+`"}`)
	if err != nil {
		c.t.Fatal(err)
	}
	file, err := w.CreateFormFile("file", filename)
	if err == nil {
		_, err = io.Copy(file, bytes.NewReader(clustertest.Kubeconfig(c.t)))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return out.Bytes(), []string{"Content-Type", w.FormDataContentType()}
}

// register makes the sandbox a region.
func (c caller) register(region string) {
	c.t.Helper()
	form, header := c.connection(region, "acme", "kubeconfig")
	c.ask("the region", http.StatusCreated, "POST /v1/connectivity-info", form, header...)
}

// define makes a definition of the firewall, and a profile of it.
func (c caller) define(name, version, profile string) {
	c.t.Helper()
	at := "/v1/rb/definition/" + name + "/" + version
	c.ask("the bundle", http.StatusCreated, "POST /v1/rb/definition", map[string]any{"rb-name": name, "rb-version": version})
	c.ask("its chart", http.StatusOK, "POST "+at+"/content", c.bundle("firewall/bundle"))
	c.ask("its profile", http.StatusCreated, "POST "+at+"/profile", map[string]any{
		"rb-name": name, "rb-version": version, "profile-name": profile, "namespace": c.ns, "release-name": "vfw",
	})
	c.ask("its overlay", http.StatusOK, "POST "+at+"/profile/"+profile+"/content", c.tarball("firewall/profile"))
}
