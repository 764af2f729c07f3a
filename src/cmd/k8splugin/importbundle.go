package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
)

// defaultProfile is the name of the profile that every definition comes with.
const defaultProfile = "default"

// infrastructure reports whether an error is not about the thing that was to be
// brought over: then nothing else can be, either.
func infrastructure(err error) bool {
	kind := nf.KindOf(err)
	return kind == nf.Unreachable || kind == nf.Internal && errors.Is(err, context.Canceled)
}

// outcome makes an item of what came of bringing it over.
func outcome(it importItem, changed bool, err error) (importItem, error) {
	var differs differsError
	var lacks lacksError
	switch {
	case err == nil && changed:
		it.Result = imported
	case err == nil:
		it.Result = importedThere
	case errors.As(err, &differs):
		it.Result, it.Reason = importDiffers, string(differs)
	case errors.As(err, &lacks):
		it.Result, it.Reason = importSkipped, string(lacks)
	case infrastructure(err):
		return it, err
	default:
		it.Result, it.Reason = importFailed, err.Error()
	}
	return it, nil
}

// differsError says what is there and different.
type differsError string

func (e differsError) Error() string { return string(e) }

// lacksError says what something needs and has not.
type lacksError string

func (e lacksError) Error() string { return string(e) }

func definitionName(name, version string) string { return name + " " + version }

func profileName(k bundle.Key) string { return k.Name + " " + k.Version + " " + k.Profile }

func (im *importer) definition(ctx context.Context, d onapstore.Definition) (importItem, error) {
	it := importItem{Kind: "definition", Name: definitionName(d.Name, d.Version)}
	if !d.Content.Exists() {
		it.Warnings = append(it.Warnings, "it has no content, and cannot be brought up")
	}
	there, err := im.bundles.Definition(ctx, d.Name, d.Version)
	created := nf.KindOf(err) == nf.NotFound && err != nil
	if created {
		there, err = im.bundles.CreateDefinition(ctx, bundle.Definition{
			Name: d.Name, Version: d.Version, Chart: d.Chart, Description: d.Description, Labels: d.Labels,
		})
	} else if err == nil && !sameDefinition(there, d) {
		err = differsError("its chart name, description or labels are others here")
	}
	if err != nil {
		return outcome(it, false, err)
	}
	uploaded, err := im.content(ctx, d.Content, there.Content, func(archive []byte) error {
		return im.bundles.UploadDefinition(ctx, d.Name, d.Version, archive)
	})
	return outcome(it, created || uploaded, err)
}

// sameDefinition compares what is said of a definition. The chart's name is
// found in the content when nobody has given it.
func sameDefinition(a bundle.Definition, b onapstore.Definition) bool {
	return (b.Chart == "" || a.Chart == b.Chart) && a.Description == b.Description && maps.Equal(a.Labels, b.Labels)
}

// content brings an archive over, and reports whether it was missing.
func (im *importer) content(ctx context.Context, from onapstore.Content, there bundle.Content, upload func([]byte) error) (bool, error) {
	if !from.Exists() {
		return false, nil
	}
	archive, err := im.from.Content(ctx, from)
	switch {
	case err != nil:
		return false, err
	case there.Digest == digestOf(archive):
		return false, nil
	case there != bundle.Content{}:
		return false, differsError("its content is another one here")
	}
	return true, upload(archive)
}

func (im *importer) profile(ctx context.Context, p onapstore.Profile) (importItem, error) {
	wanted := bundle.Profile{
		Definition: p.Definition, Version: p.Version, Name: p.Name, Release: cmp.Or(p.Release, p.Name), Namespace: p.Namespace,
		KubeVersion: p.KubeVersion, Labels: p.Labels,
	}
	if p.Extra != nil {
		wanted.Extra = []bundle.Type{} // empty is not absent
	}
	for _, t := range p.Extra {
		wanted.Extra = append(wanted.Extra, bundle.Type(t))
	}
	it := importItem{Kind: "profile", Name: profileName(wanted.Key())}
	if p.Name != defaultProfile && !p.Content.Exists() {
		it.Warnings = append(it.Warnings, "it has no content, and nothing can be brought up with it")
	}
	if len(p.Labels) > 0 || p.KubeVersion != "" {
		it.Warnings = append(it.Warnings, "its labels and its kubernetes-version count from the next upgrade on, which may restart pods: ONAP kept them without using them")
	}
	there, changed, err := im.putProfile(ctx, wanted)
	if err != nil {
		return outcome(it, false, err)
	}
	uploaded, err := im.content(ctx, p.Content, there.Content, func(archive []byte) error {
		return im.bundles.UploadProfile(ctx, wanted.Key(), archive)
	})
	return outcome(it, changed || uploaded, err)
}

