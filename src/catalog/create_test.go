package catalog_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestPackageBeforeItsContent creates a package, uses it too early, uploads its
// content, and replaces that.
func TestPackageBeforeItsContent(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	data := map[string]any{"ticket": "4711"}
	p, err := f.CreatePackage(ctx, nf.Package{ID: "p", Name: "Mine", UserData: data, Digest: "forged", Upload: "forged"})
	if err != nil || p.State() != nf.PackageCreated || p.Upload != "" || nf.ProjectOf(p.Project) != "default" {
		t.Fatalf("created: %+v, %v", p, err)
	}
	_, _, _, filesErr := f.Files(ctx, "p")
	_, _, contentErr := f.Content(ctx, "p")
	for what, err := range map[string]error{"files": filesErr, "content": contentErr} {
		if nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonNoContent {
			t.Errorf("%s before the content: %v", what, err)
		}
	}
	if _, _, err := f.Upload(ctx, nf.Package{ID: "p"}, strings.NewReader("garbage")); nf.KindOf(err) != nf.Invalid {
		t.Errorf("a content that is refused: %v", err)
	}
	if again, err := f.Package(ctx, "p"); err != nil || again.State() != nf.PackageCreated {
		t.Errorf("after a refused content: %+v, %v", again, err)
	}
	for _, content := range []string{"one", "two"} {
		p, created, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive(content)))
		if err != nil || created || p.State() != nf.PackageOnboarded || p.Name != "Mine" {
			t.Fatalf("content %s: %+v, %t, %v", content, p, created, err)
		}
		if diff := cmp.Diff(data, p.UserData); diff != "" {
			t.Errorf("the upload changed the user data (-want +got):\n%s", diff)
		}
		if _, files, done, err := f.Files(ctx, "p"); err != nil || !strings.Contains(string(files["a.yaml"]), content) {
			t.Errorf("files: %v, %v", files, err)
		} else {
			done()
		}
	}
	if err := f.RemovePackage(ctx, "p"); err != nil {
		t.Error(err)
	}
	if left := f.keys(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUpdatePackage(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	if _, _, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive("one"))); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"a": "b"}
	p, err := f.UpdatePackage(ctx, "p", func(p *nf.Package) error {
		p.Disabled, p.UserData, p.ID, p.Digest, p.Project = true, data, "forged", "forged", "forged"
		return nil
	})
	if err != nil || !p.Disabled || p.ID != "p" || p.Digest == "forged" || p.Project == "forged" || !cmp.Equal(data, p.UserData) {
		t.Errorf("disabled: %+v, %v", p, err)
	}
	if p, _, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive("two"))); err != nil || !p.Disabled {
		t.Errorf("new content enables the package: %+v, %v", p, err)
	}
	large := func(p *nf.Package) error {
		p.UserData = map[string]any{"a": strings.Repeat("x", nf.MaxUserData)}
		return nil
	}
	if _, err := f.UpdatePackage(ctx, "p", large); nf.KindOf(err) != nf.Invalid {
		t.Errorf("too much user data: %v", err)
	}
	if _, err := f.UpdatePackage(ctx, "other", large); nf.KindOf(err) != nf.NotFound {
		t.Errorf("a package that does not exist: %v", err)
	}
}

func TestCreatePackage(t *testing.T) {
	key := nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
	other := key
	other.Digest = "other"
	cases := map[string]struct {
		reason string
		as     nf.Package
		kind   nf.Kind // Internal: it is created
		cause  string
	}{
		"NewID":      {reason: "without an id there is a new one", as: nf.Package{}},
		"Taken":      {reason: "creating never replaces", as: nf.Package{ID: "there"}, kind: nf.Exists},
		"TakenKeyed": {reason: "a key of another request is no excuse", as: nf.Package{ID: "there", Request: key}, kind: nf.Exists},
		"Repeated":   {reason: "a lost answer is given again", as: nf.Package{ID: "keyed", Request: key}},
		"Reused":     {reason: "a key belongs to one request", as: nf.Package{ID: "keyed", Request: other}, kind: nf.Conflict, cause: nf.ReasonIdempotency},
		"Elsewhere":  {reason: "a request in another project repeats none", as: nf.Package{ID: "keyed", Project: "green", Request: key}, kind: nf.Exists},
		"BadID":      {reason: "an id is a path segment", as: nf.Package{ID: "../x"}, kind: nf.Invalid},
		"BadProject": {reason: "so is a project", as: nf.Package{Project: "../x"}, kind: nf.Invalid},
		"BadName":    {reason: "a name is text", as: nf.Package{Name: "\x00"}, kind: nf.Invalid},
		"MuchData":   {reason: "user data is bounded", as: nf.Package{UserData: map[string]any{"a": strings.Repeat("x", nf.MaxUserData)}}, kind: nf.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, ctx := newFixture(t), t.Context()
			_, err := f.CreatePackage(ctx, nf.Package{ID: "there"})
			_, err2 := f.CreatePackage(ctx, nf.Package{ID: "keyed", Request: key})
			_, _, err3 := f.Upload(ctx, nf.Package{ID: "keyed"}, bytes.NewReader(archive("x")))
			if err := errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
			before := f.keys(t)
			p, err := f.CreatePackage(ctx, tc.as)
			if (err == nil) != (tc.kind == nf.Internal) || err != nil && (nf.KindOf(err) != tc.kind || nf.ReasonOf(err) != tc.cause) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				if diff := cmp.Diff(before, f.keys(t)); diff != "" {
					t.Errorf("%s: the refused request changed (-before +after):\n%s", tc.reason, diff)
				}
				return
			}
			if repeated := tc.as.ID == "keyed"; repeated != (p.State() == nf.PackageOnboarded) {
				t.Errorf("%s: it is %s", tc.reason, p.State())
			}
		})
	}
}

// TestUploadRepeatedLate repeats an upload after the content was replaced.
func TestUploadRepeatedLate(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	key := nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
	first, _, err := f.Upload(ctx, nf.Package{Request: key}, bytes.NewReader(archive("one")))
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := f.Upload(ctx, nf.Package{ID: first.ID}, bytes.NewReader(archive("two")))
	if err != nil {
		t.Fatal(err)
	}
	before := f.keys(t)
	again, created, err := f.Upload(ctx, nf.Package{Request: key}, bytes.NewReader(archive("one")))
	if err != nil || !created || again.Digest != second.Digest {
		t.Errorf("the repetition replaced the content: %+v, %t, %v", again, created, err)
	}
	if p, _, err := f.Upload(ctx, nf.Package{Request: key, Project: "green"}, bytes.NewReader(archive("one"))); nf.KindOf(err) != nf.Exists {
		t.Errorf("an upload into another project repeats it: %+v, %v", p, err)
	}
	if diff := cmp.Diff(before, f.keys(t)); diff != "" {
		t.Errorf("the repetition changed (-before +after):\n%s", diff)
	}
}
