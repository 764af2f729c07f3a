package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// pageLists are lists that read a part of the stored records, with the name of the items
// in the answers.
var pageLists = map[string]string{
	"/v1/vnf_instances":                      "vnf_instances",
	"/v1/vnf_instances?cloud_region_id=east": "vnf_instances",
	"/v1/operations":                         "operations",
	"/v1/operations?subject=vnf_instance":    "operations",
	"/v1/operations?state=succeeded":         "operations",
	"/v1/packages":                           "packages",
}

// TestCostOfPages reads the first pages of each list, as callers that see all instances
// and as callers that see those of a project or a region. With 3,000 instances,
// operations and packages, a page must cost as many reads from the store as with 300.
func TestCostOfPages(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	few := w.pageCosts(300)
	if diff := cmp.Diff(few, w.pageCosts(3000)); diff != "" {
		t.Errorf("the reads of each page (-with 300 records +with 3000):\n%s", diff)
	}
	for page, cost := range few {
		if cost.Records > 160 { // the item, its entry in an index, and the first one of each scope
			t.Errorf("%s reads %d records", page, cost.Records)
		}
	}
}

// pageCosts copies an instance of each API with its operations, and a package, until there
// are so many copies. It
// returns the reads of the first three pages of each list.
func (w *accessWorld) pageCosts(many int) map[string]readCount {
	w.t.Helper()
	w.multiply(map[string]accessObject{"vnf_id": w.native[0], "instance": w.onap[0]}, w.copies, many)
	pkg, err := w.db.kv.Get(w.t.Context(), "packages/pkg-a")
	for n := w.copies; n < many && err == nil; n++ {
		id := fmt.Sprintf("pkg-a-%d", n)
		_, err = w.db.kv.Put(w.t.Context(), "packages/"+id, []byte(strings.ReplaceAll(string(pkg.Value), "pkg-a", id)), store.Absent)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.copies = many
	out := map[string]readCount{}
	for list, name := range pageLists {
		for _, who := range []string{admin, "viewer-a-east", "viewer-all", "operator-b"} {
			if name == "packages" && who == "operator-b" {
				continue // packages have no index by project
			}
			marker := ""
			for page := range 3 {
				w.reads.take()
				got := w.want(http.StatusOK, w.as(who, "GET", list+separator(list)+"limit=50&marker="+url.QueryEscape(marker), nil))
				out[fmt.Sprintf("%s: page %d of %s", who, page, list)] = w.reads.take()
				if items, _ := got.field(w.t, name).([]any); who == admin && len(items) != 50 {
					w.t.Fatalf("page %d of %s has %d items", page, list, len(items))
				}
				marker = got.text(w.t, "next")
			}
		}
	}
	return out
}

func separator(list string) string {
	if strings.Contains(list, "?") {
		return "&"
	}
	return "?"
}
