package etcd

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

func TestInsideOpensNoSocket(t *testing.T) {
	before := sockets(t)
	s := open(t, Config{Dir: t.TempDir()})
	if _, err := s.Put(t.Context(), "key", nil, store.Absent); err != nil {
		t.Fatal(err)
	}
	for socket := range sockets(t) {
		if !before[socket] {
			t.Errorf("the server inside the process has opened %s", socket)
		}
	}

	before = sockets(t)
	startAlone(t, func(*embed.Config) {})
	if !slices.ContainsFunc(slices.Collect(maps.Keys(sockets(t))), func(socket string) bool { return !before[socket] }) {
		t.Error("the sockets of a server with a port are not seen either: the test is blind")
	}
}

// sockets returns the sockets that this process has open, of any family.
func sockets(t *testing.T) map[string]bool {
	t.Helper()
	const dir = "/proc/self/fd/"
	fds, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, fd := range fds {
		if name, err := os.Readlink(dir + fd.Name()); err == nil && strings.HasPrefix(name, "socket:") {
			found[name] = true
		}
	}
	return found
}
