package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// pageLists are lists that read a part of the stored records, with the number of items on
// a page of all records.
var pageLists = map[string]int{
	"/v1/vnf_instances":                                50,
	"/v1/vnf_instances?cloud_region_id=east":           50,
	"/v1/vnf_instances?namespace={namespace}":          50, // that of the copies
	"/v1/vnf_instances?csar_id=pkg-b":                  4,  // two are members of services
	"/v1/vnf_instances?state=ready&project=b":          6,  // two are VNFs, and two members of services
	"/v1/vnf_instances?state=terminating":              0,
	"/v1/vnf_instances?label=tier=gold":                0,
	"/v1/vnf_instances?vnf_instance_name=other":        0,
	"/v1/operations":                                   50,
	"/v1/operations?subject=vnf_instance":              50,
	"/v1/operations?state=succeeded":                   50,
	"/v1/operations?vnf_id={vnf_id}":                   1,
	"/v1/operations?state=failed":                      0,
	"/v1/operations?subject=vnf_instance&state=failed": 0,
	"/v1/operations?project=b":                         14, // of networks, of volumes, of instances, of services with members, and of VNFs with instances: two each
	"/v1/packages":                                     50,
	"/v1/packages?project=b":                           2, // a CSAR is one
	"/v1/packages?project=c":                           0,
	"/v1/audit?identity=absent":                        0,
	"/v1/audit?project=absent&identity_kind=user":      0,
}

// itemsOf returns the name of the items in the answers of a list.
func itemsOf(list string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(list, "/v1/"), "?")
	if path == "audit" {
		return "entries"
	}
	return path
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
	for template, full := range pageLists {
		list := w.native[0].filled(template)
		for _, who := range []string{admin, "viewer-a-east", "viewer-all", "operator-b"} {
			if itemsOf(list) == "entries" && who != admin {
				continue // they may not read them
			}
			marker := ""
			for page := range 3 {
				w.reads.take()
				got := w.want(http.StatusOK, w.as(who, "GET", list+separator(list)+"limit=50&marker="+url.QueryEscape(marker), nil))
				out[fmt.Sprintf("%s: page %d of %s", who, page, list)] = w.reads.take()
				items, _ := got.field(w.t, itemsOf(list)).([]any)
				if who == admin && len(items) != full {
					w.t.Fatalf("page %d of %s has %d items, want %d", page, list, len(items), full)
				}
				if full < 50 || len(items) < 50 {
					break
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
