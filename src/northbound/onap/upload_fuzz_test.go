package onap

import (
	"bytes"
	"io"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// FuzzForm reads bodies that may be forms: what is found in one was in it, and
// nothing but a form is taken for one.
func FuzzForm(f *testing.F) {
	f.Add("multipart/form-data", "--a\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nbody\r\n--a--\r\n")
	f.Add("multipart/form-data; boundary=b", "\r\n--b\nContent-Disposition: form-data; name=metadata\n\n{}\n--b--")
	f.Add("", "--- a: b\n")
	f.Add("multipart/mixed; boundary=\"\"", "--\r\n--\r\n----")
	f.Fuzz(func(t *testing.T, media, text string) {
		body := []byte(text)
		boundary := boundaryOf(media, body)
		if boundary == "" {
			return
		}
		if !strings.HasPrefix(strings.TrimLeft(text, "\r\n"), "--") {
			t.Fatalf("%q is taken for a form", text)
		}
		parts, err := readForm(body, boundary)
		if err != nil {
			return
		}
		if len(parts) == 0 || len(parts) > maxParts {
			t.Fatalf("a form of %d parts", len(parts))
		}
		for _, p := range parts {
			if !bytes.Contains(body, p.content) {
				t.Fatalf("a part has %q, which is not in the body", p.content)
			}
		}
		kv := memory.New()
		file, err := archives{InStore(kv)}.fromForm(t.Context(), multipart.NewReader(bytes.NewReader(body), boundary))
		if err != nil {
			t.Fatalf("the form has no file: %v", err)
		}
		content, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(parts, func(p part) bool { return bytes.Equal(p.content, content) }) {
			t.Fatalf("the file is %q", content)
		}
		file.Discard(t.Context())
		for e, err := range kv.List(t.Context(), "", "") {
			t.Fatalf("%s is left: %v", e.Key, err)
		}
	})
}
