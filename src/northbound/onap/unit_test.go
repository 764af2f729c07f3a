package onap

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestTopOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a": "a", "a.b.c": "a", "a[0].b": "a", `a\.b.c`: "a.b", `a\[0].c`: "a[0]", `a\\.b`: `a\`, "": "", ".a": "", `a\`: "a", "é.b": "é",
	} {
		if got := topOf(path); got != want {
			t.Errorf("the first key of %q is %q, want %q", path, got, want)
		}
	}
}

func FuzzTopOf(f *testing.F) {
	for _, path := range []string{"a", "a.b", `a\.b.c`, "a[1]", `\`, "", "é.ü"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		top := topOf(path)
		if len(top) > len(path) {
			t.Errorf("the first key of %q is %q", path, top)
		}
		if !strings.ContainsAny(path, `\.[`) && top != path {
			t.Errorf("the first key of %q is %q", path, top)
		}
		// Written so that it is one key, it is its own first key.
		if quoted := strings.NewReplacer(`\`, `\\`, ".", `\.`, "[", `\[`).Replace(top); topOf(quoted) != top {
			t.Errorf("the first key of %q is %q, and of %q it is %q", path, top, quoted, topOf(quoted))
		}
	})
}

func FuzzInstanceRequest(f *testing.F) {
	for _, body := range []string{
		`{"rb-name": "a", "labels": {"a": "b", "c": null}, "override-values": null}`, `{"labels": {"a": 1}}`, `{"labels": []}`, `null`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decodeDocument[instanceRequest](body, refuse(400, "Body empty"))
		if err != nil {
			if _, ok := err.(*refusal); !ok && nf.KindOf(err) != nf.TooLarge { //nolint:errorlint // it must be one itself
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		kept, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		again, ours, err := requestOf(nf.Instance{Annotations: map[string]string{requestAnnotation: string(kept)}})
		if err != nil || !ours || !again.equal(q) {
			t.Errorf("%q is kept as %s, and read as %+v, %v", body, kept, again, err)
		}
	})
}

func TestSelector(t *testing.T) {
	t.Parallel()
	mine := nf.OwnerLabel + "=x2"
	v := vnf{Instance: nf.Instance{ID: "x2"}, id: "x1", alias: bundle.Alias{ID: "x1", Engine: "x2"}}
	for labels, want := range map[string]string{
		"":                                mine,
		"a=b":                             "a=b," + mine,
		nf.OwnerLabel + "=x1":             mine,
		"a=b," + nf.OwnerLabel + "==x1,c": "a=b," + mine + ",c",
		nf.OwnerLabel + "=x11":            nf.OwnerLabel + "=x11",
		nf.OwnerLabel + "!=x1":            nf.OwnerLabel + "!=x1",
		nf.OwnerLabel + " in (x1)":        nf.OwnerLabel + " in (x1)",
	} {
		if got := v.selector(labels); got != want {
			t.Errorf("of an instance that was moved, the selector %q becomes %q, want %q", labels, got, want)
		}
	}
}

func TestNotesAreRead(t *testing.T) {
	t.Parallel()
	in := nf.Instance{Annotations: map[string]string{profileAnnotation: `{"extra":[{"group":"g","version":"v1","kind":"K"}]}`}}
	if got, err := ExtraKinds(in); err != nil || len(got) != 1 || got[0] != (nf.Ref{Group: "g", Version: "v1", Kind: "K"}) {
		t.Errorf("the further kinds are %v, %v", got, err)
	}
	if got, err := ExtraKinds(nf.Instance{}); err != nil || got != nil {
		t.Errorf("without a profile, they are %v, %v", got, err)
	}
	bad := nf.Instance{Annotations: map[string]string{profileAnnotation: "{", requestAnnotation: "{", configAnnotation + "c": "{"}}
	if _, err := ExtraKinds(bad); err == nil {
		t.Error("a profile that cannot be read is one")
	}
	if _, _, err := requestOf(bad); err == nil {
		t.Error("a request that cannot be read is one")
	}
	if _, err := storedConfigs(bad.Annotations); err == nil {
		t.Error("a configuration that cannot be read is one")
	}
}
