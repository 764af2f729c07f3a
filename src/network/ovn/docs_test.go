package ovn

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDocs checks that docs/networks.md names every flavor and field, and that the driver
// accepts its examples.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/networks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The driver ovn\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	for _, word := range regexp.MustCompile("`([A-Za-z0-9_-]+)`").FindAllStringSubmatch(section, -1) {
		named[word[1]] = true
	}
	for kind, f := range flavors {
		for _, name := range append(schema.SortedKeys(f.shape.Fields), kind) {
			if !named[name] {
				t.Errorf("docs/networks.md does not name %s of %s", name, kind)
			}
		}
	}
	for name := range dhcpShape.Fields {
		if !named[name] {
			t.Errorf("docs/networks.md does not name %s of dhcp", name)
		}
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(examples) < len(flavors) {
		t.Fatalf("docs/networks.md has %d examples, want one for each flavor", len(examples))
	}
	for _, e := range examples {
		if _, err := (Driver{}).Normalize(json.RawMessage(e[1]), nf.NetworkRegion{}); err != nil {
			t.Errorf("%s: %v", e[1], err)
		}
	}
}
