package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// fixture is a catalog whose clusters answer as their kubeconfig says: "up", or
// anything else for a cluster that cannot be reached.
type fixture struct {
	*catalog.Catalog

	kv      store.KV
	probes  int
	logins  []string         // their passwords
	between func(key string) // runs before each write
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{between: func(string) {}}
	f.kv = storetest.Failing{KV: memory.New(), Fail: func(method, key string) error {
		if method == "Put" {
			f.between(key)
		}
		return nil
	}}
	ids := 0
	limits := render.DefaultLimits()
	limits.Archive = 4096
	c, err := catalog.New(catalog.Config{
		KV: f.kv, Limits: limits, Renderers: map[string]render.Renderer{"manifest": manifest.Renderer{}},
		Parse: func(kubeconfig nf.Secret) (nf.Access, error) {
			server, _, _ := strings.Cut(string(kubeconfig), " #")
			return nf.Access{Server: server, Kubeconfig: kubeconfig}, nil
		},
		Probe: func(_ context.Context, access nf.Access) (nf.Probe, error) {
			f.probes++
			if strings.TrimPrefix(access.Server, "https://") != "up" {
				return nf.Probe{}, &nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "the API server", Reason: "tcp", Err: errors.New("refused")}
			}
			return nf.Probe{Server: "https://up", Version: "v1.37.1"}, nil
		},
		Login: func(_ context.Context, o nf.OpenStack) error {
			f.logins = append(f.logins, string(o.Password))
			if string(o.Password) == "wrong" {
				return &nf.Error{Kind: nf.Unreachable, Op: "log in at", Subject: "the cloud", Reason: nf.ReasonUnauthorized, Err: errors.New("refused")}
			}
			return nil
		},
		NewID: func() string { ids++; return fmt.Sprintf("new-%d", ids) },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Catalog = c
	return f
}

func (f *fixture) keys(t *testing.T) []string {
	t.Helper()
	out := []string{}
	for e, err := range f.kv.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Key)
	}
	return out
}

func archive(data string) []byte {
	return rendertest.Zip(map[string]string{
		"metadata.yaml": "resources:\n- configmap: [a.yaml]\n",
		"a.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: " + data + "}\n",
	})
}

func TestRegisterKeepsNothingThatDoesNotAnswer(t *testing.T) {
	cases := map[string]struct {
		reason string
		region nf.Region
		kind   nf.Kind
		probes int
	}{
		"Unreachable":  {reason: "the probe decides", region: nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret("down")}}, kind: nf.Unreachable, probes: 1},
		"NoAccess":     {reason: "a region is reached somehow", region: nf.Region{ID: "east"}, kind: nf.Invalid},
		"NoCredential": {reason: "without a credential, no server is called", region: nf.Region{ID: "east", Access: nf.Access{Server: "https://up"}}, kind: nf.Invalid},
		"BadType":      {reason: "a region is a cluster", region: nf.Region{ID: "east", Type: "openstack", Access: nf.Access{Kubeconfig: nf.Secret("up")}}, kind: nf.Invalid},
		"BadNamespace": {reason: "instances could not go there", region: nf.Region{ID: "east", DefaultNamespace: "A", Access: nf.Access{Kubeconfig: nf.Secret("up")}}, kind: nf.Invalid},
		"BadID":        {reason: "an id is a path segment; for an invalid one, no server is called", region: nf.Region{ID: "a/b", Access: nf.Access{Kubeconfig: nf.Secret("up")}}, kind: nf.Invalid},
		"BadLabel":     {reason: "labels are Kubernetes labels", region: nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret("up")}, Labels: map[string]string{"": "x"}}, kind: nf.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if _, err := f.Register(t.Context(), tc.region); nf.KindOf(err) != tc.kind {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.kind)
			}
			if left := f.keys(t); len(left) > 0 || f.probes != tc.probes {
				t.Errorf("%s: %d probes, store holds %v", tc.reason, f.probes, left)
			}
		})
	}
}

func TestRegionLife(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	r, err := f.Register(ctx, nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret("up")}, Removing: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Owner != catalog.DefaultOwner || r.Probe.Version != "v1.37.1" || r.Removing != "" {
		t.Errorf("registered: %+v", r)
	}
	if _, err := f.Register(ctx, nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret("up")}}); nf.KindOf(err) != nf.Exists {
		t.Errorf("registered twice: %v", err)
	}
	if _, err := f.UpdateRegion(ctx, "east", func(r *nf.Region) error { r.Access = nf.Access{Kubeconfig: nf.Secret("down")}; return nil }); nf.ReasonOf(err) != "tcp" {
		t.Errorf("update to a kubeconfig that does not answer: %v", err)
	}
	probes := f.probes
	updated, err := f.UpdateRegion(ctx, "east", func(r *nf.Region) error {
		r.Labels, r.ID, r.Removing = map[string]string{"site": "edge"}, "west", "forged"
		return nil
	})
	if err != nil || updated.ID != "east" || updated.Removing != "" || updated.Labels["site"] != "edge" || string(updated.Access.Kubeconfig) != "up" {
		t.Errorf("update of labels: %+v, %v", updated, err)
	}
	if f.probes != probes {
		t.Error("a change of labels probed the cluster")
	}
	updated, err = f.UpdateRegion(ctx, "east", func(r *nf.Region) error { r.Access = nf.Access{Kubeconfig: nf.Secret("up # renamed")}; return nil })
	if err != nil || string(updated.Access.Kubeconfig) != "up # renamed" || updated.Access.Server != "up" || f.probes != probes {
		t.Errorf("a kubeconfig that leads to the same access is kept without a probe: %+v, %v", updated, err)
	}
	same, err := f.UpdateRegion(ctx, "east", func(r *nf.Region) error { r.Access = nf.Access{Kubeconfig: nf.Secret("up # renamed")}; return nil })
	if err != nil || !same.Updated.Equal(updated.Updated) || f.probes != probes {
		t.Errorf("an update that changes nothing has time %s, want %s: %v", same.Updated, updated.Updated, err)
	}
	if err := f.RemoveRegion(ctx, "east"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := f.Region(ctx, "east"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("after removal: %v", err)
	}
}

