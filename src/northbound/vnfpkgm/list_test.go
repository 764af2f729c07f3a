package vnfpkgm_test

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

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
)

// list returns the packages of a page.
func (w *world) list(query string) ([]map[string]any, answer) {
	w.t.Helper()
	got := w.want(http.StatusOK, "GET", root+query, "")
	var out []map[string]any
	if err := json.Unmarshal([]byte(got.body), &out); err != nil {
		w.t.Fatalf("%v: %s", err, got.body)
	}
	return out, got
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.create(`{"userDefinedData": {"ticket": "4711", "site": "it's (here); now", "size": 5}}`)
	second := w.onboard(csartest.Files(map[string]string{"Files/a.yaml": configMap}))
	names := map[string]string{first: "first", second: "second"}
	cases := map[string]struct {
		reason string
		filter string
		want   []string
	}{
		"None":        {"without a filter, all", "", []string{"first", "second"}},
		"Equal":       {"an attribute", "(eq,vnfProvider,Example)", []string{"second"}},
		"Path":        {"an attribute in another one", "(eq,userDefinedData/ticket,4711)", []string{"first"}},
		"Quoted":      {"a value with special characters", "(eq,userDefinedData/site,'it''s (here); now')", []string{"first"}},
		"Not":         {"an absent attribute is not equal", "(neq,vnfProvider,Example)", []string{"first"}},
		"In":          {"one of several values", "(in,onboardingState,CREATED,UPLOADING)", []string{"first"}},
		"NotIn":       {"none of them", "(nin,onboardingState,CREATED,UPLOADING)", []string{"second"}},
		"Contains":    {"a part of a text", "(cont,vnfProductName,VNF,x)", []string{"second"}},
		"ContainsNot": {"not a part", "(ncont,vnfProductName,VNF)", []string{"first"}},
		"And":         {"all conditions", "(eq,vnfProvider,Example);(eq,vnfdVersion,3)", []string{}},
		"Number":      {"numbers are compared as such", "(gt,userDefinedData/size,10)", []string{}},
		"Less":        {"and so are texts of digits", "(lt,vnfdVersion,10)", []string{"second"}},
		"AtLeast":     {"with the limit", "(gte,userDefinedData/size,5);(lte,userDefinedData/size,5)", []string{"first"}},
		"List":        {"any item of a list", "(eq,additionalArtifacts/artifactPath,Files/a.yaml)", []string{"second"}},
		"Unknown":     {"an attribute that is never there", "(eq,nothing/at/all,1)", []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, _ := w.list("?filter=" + url.QueryEscape(tc.filter))
			got := []string{}
			for _, p := range found {
				got = append(got, names[root+"/"+fmt.Sprint(p["id"])])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for _, wrong := range []string{"eq,a,b", "(eq,a)", "(eq,a,b", "(like,a,b)", "(eq,a,b)(eq,a,b)", "(eq,a,b);", "(eq,a,b,c)", "(eq,,b)", "(eq,a,'b)", strings.Repeat("(eq,a,b);", 21) + "(eq,a,b)"} {
		w.want(http.StatusBadRequest, "GET", root+"?filter="+url.QueryEscape(wrong), "")
	}
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.onboard(csartest.Files(map[string]string{"Files/a.yaml": configMap}))
	w.want(http.StatusOK, "PATCH", at, `{"userDefinedData": {"a": "b"}}`)
	mandatory := []string{"_links", "id", "onboardingState", "operationalState", "usageState"}
	plain := []string{"vnfProductName", "vnfProvider", "vnfSoftwareVersion", "vnfdId", "vnfdVersion"}
	rich := []string{"additionalArtifacts", "checksum", "userDefinedData"}
	cases := map[string]struct {
		reason string
		query  string
		want   []string
	}{
		"Default":        {"by default, without those that are large", "", slices.Concat(mandatory, plain)},
		"All":            {"a flag without a value", "?all_fields", slices.Concat(mandatory, plain, rich)},
		"ExcludeDefault": {"another one", "?exclude_default", slices.Concat(mandatory, plain)},
		"Fields":         {"what is named, and what is mandatory", "?fields=vnfdId%2CuserDefinedData/a", slices.Concat(mandatory, []string{"vnfdId", "userDefinedData"})},
		"Except":         {"what is named is not left out", "?exclude_default&fields=checksum,vnfdId", slices.Concat(mandatory, plain, []string{"checksum"})},
		"Exclude":        {"without what is named, but with what is mandatory", "?exclude_fields=vnfdId,id", slices.Concat(mandatory, plain[:3], plain[4:], rich)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, _ := w.list(tc.query)
			if diff := cmp.Diff(slices.Sorted(slices.Values(tc.want)), slices.Sorted(maps.Keys(found[0]))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for _, wrong := range []string{"?all_fields&fields=id", "?exclude_fields=a&fields=b", "?limit=3"} {
		w.want(http.StatusBadRequest, "GET", root+wrong, "")
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 205 {
		w.create(`{"userDefinedData": {"a": "b"}}`)
	}
	seen := map[string]bool{}
	sizes := []int{}
	for query := "?filter=" + url.QueryEscape("(eq,userDefinedData/a,b)"); query != ""; {
		found, got := w.list(query)
		sizes = append(sizes, len(found))
		for _, p := range found {
			seen[fmt.Sprint(p["id"])] = true
		}
		link := got.header.Get("Link")
		after, linked := strings.CutPrefix(link, "<"+root)
		if query = ""; linked {
			query, _ = strings.CutSuffix(after, `>; rel="next"`)
		}
	}
	if !slices.Equal(sizes, []int{100, 100, 5}) || len(seen) != 205 {
		t.Errorf("pages of %v with %d packages", sizes, len(seen))
	}
}
