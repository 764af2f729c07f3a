package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestAttachProperties checks that attaching is idempotent, keeps the order of
// what is there, and that attachments do not depend on each other.
func TestAttachProperties(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "sriov"})
	interfaces := rapid.SampledFrom([]string{"", "", "net1", "net2", "net3", "oam"})
	entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "networks/"}).Draw(t, "ns") + names.Draw(t, "name") + rapid.SampledFrom([]string{"", "@net2", "@net5", "@oam"}).Draw(t, "at")
	}), 0, 4)
	attachments := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) nf.Attachment {
		return nf.Attachment{Network: names.Draw(t, "network"), Interface: interfaces.Draw(t, "interface")}
	}), 1, 5)
	attached := 0
	rapid.Check(t, func(r *rapid.T) {
		before := strings.Join(entries.Draw(r, "entries"), ",")
		wanted := wantedOf(attachments.Draw(r, "attachments")...)
		p := planOf(t, workload("Deployment", "web", `template: {metadata: {annotations: {`+networksKey+`: "`+before+`"}}, spec: {containers: [{name: c}]}}`))
		once, err := p.Attach(wanted, connect)
		if err != nil {
			return // a clash; TestAttachWrong has them
		}
		attached++
		twice, err := once.Attach(wanted, connect)
		if err != nil {
			r.Fatalf("the second time: %v", err)
		}
		if diff := cmp.Diff(once.Stages[0].Objects[0].Object.Object, twice.Stages[0].Objects[0].Object.Object); diff != "" {
			r.Fatalf("not idempotent (-once +twice)\n%s", diff)
		}
		list := elements(r, annotationOf(t, once, 0, "spec", "template"))
		given := 0
		if before != "" {
			given = len(strings.Split(before, ","))
		}
		for i := range given {
			name, _ := list[i]["name"].(string)
			if !strings.Contains(strings.Split(before, ",")[i], name) {
				r.Fatalf("element %d of %s is not in its place: %v", i, before, list)
			}
		}
		if len(list) > given+len(wanted) {
			r.Fatalf("%d attachments added %d elements", len(wanted), len(list)-given)
		}
		seen := map[any]bool{}
		for i, e := range list {
			at := e["interface"]
			if at == nil {
				at = fmt.Sprintf("net%d", i+1)
			}
			if seen[at] {
				r.Fatalf("the interface %s is there twice: %v", at, list)
			}
			seen[at] = true
		}
	})
	if attached < 10 {
		t.Errorf("only %d plans had no clash", attached)
	}
}

// TestAttachCommutes checks that the order of attachments with named interfaces
// decides on the order of the elements only.
func TestAttachCommutes(t *testing.T) {
	attachments := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) nf.Attachment {
		return nf.Attachment{Network: rapid.SampledFrom([]string{"a", "b", "sriov"}).Draw(t, "network"), Interface: rapid.StringMatching("[a-d]").Draw(t, "interface")}
	}), 1, 4, func(a nf.Attachment) string { return a.Interface })
	rapid.Check(t, func(r *rapid.T) {
		given := attachments.Draw(r, "attachments")
		p := planOf(t, workload("Deployment", "web", `template: {metadata: {annotations: {`+networksKey+`: "x, networks/a@a"}}, spec: {containers: [{name: c}]}}`))
		byInterface := func(attachments []nf.Attachment) (map[any]any, string) {
			got, err := p.Attach(wantedOf(attachments...), connect)
			if err != nil {
				return nil, "clash"
			}
			out := map[any]any{}
			for _, e := range elements(r, annotationOf(t, got, 0, "spec", "template")) {
				out[e["interface"]] = e["name"]
			}
			containers, _, _ := unstructured.NestedSlice(got.Stages[0].Objects[0].Object.Object, "spec", "template", "spec", "containers")
			return out, fmt.Sprint(containers)
		}
		one, resources := byInterface(given)
		other, same := byInterface(rapid.Permutation(given).Draw(r, "permutation"))
		if diff := cmp.Diff(one, other); diff != "" || resources != same {
			r.Fatalf("the order matters: %s, %s (-one +other)\n%s", resources, same, diff)
		}
	})
}

// elements reads an annotation, which must be canonical.
func elements(r *rapid.T, annotation string) (list []map[string]any) {
	if err := json.Unmarshal([]byte(annotation), &list); err != nil {
		r.Fatal(err)
	}
	if again, _ := json.Marshal(list); string(again) != annotation {
		r.Fatalf("the annotation %s is not canonical: %s", annotation, again)
	}
	return list
}