func TestPackageLife(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	first := archive("one")
	p, created, err := f.Upload(ctx, nf.Package{ID: ""}, bytes.NewReader(first))
	if err != nil || !created || p.ID != "new-1" || p.Kind != "manifest" || p.MediaType != "application/zip" {
		t.Fatalf("upload: %+v, %t, %v", p, created, err)
	}
	_, content, err := f.Content(ctx, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if back, _ := io.ReadAll(content); !bytes.Equal(back, first) {
		t.Error("the content is not what was uploaded")
	}
	same, created, err := f.Upload(ctx, nf.Package{ID: p.ID}, bytes.NewReader(first))
	if err != nil || created || same.Digest != p.Digest {
		t.Errorf("the same again: %+v, %t, %v", same, created, err)
	}
	before := len(f.keys(t))
	other, created, err := f.Upload(ctx, nf.Package{ID: p.ID}, bytes.NewReader(archive("two")))
	if err != nil || created || other.Digest == p.Digest || !other.Created.Equal(p.Created) {
		t.Errorf("other content: %+v, %t, %v", other, created, err)
	}
	if after := f.keys(t); len(after) != before {
		t.Errorf("the replaced content was not let go of: %v", after)
	}
	if _, files, _, err := f.Files(ctx, p.ID); err != nil || !strings.Contains(string(files["a.yaml"]), "two") {
		t.Errorf("files: %v, %v", files, err)
	}
	if err := f.RemovePackage(ctx, p.ID); err != nil {
		t.Error(err)
	}
	if left := f.keys(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPackagesOfOneContentShareIt(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	for _, id := range []string{"a", "b"} {
		if _, _, err := f.Upload(ctx, nf.Package{ID: id}, bytes.NewReader(archive("same"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.RemovePackage(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Content(ctx, "b"); err != nil {
		t.Errorf("the other package lost its content: %v", err)
	}
}

func TestBadUploadsAreNotKept(t *testing.T) {
	cases := map[string]struct {
		reason  string
		content []byte
		kind    nf.Kind
		text    string
	}{
		"Empty":    {reason: "no bytes are no package", kind: nf.Invalid, text: "empty"},
		"Garbage":  {reason: "it must be an archive", content: []byte("hello"), kind: nf.Invalid, text: "archive"},
		"TooLarge": {reason: "the limit is on the archive's bytes", content: make([]byte, 4097), kind: nf.TooLarge, text: "4096"},
		"BadYAML": {
			reason: "an error names file and line", kind: nf.Invalid, text: "a.yaml:2",
			content: rendertest.Zip(map[string]string{"metadata.yaml": "resources:\n- configmap: [a.yaml]\n", "a.yaml": "kind: ConfigMap\n\tx: y\n"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			_, _, err := f.Upload(t.Context(), nf.Package{ID: "p"}, bytes.NewReader(tc.content))
			if nf.KindOf(err) != tc.kind || !strings.Contains(fmt.Sprint(err), tc.text) {
				t.Errorf("%s: %v, want %s and %q", tc.reason, err, tc.kind, tc.text)
			}
			if left := f.keys(t); len(left) > 0 {
				t.Errorf("%s: left behind: %v", tc.reason, left)
			}
		})
	}
}

// TestUploadBesideARemoval plays the removal of a package into the middle of
// another upload of the same content: what is kept must have its content.
func TestUploadBesideARemoval(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	if _, _, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive("same"))); err != nil {
		t.Fatal(err)
	}
	removed := false
	f.between = func(key string) {
		if !removed && key == "packages/p" { // the content is there, the record is about to be
			removed = true
			if err := f.RemovePackage(ctx, "p"); err != nil {
				t.Error(err)
			}
		}
	}
	if _, _, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive("same"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Content(ctx, "p"); err != nil || !removed {
		t.Errorf("the package has lost its content (removed %t): %v", removed, err)
	}
}

// TestRepeatedRequests makes requests again whose answers were lost.
func TestRepeatedRequests(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	key := nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
	region := nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret("up")}, Request: key}
	var ids []string
	for range 2 {
		if _, err := f.Register(ctx, region); err != nil {
			t.Fatalf("the same registration: %v", err)
		}
		p, created, err := f.Upload(ctx, nf.Package{Request: key}, bytes.NewReader(archive("one")))
		if err != nil || !created {
			t.Fatalf("the same upload: created %t, error %v", created, err)
		}
		ids = append(ids, p.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("one upload made the packages %v", ids)
	}
	region.Request.Digest = "another"
	if _, err := f.Register(ctx, region); nf.ReasonOf(err) != "idempotency-key-reused" {
		t.Errorf("another registration under the key: %v", err)
	}
	before := f.keys(t)
	key.Digest = "another"
	if _, _, err := f.Upload(ctx, nf.Package{Request: key}, bytes.NewReader(archive("two"))); nf.ReasonOf(err) != "idempotency-key-reused" {
		t.Errorf("another upload under the key: %v", err)
	}
	if diff := cmp.Diff(before, f.keys(t)); diff != "" {
		t.Errorf("the refused upload changed (-before +after):\n%s", diff)
	}
}
