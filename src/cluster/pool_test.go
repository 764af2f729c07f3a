package cluster

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestPool(t *testing.T) {
	one := []byte(testConfig(`server: "https://127.0.0.1:1"`, `token: a`))
	two := []byte(testConfig(`server: "https://127.0.0.1:1"`, `token: b`))
	p := New(PoolConfig{})
	open := func(id string, kubeconfig []byte) *Cluster {
		t.Helper()
		c, err := p.Open(id, kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := open("east", one)
	if open("east", one) != first {
		t.Error("the same kubeconfig must give the same cluster")
	}
	west := open("west", one)
	if west == first || west.http == first.http {
		t.Error("two regions must share nothing, even with one kubeconfig")
	}
	changed := open("east", two)
	if changed == first || open("east", two) != changed {
		t.Error("a changed kubeconfig must replace the cluster at once, and once")
	}
	p.Forget("east")
	if open("east", two) == changed {
		t.Error("a forgotten region must be opened anew")
	}
	p.Forget("nowhere")
	_, err := p.Open("east", []byte("kind: Secret"))
	wantKind(t, err, nf.Invalid)
}
