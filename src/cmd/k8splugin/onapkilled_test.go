//go:build !race

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// TestONAPKilled runs the founding flow while the service is killed with SIGKILL before and
// after the first write of each kind to its store, and started again. The clients send a
// request again to which they got no response. Each of eighty starts takes seconds
// with the race detector; TestVNFKilled, too, is a service that is killed.
func TestONAPKilled(t *testing.T) {
	t.Parallel()
	around, ns := surround(t, "onap-killed")
	file := filepath.Join(t.TempDir(), "kills")
	service := serveAgain(t, around.SDC.Restarted, around.Arguments(), killAtWrites+"="+file)
	newFounding(t, around, ns, service.url, &http.Client{Transport: script.Persistent{Transport: &http.Transport{DisableKeepAlives: true}}}).run()
	kills, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("killed %d times:\n%s", bytes.Count(kills, []byte("\n")), kills)
	for _, write := range []string{
		"update sdc", "create packages", "create regions", "create networks", "create instances", "update instances", "create aai", "delete aai",
		"create idempotency", "delete instances", "delete networks", "delete regions",
	} {
		for _, moment := range []string{"before ", "after "} {
			if !slices.ContainsFunc(strings.Split(string(kills), "\n"), func(kill string) bool {
				return strings.HasPrefix(kill, moment) && strings.Contains(kill, write)
			}) {
				t.Errorf("the service was not killed %s%s", moment, write)
			}
		}
	}
}
