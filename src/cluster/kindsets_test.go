package cluster

import (
	"net/http"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// TestSharedKinds has four regions, two of which serve the same.
func TestSharedKinds(t *testing.T) {
	other := func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/api/v1" {
			return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
				{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get","list"]}]}`)
		}
		return served(req)
	}
	incomplete := func(req *http.Request) (*http.Response, error) {
		switch req.URL.Path {
		case "/apis":
			return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}]}`)
		case "/apis/example.org/v1":
			return answer(503, "")
		}
		return served(req)
	}
	p, _ := stubbed(map[string]stub{"east": served, "west": served, "north": other, "south": incomplete})
	of := func(region string) *kinds {
		ks, err := opening(t, p, region).client.apis.kinds(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return ks
	}
	east := of("east")
	if of("west") != east {
		t.Error("regions that serve the same do not share their kinds")
	}
	if of("north") == east {
		t.Error("regions that serve kinds with different verbs share them")
	}
	if south := of("south"); south == east || south.partial == nil {
		t.Errorf("a region with a group that cannot be read shares its kinds: %v", south.partial)
	}
	if n := len(p.cfg.kinds.sets); n != 2 {
		t.Errorf("%d sets are shared, want those of east and north", n)
	}
}

// TestUnusedKinds has a set that no region uses any more, and one that is used.
func TestUnusedKinds(t *testing.T) {
	sets := newKindSets()
	set := func(name string) *kinds {
		ks := &kinds{by: map[schema.GroupKind][]kind{}}
		ks.add(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: name, Kind: name}}}, readiness.Shipped().Categories)
		return sets.share(ks)
	}
	used := set("used")
	set("unused")
	for n := 2; n > 1; { // the test's time limit ends it
		runtime.GC()
		runtime.Gosched()
		sets.mu.Lock()
		n = len(sets.sets)
		sets.mu.Unlock()
	}
	if set("used") != used {
		t.Error("a set that is used is not shared any more")
	}
}
