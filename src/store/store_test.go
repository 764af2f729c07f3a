package store_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// onEach runs a test on an empty database of each kind.
func onEach(t *testing.T, test func(t *testing.T, kv store.KV)) {
	t.Run("memory", func(t *testing.T) { test(t, memory.New()) })
	t.Run("etcd", func(t *testing.T) {
		kv, err := etcd.Open(t.Context(), etcd.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kv.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, kv)
	})
}

// keysOf returns all keys that begin with the prefix.
func keysOf(t *testing.T, kv store.KV, prefix string) []string {
	t.Helper()
	keys := []string{}
	for e, err := range kv.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

func wantKind(t *testing.T, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
