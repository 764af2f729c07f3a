package memory_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return memory.New() })
}
