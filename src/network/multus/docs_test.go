package multus

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDocs checks that docs/networks.md names every type and field, and that the
// driver accepts its examples.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/networks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The driver multus\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	for _, word := range regexp.MustCompile("`([A-Za-z0-9_-]+)`").FindAllStringSubmatch(section, -1) {
		named[word[1]] = true
	}
	fields := maps.Clone(common)
	shapes := maps.Clone(chained)
	for kind, p := range plugins {
		shapes[kind] = p.shape
	}
	for kind, i := range ipams {
		shapes[kind] = i.shape
	}
	for kind, s := range shapes {
		fields[kind] = schema.Field{}
		maps.Copy(fields, s.Fields)
	}
	maps.Copy(fields, hostLocalRange)
	maps.Copy(fields, whereaboutRange)
	for _, name := range schema.SortedKeys(fields) {
		if !named[name] {
			t.Errorf("docs/networks.md does not name %s", name)
		}
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(examples) < 4 {
		t.Fatalf("docs/networks.md has %d examples, want at least 4", len(examples))
	}
	for _, e := range examples {
		if _, err := (Driver{}).Normalize(json.RawMessage(e[1]), nf.NetworkRegion{}); err != nil {
			t.Errorf("%s: %v", e[1], err)
		}
	}
}
