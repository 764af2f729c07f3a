package onap

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestStart starts the surroundings. A&AI has the region with its kubeconfig, and the files
// of the service's arguments have the credentials.
func TestStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Start(t.Context(), dir, Place{"k8s", "edge", "t1"}, []byte("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, arg := range s.Arguments() {
		if !filepath.IsAbs(arg) {
			continue
		}
		info, err := os.Stat(arg)
		if err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(arg, dir) {
			t.Errorf("the file %s: %v, %v", arg, info, err)
		}
	}
	for name, url := range s.URLs() {
		if !strings.Contains(url, "127.0.0.1:") {
			t.Errorf("%s is at %s, not on loopback", name, url)
		}
	}
	if v := s.Violations(); len(v) > 0 {
		t.Errorf("the region is stored with %q", v)
	}
	if _, err := Start(t.Context(), filepath.Join(dir, "missing"), Place{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// TestFlow makes flows. A flow without a service, or without a sample, does not start.
func TestFlow(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), t.TempDir(), Place{"k8s", "edge", "t1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Flow(Config{}); err == nil {
		t.Error("a flow without a service")
	}
	f, err := s.Flow(Config{Service: "http://127.0.0.1:1", Sample: fstest.MapFS{}, Namespace: "ns", Suffix: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a flow without a sample: %v", err)
	}
	if f.VNF.Values["networks.protected"] != "protected-1" || len(f.Steps()) != 6 {
		t.Errorf("the flow has the values %v", f.VNF.Values)
	}
}

// TestPack packs the sample as SDC stores it: a chart below its own folder.
func TestPack(t *testing.T) {
	t.Parallel()
	content, err := pack(os.DirFS("../../../deployments/samples/vfw-onap"), "chart", "vfw/")
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	slices.Sort(names)
	if want := []string{"vfw/Chart.yaml", "vfw/templates/vfw.yaml", "vfw/values.yaml"}; !slices.Equal(names, want) {
		t.Errorf("the chart has %q, want %q", names, want)
	}
}
