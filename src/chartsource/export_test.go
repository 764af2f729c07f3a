package chartsource

import (
	"net/url"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ReadIndex holds what is relied on of an index, whatever it says.
func ReadIndex(t *testing.T, text string) {
	t.Helper()
	entries, err := entriesOf([]byte(text), "web")
	if err != nil {
		if kind := nf.KindOf(err); kind != nf.Invalid && kind != nf.NotFound {
			t.Errorf("%q is %v", text, err)
		}
		return
	}
	base := &url.URL{Scheme: "https", Host: "charts.example.com", Path: "/a"}
	for _, e := range entries {
		at, err := e.at(base)
		if err == nil && (at.Host == "" || at.User != nil || at.Scheme != "https" && at.Scheme != "http" && at.Scheme != "oci") {
			t.Errorf("version %q is at %q", e.Version, at)
		}
		if err != nil && nf.KindOf(err) != nf.Invalid {
			t.Errorf("version %q: %v", e.Version, err)
		}
	}
}
