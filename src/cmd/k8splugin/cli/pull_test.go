package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestPull(t *testing.T) {
	cases := map[string]struct {
		reason string
		to     string // -o, below the folder
		body   string
		want   string // the file
	}{
		"Zip":   {reason: "the file is named after the package and what it is", body: "PK\x03\x04rest", want: "firewall.zip"},
		"TarGz": {reason: "a tar.gz too", body: "\x1f\x8brest", want: "firewall.tar.gz"},
		"Named": {reason: "or it is named by -o", to: "x.zip", body: "PK\x03\x04rest", want: "x.zip"},
		"Empty": {reason: "an empty one is still a file", to: "x.zip", want: "x.zip"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			srv := serve(t, readContract(t), one("/v1/packages/firewall/content", tc.body))
			args := []string{"package", "pull", "firewall"}
			if tc.to != "" {
				args = append(args, "-o", tc.to)
			}
			r := console{}.run(t.Context(), srv.URL, args...)
			got, err := os.ReadFile(tc.want)
			if err != nil || string(got) != tc.body || r.stdout != tc.want+"\n" {
				t.Errorf("%s: got %q, %v and %+v", tc.reason, got, err, r)
			}
		})
	}
}

// A download that breaks off leaves the old file as it was, and nothing else.
func TestPullBreaksOff(t *testing.T) {
	t.Chdir(folder(t, map[string]string{"firewall.zip": "old"}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, "PK\x03\x04")
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	if r := (console{}).run(t.Context(), srv.URL, "package", "pull", "firewall"); r.code == exitOK {
		t.Errorf("got %+v, want a failure", r)
	}
	files, err := filepath.Glob("*")
	hidden, err2 := filepath.Glob(".*")
	if err != nil || err2 != nil || len(files) != 1 || len(hidden) != 0 {
		t.Errorf("got files %v %v, %v %v", files, hidden, err, err2)
	}
	if got, err := os.ReadFile("firewall.zip"); err != nil || string(got) != "old" {
		t.Errorf("the old file is %q, %v", got, err)
	}
}
