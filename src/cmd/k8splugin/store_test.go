package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runProgram runs a command line to its end.
func runProgram(t *testing.T, args ...string) (code int, says string) {
	t.Helper()
	var out syncBuffer
	code = run(t.Context(), args, testProcess(&out, &out))
	return code, out.String()
}

// TestDamagedStore starts on a folder whose log is damaged or gone.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		damage func(log string) error
		want   string
	}{
		"Removed": {"nothing tells what the database lacks", os.RemoveAll, "is missing"},
		"Emptied": {"a log has a beginning", func(log string) error {
			files, err := filepath.Glob(filepath.Join(log, "*.wal"))
			for _, f := range files {
				err = errors.Join(err, os.Truncate(f, 0))
			}
			return err
		}, "is damaged"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			serveProgram(t, data).stop()
			if err := tc.damage(filepath.Join(data, "member", "wal")); err != nil {
				t.Fatal(err)
			}
			code, says := runProgram(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
			for _, want := range []string{tc.want, data, "k8splugin backup restore --data NEW_FOLDER"} {
				if code != 6 || !strings.Contains(says, want) || strings.Contains(says, "panic") {
					t.Errorf("%s: exit code %d, want 6 and %q: %s", tc.reason, code, want, says)
				}
			}
		})
	}
}

// TestDiskFull has the disk of the store become full while the service runs: it
// ends, and says why.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	data := filepath.Join(disk, "data")
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=160m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what has failed keeps its files open until the process ends
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := serveProgram(t, data)
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(filler, rand.Reader); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for i := range 100 {
		files := web(goodImage)
		noise := make([]byte, 600<<10)
		_, _ = rand.Read(noise) // never fails
		files["noise.txt"] = fmt.Sprintf("%x", noise)
		request, err := http.NewRequestWithContext(t.Context(), "PUT", fmt.Sprint(p.url, "/v1/packages/", i), bytes.NewReader(archive(files)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			break
		}
		response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			break
		}
	}
	if code := p.stop(); code != 6 || !strings.Contains(p.log.String(), "no space left on device; free space on the disk of the folder") {
		t.Errorf("exit code %d: %s", code, p.log)
	}
}

// TestStoreFull fills a store to its quota, and starts it with a larger one.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := serveProgram(t, data, "--store-quota", "67108864")
	files := web(goodImage)
	for i := range 4 {
		noise := make([]byte, 15<<20)
		_, _ = rand.Read(noise) // never fails
		files[fmt.Sprint("noise", i)] = string(noise)
	}
	large := archive(files)
	var refused, ready answer
	// A round of maintenance between the two requests may free what the rejected
	// upload had written. Then the store is ready again, and is filled again.
	// A busy disk refuses an upload for another reason, and the store is not ready either.
	for i := 0; i < 20 && !strings.Contains(string(ready.body), "NOSPACE"); i++ {
		if refused = p.do("PUT", fmt.Sprint("/v1/packages/b", i), large); refused.status != http.StatusCreated {
			ready = p.do("GET", "/readyz", nil)
		}
	}
	// If the last accepted upload has filled the store exactly, the audit entry of the next one is refused.
	if said := string(refused.body); refused.status != http.StatusBadGateway || !strings.Contains(said, "raise --store-quota") && refused.field(t, "reason") != "audit" {
		t.Errorf("the refusal is %d: %s", refused.status, refused.body)
	}
	if ready.status != http.StatusServiceUnavailable || !strings.Contains(string(ready.body), "NOSPACE") || !strings.Contains(string(ready.body), "raise --store-quota") {
		t.Errorf("/readyz says %d: %s", ready.status, ready.body)
	}
	if metrics := p.do("GET", "/metrics", nil); !strings.Contains(string(metrics.body), "k8splugin_store_quota_bytes 6.7108864e+07") {
		t.Errorf("the quota is not measured: %s", metrics.body)
	}
	p.stop()
	p = serveProgram(t, data, "--store-quota", "268435456")
	p.want(http.StatusOK, p.do("GET", "/readyz", nil))
	p.upload("small", web(goodImage))
}
