package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Definition is a resource bundle definition: a chart and its description.
type Definition struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Chart       string            `json:"chart,omitempty"` // the folder in the content; empty: not known yet
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitzero"` // nil and empty differ
	Content     Content           `json:"content,omitzero"`
	Origin      *Origin           `json:"origin,omitempty"` // nil: uploaded by a client
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// Origin is the service of SDC that a definition was distributed with.
type Origin struct {
	Service string    `json:"service"`          // UUID of its version, the last that had the definition
	Models  []string  `json:"models,omitempty"` // UUIDs of the VF module's versions that had the definition, the latest last
	Deleted time.Time `json:"deleted,omitzero"` // when SDC deleted the service
}

func (d Definition) subject() string { return fmt.Sprintf("definition %q %q", d.Name, d.Version) }

func (d Definition) id() string { return join(d.Name, d.Version) }

// CreateDefinition stores a definition without content, and its profile
// default. It returns nf.Exists if there is a definition of that name and
// version.
func (b *Bundles) CreateDefinition(ctx context.Context, d Definition) (Definition, error) {
	if err := checkNames("create", d.subject(), [2]string{"rb-name", d.Name}, [2]string{"rb-version", d.Version}); err != nil {
		return Definition{}, err
	}
	_, err := b.definitions.Get(ctx, d.id())
	if err == nil {
		return Definition{}, nf.E(nf.Exists, "create", d.subject(), nil)
	}
	if nf.IgnoreNotFound(err) != nil {
		return Definition{}, err
	}
	// Order matters: a definition that exists always has its default profile.
	if err := b.resetDefault(ctx, d); err != nil {
		return Definition{}, err
	}
	d.Content, d.Created = Content{}, b.cfg.Clock().UTC()
	d.Updated = d.Created
	if err := b.definitions.Insert(ctx, d.id(), d); err != nil {
		return Definition{}, err
	}
	return d, nil
}

// Definition returns a definition, or nf.NotFound.
func (b *Bundles) Definition(ctx context.Context, name, version string) (Definition, error) {
	return b.definitions.Get(ctx, join(name, version))
}

// Definitions returns the definitions of a name, or all if the name is empty.
func (b *Bundles) Definitions(ctx context.Context, name string) ([]Definition, error) {
	if name == "" {
		return b.definitions.List(ctx, "")
	}
	return b.definitions.List(ctx, join(name)+"/")
}

// UpdateDefinition updates a definition's description and labels, or returns
// nf.NotFound. The chart changes only if d names one.
func (b *Bundles) UpdateDefinition(ctx context.Context, d Definition) (Definition, error) {
	return b.definitions.Update(ctx, d.id(), func(stored *Definition) error {
		if d.Chart != "" {
			stored.Chart = d.Chart
		}
		stored.Description, stored.Labels, stored.Updated = d.Description, d.Labels, b.cfg.Clock().UTC()
		return nil
	})
}

// RemoveDefinition deletes a definition, its content and its profile default.
// It returns nil if the definition does not exist. Packages composed from it
// remain while they are in use.
func (b *Bundles) RemoveDefinition(ctx context.Context, name, version string) error {
	var gone Definition
	err := b.definitions.DeleteIf(ctx, join(name, version), func(d Definition) error {
		gone = d
		return nil
	})
	if err == nil {
		err = b.release(ctx, gone.Content)
	}
	return errors.Join(nf.IgnoreNotFound(err), b.RemoveProfile(ctx, Key{name, version, defaultProfile}))
}

// UploadDefinition stores the content of a definition: a gzipped tar that
// contains a chart, in a folder or at the top level. If the definition names no
// chart, it uses the first folder by name that has a Chart.yaml. It returns
// nf.NotFound if the definition does not exist, and nf.Invalid or nf.TooLarge
// if the archive is invalid. It returns nf.Invalid with the reason "chart" if
// there is no chart, and nf.TooManyRequests if there is not enough memory. The content
// may be store.Staged.
func (b *Bundles) UploadDefinition(ctx context.Context, name, version string, content io.Reader) error {
	d, err := b.definitions.Get(ctx, join(name, version))
	if err != nil {
		return err
	}
	var found string
	accept := func(files render.Files) (err error) {
		found, err = wholeChart(files, d.Chart)
		return err
	}
	return b.upload(ctx, content, accept, func(ctx context.Context, fresh Content) (old Content, err error) {
		_, err = b.definitions.Update(ctx, d.id(), func(stored *Definition) error {
			old = stored.Content
			stored.Content, stored.Updated = fresh, b.cfg.Clock().UTC()
			if stored.Chart == "" {
				stored.Chart = found
			}
			return nil
		})
		return old, err
	})
}
