package bundle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Definition is a resource bundle definition: a chart, and what is said of it.
type Definition struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Chart       string            `json:"chart,omitempty"` // the folder in the content; empty until it is known
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitzero"` // nil and empty are two values
	Content     Content           `json:"content,omitzero"`
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

func (d Definition) subject() string { return fmt.Sprintf("definition %q %q", d.Name, d.Version) }

func (d Definition) id() string { return join(d.Name, d.Version) }

// CreateDefinition keeps a definition without content, and its profile default
// with it; nf.Exists when there is one of that name and version.
func (b *Bundles) CreateDefinition(ctx context.Context, d Definition) (Definition, error) {
	if err := checkNames("create", d.subject(), [2]string{"rb-name", d.Name}, [2]string{"rb-version", d.Version}); err != nil {
		return Definition{}, err
	}
	_, err := b.definitions.Get(ctx, d.id())
	if err == nil {
		return Definition{}, nf.E(nf.Exists, "create", d.subject(), nil)
	}
	if nf.UnlessGone(err) != nil {
		return Definition{}, err
	}
	// The profile comes first: who finds the definition finds it, too.
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

// Definitions returns the definitions of a name, or every one when it is empty.
func (b *Bundles) Definitions(ctx context.Context, name string) ([]Definition, error) {
	if name == "" {
		return b.definitions.List(ctx, "")
	}
	return b.definitions.List(ctx, join(name)+"/")
}

// UpdateDefinition changes what is said of a definition, or fails with
// nf.NotFound. A chart that is not named stays the one that is known.
func (b *Bundles) UpdateDefinition(ctx context.Context, d Definition) (Definition, error) {
	return b.definitions.Update(ctx, d.id(), func(stored *Definition) error {
		if d.Chart != "" {
			stored.Chart = d.Chart
		}
		stored.Description, stored.Labels, stored.Updated = d.Description, d.Labels, b.cfg.Clock().UTC()
		return nil
	})
}

// RemoveDefinition forgets a definition, its content and its profile default.
// That it is not there is no error. What was composed of it stays for as long as
// it is used.
func (b *Bundles) RemoveDefinition(ctx context.Context, name, version string) error {
	var gone Definition
	err := b.definitions.DeleteIf(ctx, join(name, version), func(d Definition) error {
		gone = d
		return nil
	})
	if err == nil {
		err = b.release(ctx, gone.Content)
	}
	return errors.Join(nf.UnlessGone(err), b.RemoveProfile(ctx, Key{name, version, defaultProfile}))
}

// UploadDefinition keeps the content of a definition: a gzipped tar that holds
// the folder of a chart. The chart of a definition that names none is the first
// folder, by name, that has a Chart.yaml. nf.NotFound without the definition,
// nf.Invalid or nf.TooLarge for a wrong archive, nf.Invalid with the reason
// "chart" when it holds no chart.
func (b *Bundles) UploadDefinition(ctx context.Context, name, version string, archive []byte) error {
	d, err := b.definitions.Get(ctx, join(name, version))
	if err != nil {
		return err
	}
	files, err := b.open(archive)
	if err != nil {
		return err
	}
	found, err := chartIn(files, d.Chart)
	if err != nil {
		return err
	}
	return b.replace(ctx, archive, func(ctx context.Context, fresh Content) (old Content, err error) {
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