// putProfile makes a profile unless it is there. The one that its definition has
// come with is made what it shall be.
func (im *importer) putProfile(ctx context.Context, wanted bundle.Profile) (there bundle.Profile, changed bool, err error) {
	there, err = im.bundles.Profile(ctx, wanted.Key())
	switch {
	case err != nil && nf.KindOf(err) == nf.NotFound:
		there, err = im.bundles.CreateProfile(ctx, wanted)
		return there, true, err
	case err != nil || sameProfile(there, wanted):
		return there, false, err
	case pristine(there):
		there, err = im.bundles.UpdateProfile(ctx, wanted)
		return there, true, err
	}
	return there, false, differsError("its release, namespace, version, labels or further types are others here")
}

func sameProfile(a, b bundle.Profile) bool {
	return a.Release == b.Release && a.Namespace == b.Namespace && a.KubeVersion == b.KubeVersion && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Extra, b.Extra)
}

// pristine reports whether a profile is as a definition comes with it.
func pristine(p bundle.Profile) bool {
	return p.Bare && p.Content == (bundle.Content{}) && sameProfile(p, bundle.Profile{Release: defaultProfile, Namespace: "default"})
}

func (im *importer) template(ctx context.Context, t onapstore.Template) (importItem, error) {
	it := importItem{Kind: "template", Name: definitionName(t.Definition, t.Version) + " " + t.Name}
	key := bundle.TemplateKey{Name: t.Definition, Version: t.Version, Template: t.Name}
	there, err := im.bundles.Template(ctx, key)
	created := nf.KindOf(err) == nf.NotFound && err != nil
	if created {
		there, err = im.bundles.CreateTemplate(ctx, bundle.Template{Definition: t.Definition, Version: t.Version, Name: t.Name, Description: t.Description})
	} else if err == nil && there.Description != t.Description {
		err = differsError("its description is another one here")
	}
	if err != nil {
		return outcome(it, false, err)
	}
	uploaded, err := im.content(ctx, t.Content, there.Content, func(archive []byte) error {
		return im.bundles.UploadTemplate(ctx, key, archive)
	})
	return outcome(it, created || uploaded, err)
}

func (im *importer) region(ctx context.Context, c onapstore.Connection) (importItem, error) {
	it := importItem{Kind: "region", Name: c.Region}
	there, err := im.catalog.Region(ctx, c.Region)
	created := nf.KindOf(err) == nf.NotFound && err != nil
	if created {
		there, err = im.catalog.Enlist(ctx, nf.Region{ID: c.Region, Owner: c.Owner, Kubeconfig: c.Kubeconfig})
	} else if err == nil && (there.Owner != c.Owner || !slices.Equal(there.Kubeconfig, c.Kubeconfig)) {
		err = differsError("its owner or its kubeconfig is another one here")
	}
	if err != nil {
		return outcome(it, false, err)
	}
	kept, err := im.bundles.Connection(ctx, there)
	switch {
	case err != nil && nf.KindOf(err) == nf.NotFound:
		created = true
		err = im.bundles.PutConnection(ctx, bundle.Connection{Region: there.ID, Registered: there.Created, Owner: there.Owner, Records: c.Records})
	case err == nil && !slices.EqualFunc(kept.Records, c.Records, maps.Equal):
		err = differsError("its connectivity records are others here")
	}
	return outcome(it, created, err)
}
