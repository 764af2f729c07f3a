package bundle

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Template is a configuration template: a chart for the day-2 configuration of
// the instances of a definition. Without content, the definition's chart is it.
type Template struct {
	Definition  string    `json:"definition"` // its name
	Version     string    `json:"version"`    // of the definition
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Chart       string    `json:"chart,omitempty"` // the folder in the content
	Content     Content   `json:"content,omitzero"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
}

// Key returns the template's key.
func (t Template) Key() TemplateKey { return TemplateKey{t.Definition, t.Version, t.Name} }

func (t Template) subject() string {
	return fmt.Sprintf("config template %q of definition %q %q", t.Name, t.Definition, t.Version)
}

// CreateTemplate keeps a template without content: nf.NotFound without its
// definition, nf.Exists when the definition has one of that name.
func (b *Bundles) CreateTemplate(ctx context.Context, t Template) (Template, error) {
	if err := checkNames("create", t.subject(), [2]string{"template-name", t.Name}); err != nil {
		return Template{}, err
	}
	if _, err := b.Definition(ctx, t.Definition, t.Version); err != nil {
		return Template{}, err
	}
	t.Chart, t.Content, t.Created = "", Content{}, b.cfg.Clock().UTC()
	t.Updated = t.Created
	if err := b.templates.Insert(ctx, t.Key().id(), t); err != nil {
		return Template{}, err
	}
	return t, nil
}

// Template returns a template, or nf.NotFound.
func (b *Bundles) Template(ctx context.Context, k TemplateKey) (Template, error) {
	return b.templates.Get(ctx, k.id())
}

// Templates returns the templates of a definition.
func (b *Bundles) Templates(ctx context.Context, name, version string) ([]Template, error) {
	return b.templates.List(ctx, join(name, version)+"/")
}

// UpdateTemplate changes the description of a template, or fails with
// nf.NotFound.
func (b *Bundles) UpdateTemplate(ctx context.Context, t Template) (Template, error) {
	return b.templates.Update(ctx, t.Key().id(), func(stored *Template) error {
		stored.Description, stored.Updated = t.Description, b.cfg.Clock().UTC()
		return nil
	})
}

// RemoveTemplate forgets a template and its content. That it is not there is no
// error.
func (b *Bundles) RemoveTemplate(ctx context.Context, k TemplateKey) error {
	var gone Template
	err := b.templates.DeleteIf(ctx, k.id(), func(t Template) error {
		gone = t
		return nil
	})
	if err == nil {
		err = b.release(ctx, gone.Content)
	}
	return nf.UnlessGone(err)
}

// UploadTemplate keeps the chart of a template: a gzipped tar with a folder that
// has a Chart.yaml. Errors are those of UploadDefinition.
func (b *Bundles) UploadTemplate(ctx context.Context, k TemplateKey, archive []byte) error {
	if _, err := b.templates.Get(ctx, k.id()); err != nil {
		return err
	}
	files, err := b.open(archive)
	if err != nil {
		return err
	}
	chart, err := chartIn(files, "")
	if err != nil {
		return err
	}
	return b.replace(ctx, archive, func(ctx context.Context, fresh Content) (old Content, err error) {
		_, err = b.templates.Update(ctx, k.id(), func(stored *Template) error {
			old = stored.Content
			stored.Content, stored.Chart, stored.Updated = fresh, chart, b.cfg.Clock().UTC()
			return nil
		})
		return old, err
	})
}

// has reports whether a template has a chart of its own.
func (t Template) has() bool { return t.Content != Content{} }

// withoutContent refuses to use what has no content.
func withoutContent(subject string) error {
	return nf.E(nf.Conflict, "use", subject, errNoContent)
}
