package cli

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPackIsDeterministic(t *testing.T) {
	files := map[string]string{
		"metadata.yaml": "resources: []\n", "deployments/web.yaml": "kind: Deployment\n", "deployments/db.yaml": "kind: Deployment\n",
		".git/config": "secret", "deployments/.web.yaml.swp": "junk",
	}
	one, two := folder(t, files), folder(t, files)
	touched := filepath.Join(two, "metadata.yaml")
	if err := os.Chtimes(touched, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(touched, 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := pack(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pack(two)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the same files must be the same bytes, whatever their times and modes")
	}
	want := []string{"deployments/db.yaml", "deployments/web.yaml", "metadata.yaml"}
	if diff := cmp.Diff(want, names(t, a)); diff != "" {
		t.Errorf("hidden files stay out, the others are sorted: -want +got:\n%s", diff)
	}
}

func TestPackKeepsContent(t *testing.T) {
	archive, err := pack(folder(t, map[string]string{"metadata.yaml": "resources: []\n"}))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("metadata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err != nil || string(content) != "resources: []\n" {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestPackRefusesLinks(t *testing.T) {
	root := folder(t, map[string]string{"metadata.yaml": ""})
	if err := os.Symlink("/etc/hostname", filepath.Join(root, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := pack(root); err == nil {
		t.Error("a link must be refused: what it leads to is not part of the package")
	}
}

func TestMediaType(t *testing.T) {
	cases := map[string]struct{ head, media, extension string }{
		"Zip":     {"PK\x03\x04", "application/zip", ".zip"},
		"Gzip":    {"\x1f\x8b", "application/gzip", ".tar.gz"},
		"Neither": {"x", "application/octet-stream", ".bin"},
		"Empty":   {"", "application/octet-stream", ".bin"},
	}
	for name, tc := range cases {
		media, extension := mediaType([]byte(tc.head))
		if media != tc.media || extension != tc.extension {
			t.Errorf("%s: got %s %s, want %s %s", name, media, extension, tc.media, tc.extension)
		}
	}
}

// folder makes a folder with the files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func names(t *testing.T, archive []byte) []string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range z.File {
		all = append(all, f.Name)
	}
	return all
}
