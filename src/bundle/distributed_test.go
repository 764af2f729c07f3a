package bundle_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func fine(context.Context, render.Files) error { return nil }

// TestPutDefinition distributes a definition, again, with other content, and wrongly.
func TestPutDefinition(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	put := func(model string, content io.Reader) bool {
		t.Helper()
		changed, err := bundle.NewDistributed(f.Bundles).PutDefinition(ctx, bundle.Definition{
			Name: "fw", Version: "1", Labels: map[string]string{"vf_module_model_uuid": model}, Origin: &bundle.Origin{Service: "s-" + model, Models: []string{model}},
		}, content, fine)
		must(t, err)
		return changed
	}
	compose := func() string {
		t.Helper()
		c, err := f.Compose(ctx, bundle.Key{Name: "fw", Version: "1", Profile: "default"})
		must(t, err)
		return c.Package
	}
	if !put("m1", reader(chart())) {
		t.Error("a new definition is a change")
	}
	first := compose()
	if put("m2", reader(chart())) {
		t.Error("the same content is no change")
	}
	if compose() != first {
		t.Error("the same content has the same package")
	}
	if !put("m1", reader(map[string]string{"nat/Chart.yaml": "name: nat\n"})) {
		t.Error("other content is a change")
	}
	if second := compose(); second == first || f.shelf.archives[first] == nil {
		t.Error("new instances get the new content, and the old one stays for instances that have it")
	}
	d, err := f.Definition(ctx, "fw", "1")
	must(t, err)
	want := &bundle.Origin{Service: "s-m1", Models: []string{"m2", "m1"}}
	if diff := cmp.Diff(want, d.Origin); diff != "" || d.Chart != "nat" || d.Labels["vf_module_model_uuid"] != "m1" {
		t.Errorf("the definition is %+v (-want +got):\n%s", d, diff)
	}
	if got, err := bundle.NewDistributed(f.Bundles).Designs(ctx); err != nil || !slices.Equal(got, []string{"s-m1"}) {
		t.Errorf("the services are %q, %v", got, err)
	}
	if n, err := bundle.NewDistributed(f.Bundles).MarkDeleted(ctx, "s-m1"); n != 1 || err != nil {
		t.Errorf("%d definitions are marked, %v", n, err)
	}
	if n, err := bundle.NewDistributed(f.Bundles).MarkDeleted(ctx, "s-m1"); n != 0 || err != nil {
		t.Errorf("%d definitions are marked again, %v", n, err)
	}
	if got, err := bundle.NewDistributed(f.Bundles).Designs(ctx); err != nil || len(got) > 0 {
		t.Errorf("the services that are not marked are %q, %v", got, err)
	}
	if d, err = f.Definition(ctx, "fw", "1"); err != nil || !d.Origin.Deleted.Equal(f.now) {
		t.Errorf("the definition stays, with a mark: %+v, %v", d, err)
	}
	put("m3", reader(chart()))
	if d, err = f.Definition(ctx, "fw", "1"); err != nil || !d.Origin.Deleted.Equal(time.Time{}) {
		t.Errorf("a new distribution removes the mark: %+v, %v", d, err)
	}
}

// TestPutNothing stores nothing of content that is wrong.
func TestPutNothing(t *testing.T) {
	t.Parallel()
	failing := io.MultiReader(strings.NewReader("half"), errReader{})
	cases := map[string]struct {
		reason  string
		name    string
		content io.Reader
		check   func(context.Context, render.Files) error
	}{
		"no chart":   {"there is no chart", "fw", reader(map[string]string{"a/b": "c"}), fine},
		"no archive": {"it is no archive", "fw", strings.NewReader("x"), fine},
		"escape":     {"an archive must not leave its folder", "fw", reader(chart("../x", "y")), fine},
		"check":      {"the check fails", "fw", reader(chart()), func(context.Context, render.Files) error { return nf.E(nf.Invalid, "render", "chart", nil) }},
		"damaged":    {"the content cannot be read to its end", "fw", failing, fine},
		"no name":    {"a definition has a name", "", reader(chart()), fine},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if _, err := bundle.NewDistributed(f.Bundles).PutDefinition(t.Context(), bundle.Definition{Name: tc.name, Version: "1"}, tc.content, tc.check); err == nil {
				t.Errorf("%s, but it is stored", tc.reason)
			}
			if left := f.keys(t, ""); len(left) > 0 {
				t.Errorf("%s: left behind: %v", tc.reason, left)
			}
		})
	}
}

// TestPutDefinitionFails distributes a definition when the store fails right before the
// content is written.
func TestPutDefinitionFails(t *testing.T) {
	t.Parallel()
	nat := func(version string) io.Reader {
		return reader(map[string]string{"nat/Chart.yaml": "name: nat\nversion: " + version + "\n"})
	}
	cases := map[string]struct {
		reason           string
		before, meantime bool // a client uploads the definition before the distribution, or during it
		method           string
		done             bool // the failed call is carried out
		stays            bool
	}{
		"new":         {reason: "a definition without content is deleted", method: "Get"},
		"lost":        {reason: "a definition whose content is released is deleted", method: "Put", done: true},
		"existing":    {reason: "an existing definition keeps its content and profile", before: true, method: "Get", stays: true},
		"not written": {reason: "so it does if the write fails", before: true, method: "Put", stays: true},
		"written":     {reason: "content that was written stays, although the store did not say so", before: true, method: "Put", done: true, stays: true},
		"meantime":    {reason: "content that a client has uploaded in the meantime stays", meantime: true, method: "Get", stays: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := newFixture(t), t.Context()
			if tc.before {
				_, err := f.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1"})
				must(t, err)
				must(t, f.UploadDefinition(ctx, "fw", "1", nat("1.0.0")))
			}
			var reads atomic.Int64
			hook := func(done bool) func(method, key string) error {
				return func(method, key string) error {
					if !strings.HasPrefix(key, "onap/definitions/") {
						return nil
					}
					if method == "Get" && !done {
						reads.Add(1)
					}
					// The first two reads look for the definition. The third begins the update.
					if done != tc.done || method != tc.method || reads.Load() != 3 {
						return nil
					}
					if tc.meantime {
						must(t, f.UploadDefinition(ctx, "fw", "1", nat("1.0.0")))
					}
					return nf.E(nf.Unreachable, "ask", key, nil)
				}
			}
			b, err := bundle.New(bundle.Config{KV: storetest.Failing{KV: f.kv, Fail: hook(false), Lose: hook(true)}, Packages: f.shelf, NewID: func() string { return "distributed" }})
			must(t, err)
			_, err = bundle.NewDistributed(b).PutDefinition(ctx, bundle.Definition{Name: "fw", Version: "1"}, nat("2.0.0"), fine)
			fails(t, tc.reason, err, nf.Unreachable, "")
			if !tc.stays {
				if left := append(f.keys(t, "onap/"), f.keys(t, "blobs/")...); len(left) > 0 {
					t.Errorf("%s: left behind: %v", tc.reason, left)
				}
				return
			}
			d, err := f.Definition(ctx, "fw", "1")
			if err != nil || d.Content.Upload == "" || (d.Content.Upload == "distributed") != tc.done {
				t.Errorf("%s: it is %+v, %v", tc.reason, d, err)
			}
			if _, err := f.Compose(ctx, bundle.Key{Name: "fw", Version: "1", Profile: "default"}); err != nil {
				t.Errorf("%s: it cannot be composed: %v", tc.reason, err)
			}
		})
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("the checksum differs") }
