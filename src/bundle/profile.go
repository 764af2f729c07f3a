package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// defaultProfile is the profile that every definition has from the start.
const defaultProfile = "default"

// Profile says how to instantiate a definition: the namespace, the release
// name, and the values and files that override the chart's.
type Profile struct {
	Definition  string            `json:"definition"` // its name
	Version     string            `json:"version"`    // of the definition
	Name        string            `json:"name"`
	Release     string            `json:"release"` // default release name of instances
	Namespace   string            `json:"namespace,omitempty"`
	KubeVersion string            `json:"kube_version,omitempty"` // version that the chart sees; empty: the region's
	Labels      map[string]string `json:"labels,omitzero"`        // added to every object; nil and empty differ
	Extra       []Type            `json:"extra,omitzero"`         // additional types of objects that belong to an instance by label; nil and empty differ
	Bare        bool              `json:"bare,omitempty"`         // the overlay is empty, and no upload is needed
	Content     Content           `json:"content,omitzero"`
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// Type names a type of Kubernetes objects.
type Type struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// Key returns the profile's key.
func (p Profile) Key() Key { return Key{p.Definition, p.Version, p.Name} }

func (p Profile) subject() string {
	return fmt.Sprintf("profile %q of definition %q %q", p.Name, p.Definition, p.Version)
}

// resetDefault creates the default profile of a definition. It replaces one
// that an earlier definition of that name may have left.
func (b *Bundles) resetDefault(ctx context.Context, d Definition) error {
	p := Profile{
		Definition: d.Name, Version: d.Version, Name: defaultProfile, Release: defaultProfile, Namespace: "default",
		Bare: true, Created: b.cfg.Clock().UTC(),
	}
	p.Updated = p.Created
	if err := b.RemoveProfile(ctx, p.Key()); err != nil {
		return err
	}
	err := b.profiles.Insert(ctx, p.Key().id(), p)
	if nf.KindOf(err) == nf.Exists { // a concurrent request creates the same definition
		return nil
	}
	return err
}

// CreateProfile stores a profile without content. It returns nf.NotFound if the
// definition does not exist, and nf.Exists if it has a profile of that name.
// The release name defaults to the profile's name.
func (b *Bundles) CreateProfile(ctx context.Context, p Profile) (Profile, error) {
	if err := checkNames("create", p.subject(), [2]string{"rb-name", p.Definition}, [2]string{"rb-version", p.Version},
		[2]string{"profile-name", p.Name}); err != nil {
		return Profile{}, err
	}
	if _, err := b.Definition(ctx, p.Definition, p.Version); err != nil {
		return Profile{}, err
	}
	p.Release = cmp.Or(p.Release, p.Name)
	p.Bare, p.Content, p.Created = false, Content{}, b.cfg.Clock().UTC()
	p.Updated = p.Created
	if err := b.profiles.Insert(ctx, p.Key().id(), p); err != nil {
		return Profile{}, err
	}
	return p, nil
}

// Profile returns a profile, or nf.NotFound.
func (b *Bundles) Profile(ctx context.Context, k Key) (Profile, error) {
	return b.profiles.Get(ctx, k.id())
}

// Profiles returns the profiles of a definition, even if the definition no
// longer exists.
func (b *Bundles) Profiles(ctx context.Context, name, version string) ([]Profile, error) {
	return b.profiles.List(ctx, join(name, version)+"/")
}

// UpdateProfile replaces all fields of a profile except its content, or returns
// nf.NotFound.
func (b *Bundles) UpdateProfile(ctx context.Context, p Profile) (Profile, error) {
	return b.profiles.Update(ctx, p.Key().id(), func(stored *Profile) error {
		next := p
		next.Release = cmp.Or(p.Release, p.Name)
		next.Bare, next.Content, next.Created, next.Updated = stored.Bare, stored.Content, stored.Created, b.cfg.Clock().UTC()
		*stored = next
		return nil
	})
}

// RemoveProfile deletes a profile and its content. It returns nil if the
// profile does not exist.
func (b *Bundles) RemoveProfile(ctx context.Context, k Key) error {
	var gone Profile
	err := b.profiles.DeleteIf(ctx, k.id(), func(p Profile) error {
		gone = p
		return nil
	})
	if err == nil {
		err = b.release(ctx, gone.Content)
	}
	return nf.IgnoreNotFound(err)
}

// UploadProfile stores the overlay of a profile: a gzipped tar with a
// manifest.yaml. It returns nf.NotFound if the profile does not exist,
// nf.Invalid or nf.TooLarge if the archive or its manifest is invalid, and
// nf.TooManyRequests as UploadDefinition.
func (b *Bundles) UploadProfile(ctx context.Context, k Key, content io.Reader) error {
	if _, err := b.profiles.Get(ctx, k.id()); err != nil {
		return err
	}
	accept := func(files render.Files) error {
		if _, err := readOverlay(files); err != nil {
			return nf.E(nf.KindOf(err), "use", "the profile's archive", err)
		}
		return nil
	}
	return b.upload(ctx, content, accept, func(ctx context.Context, fresh Content) (old Content, err error) {
		_, err = b.profiles.Update(ctx, k.id(), func(stored *Profile) error {
			old = stored.Content
			stored.Content, stored.Updated = fresh, b.cfg.Clock().UTC()
			return nil
		})
		return old, err
	})
}

// errNoContent is the cause when an operation needs content that was not
// uploaded.
var errNoContent = errors.New("it has no content; upload it first")
