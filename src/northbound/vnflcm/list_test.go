package vnflcm_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// list returns the resources of a page.
func (w *world) list(path string) ([]map[string]any, answer) {
	w.t.Helper()
	got := w.want(http.StatusOK, "GET", path, "")
	var out []map[string]any
	if err := json.Unmarshal([]byte(got.body), &out); err != nil || out == nil {
		w.t.Fatalf("%v: %s", err, got.body)
	}
	return out, got
}

func TestListVNFs(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.list("/vnf_instances") // an empty list is a list
		names := map[string]string{w.created(): "new", w.instantiated(): "used"}
		w.set("/vnf_instances/vnf-0001", func(v *nf.VNF) { v.Name, v.Metadata = "fw", map[string]any{"site": "east"} })
		cases := map[string]struct {
			reason, filter string
			want           []string
			indexed        int // conditions that the index has
		}{
			"None":   {"all", "", []string{"new", "used"}, 0},
			"State":  {"a state", "(eq,instantiationState,INSTANTIATED)", []string{"used"}, 1},
			"Others": {"another state", "(neq,instantiationState,INSTANTIATED)", []string{"new"}, 0},
			"Named":  {"a name, and a package", "(in,vnfInstanceName,fw);(eq,vnfdId," + knownVNFD + ")", []string{"new"}, 2},
			"Name":   {"one of several names", "(in,vnfInstanceName,fw,other)", []string{"new"}, 0},
			"Deep":   {"an attribute that the list leaves out", "(eq,metadata/site,east)", []string{"new"}, 0},
			"VNFC":   {"an item of a list in an attribute", "(eq,instantiatedVnfInfo/vnfcInfo/vduId,VDU1)", []string{"used"}, 0},
			"Level":  {"a number", "(gte,instantiatedVnfInfo/scaleStatus/scaleLevel,1)", []string{"used"}, 0},
			"Key":    {"the keys of a map", "(eq,metadata/@key,site)", []string{"new"}, 0},
		}
		for name, tc := range cases {
			filter := url.QueryEscape(tc.filter)
			found, _ := w.list("/vnf_instances?filter=" + filter)
			if raw, _ := w.list("/vnf_instances?filter=" + strings.ReplaceAll(filter, "%3B", ";")); cmp.Diff(found, raw) != "" {
				t.Errorf("%s: %s: with a raw semicolon, the list has %v", name, tc.reason, raw)
			}
			got := []string{}
			for _, v := range found {
				got = append(got, names["/vnf_instances/"+fmt.Sprint(v["id"])])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
			}
			if len(w.from.Where) != tc.indexed {
				t.Errorf("%s: %s: the index has the conditions %v", name, tc.reason, w.from.Where)
			}
		}
		mandatory := []string{"_links", "id", "instantiationState", "vnfProductName", "vnfProvider", "vnfSoftwareVersion", "vnfdId", "vnfdVersion"}
		selections := map[string][]string{
			"":                                       mandatory,
			"?all_fields":                            append([]string{"instantiatedVnfInfo", "vimConnectionInfo"}, mandatory...),
			"?exclude_default":                       mandatory,
			"?fields=vimConnectionInfo":              append([]string{"vimConnectionInfo"}, mandatory...),
			"?exclude-fields=instantiatedVnfInfo,id": append([]string{"vimConnectionInfo"}, mandatory...),
			"?exclude_default&fields=instantiatedVnfInfo/foo": append([]string{"instantiatedVnfInfo"}, mandatory...),
		}
		for query, want := range selections {
			found, _ := w.list("/vnf_instances" + query)
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(found[1]))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	})
}

func TestListOccurrences(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "/vnflcm/v2")
	for range 205 {
		w.mu.Lock()
		id := w.id("occ")
		w.occurrences[id] = nf.Occurrence{ID: id, VNF: "vnf", Operation: nf.OccurrenceScale, State: nf.OccurrenceFailedTemp, Failure: &nf.Failure{Message: "m"}, Params: []byte(`{}`)}
		w.mu.Unlock()
	}
	seen, sizes := map[string]bool{}, []int{}
	for query := "?filter=" + url.QueryEscape("(eq,operation,SCALE)") + "&exclude-fields=startTime,error"; query != ""; {
		found, got := w.list("/vnf_lcm_op_occs" + query)
		sizes = append(sizes, len(found))
		for _, o := range found {
			seen[fmt.Sprint(o["id"])] = true
			if o["error"] != nil || o["startTime"] == nil || o["operationParams"] == nil {
				t.Fatalf("the attributes of %v", o)
			}
		}
		after, linked := strings.CutPrefix(got.header.Get("Link"), "<"+w.root+"/vnf_lcm_op_occs")
		if query = ""; linked {
			query, _ = strings.CutSuffix(after, `>; rel="next"`)
		}
	}
	if !slices.Equal(sizes, []int{100, 100, 5}) || len(seen) != 205 {
		t.Errorf("pages of %v with %d occurrences", sizes, len(seen))
	}
	for filter, want := range map[string]int{"(eq,vnfInstanceId,vnf);(eq,operationState,FAILED_TEMP)": 100, "(eq,vnfInstanceId,other)": 0, "(eq,operationState,COMPLETED)": 0} {
		if found, _ := w.list("/vnf_lcm_op_occs?filter=" + url.QueryEscape(filter)); len(found) != want || len(w.from.Where) == 0 {
			t.Errorf("%s: %d occurrences, want %d; the index has the conditions %v", filter, len(found), want, w.from.Where)
		}
	}
	if found, _ := w.list("/vnf_lcm_op_occs"); found[0]["error"] != nil || found[0]["operationParams"] != nil {
		t.Errorf("by default, a list has %v", found[0])
	}
}
