package cluster

import (
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// asked counts the uses of a serializer.
type asked struct {
	runtime.NegotiatedSerializer

	uses int
}

func (a *asked) SupportedMediaTypes() []runtime.SerializerInfo {
	a.uses++
	return a.NegotiatedSerializer.SupportedMediaTypes()
}

func TestRegionsShareCodecs(t *testing.T) {
	codecs := &asked{NegotiatedSerializer: statuses()}
	p := New(PoolConfig{codecs: codecs, Wrap: func(string, http.RoundTripper) http.RoundTripper { return stub(well) }})
	for i := range 100 {
		before := codecs.uses
		if err := opening(t, p, fmt.Sprintf("region-%d", i)).tryOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if codecs.uses == before {
			t.Fatalf("region %d reads a response with its own codecs", i)
		}
	}
	if New(PoolConfig{}).cfg.codecs == nil {
		t.Error("a pool creates its codecs once, not for each region")
	}
}
