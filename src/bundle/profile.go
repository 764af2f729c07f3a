package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// defaultProfile is the profile that every definition comes with.
const defaultProfile = "default"

// Profile is a way to bring a definition up: where, under which name, and with
// which values and files over the chart's own.
type Profile struct {
	Definition  string            `json:"definition"` // its name
	Version     string            `json:"version"`    // of the definition
	Name        string            `json:"name"`
	Release     string            `json:"release"` // of instances that name none
	Namespace   string            `json:"namespace,omitempty"`
	KubeVersion string            `json:"kube_version,omitempty"` // what the chart is told; empty: the region's
	Labels      map[string]string `json:"labels,omitzero"`        // of every object; nil and empty are two values
	Extra       []Type            `json:"extra,omitzero"`         // what else belongs to an instance, by its label; likewise
	Bare        bool              `json:"bare,omitempty"`         // its overlay is empty, and nobody need upload one
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

// resetDefault makes the profile that a definition comes with, in the place of
// one that a definition of that name may have left behind.
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
	if nf.KindOf(err) == nf.Exists { // somebody creates the same definition beside us
		return nil
	}
	return err
}

// CreateProfile keeps a profile without content: nf.NotFound without its
// definition, nf.Exists when the definition has one of that name. A release that
// is not named has the name of the profile.
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

// Profiles returns the profiles of a definition, which need not exist any more.
func (b *Bundles) Profiles(ctx context.Context, name, version string) ([]Profile, error) {
	return b.profiles.List(ctx, join(name, version)+"/")
}

// UpdateProfile changes all that is said of a profile, or fails with
// nf.NotFound. Its content stays.
func (b *Bundles) UpdateProfile(ctx context.Context, p Profile) (Profile, error) {
	return b.profiles.Update(ctx, p.Key().id(), func(stored *Profile) error {
		next := p
		next.Release = cmp.Or(p.Release, p.Name)
		next.Bare, next.Content, next.Created, next.Updated = stored.Bare, stored.Content, stored.Created, b.cfg.Clock().UTC()
		*stored = next
		return nil
	})
}

// RemoveProfile forgets a profile and its content. That it is not there is no
// error.
func (b *Bundles) RemoveProfile(ctx context.Context, k Key) error {
	var gone Profile
	err := b.profiles.DeleteIf(ctx, k.id(), func(p Profile) error {
		gone = p
		return nil
	})
	if err == nil {
		err = b.release(ctx, gone.Content)
	}
	return nf.UnlessGone(err)
}

// UploadProfile keeps the overlay of a profile: a gzipped tar with a
// manifest.yaml. nf.NotFound without the profile; nf.Invalid or nf.TooLarge for
// an archive or a manifest that is wrong.
func (b *Bundles) UploadProfile(ctx context.Context, k Key, archive []byte) error {
	if _, err := b.profiles.Get(ctx, k.id()); err != nil {
		return err
	}
	files, err := b.open(archive)
	if err != nil {
		return err
	}
	if _, err := readOverlay(files); err != nil {
		return nf.E(nf.KindOf(err), "use", "the profile's archive", err)
	}
	return b.replace(ctx, archive, func(ctx context.Context, fresh Content) (old Content, err error) {
		_, err = b.profiles.Update(ctx, k.id(), func(stored *Profile) error {
			old = stored.Content
			stored.Content, stored.Updated = fresh, b.cfg.Clock().UTC()
			return nil
		})
		return old, err
	})
}

// errNoContent is the cause when something without content is asked for it.
var errNoContent = errors.New("it has no content: none was uploaded")
