package cluster

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/heaptest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestPickKeepsLittle keeps the metadata of one object of a large page.
func TestPickKeepsLittle(t *testing.T) {
	const objects, size = 200, 16 << 10
	item := func(n int) string {
		return fmt.Sprintf(`{"metadata":{"name":"a%d","namespace":"ns","uid":"u%d","annotations":{"text":%q}}}`, n, n, strings.Repeat("x", size))
	}
	_, c, _ := alone(t, lists(func(*http.Request) (*http.Response, error) {
		var items []string
		for n := range objects {
			items = append(items, item(n))
		}
		return mapList("", items...)
	}))
	targets, err := c.client.apis.resolveAll(t.Context(), []nf.Ref{awaited})
	if err != nil {
		t.Fatal(err)
	}
	key := "ConfigMap/ns/a7"
	pick := func() map[string]*metav1.ObjectMeta {
		out, err := c.client.pick(t.Context(), targets[0].kind.in("ns"), "", map[string]bool{key: true})
		if err != nil || len(out) != 1 || out[key].UID != "u7" {
			t.Errorf("the object is %v, %v", out, err)
		}
		return out
	}
	pick() // what is read for the first time remains
	before := heaptest.InUse()
	out := pick()
	if kept := heaptest.InUse() - before; kept > objects*size/4 {
		t.Errorf("%d KiB are kept for one object of %d KiB", kept>>10, size>>10)
	}
	runtime.KeepAlive(out)
}
