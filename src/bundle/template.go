package bundle

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Template is a configuration template: a chart for the day-2 configuration of
// a definition's instances. Without content, the definition's chart is used.
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

// CreateTemplate stores a template without content. It returns nf.NotFound if
// the definition does not exist, and nf.Exists if it has a template of that
// name.
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

// UpdateTemplate updates the description of a template, or returns nf.NotFound.
func (b *Bundles) UpdateTemplate(ctx context.Context, t Template) (Template, error) {
	return b.templates.Update(ctx, t.Key().id(), func(stored *Template) error {
		stored.Description, stored.Updated = t.Description, b.cfg.Clock().UTC()
		return nil
	})
}

// RemoveTemplate deletes a template and its content. It returns nil if the
// template does not exist.
func (b *Bundles) RemoveTemplate(ctx context.Context, k TemplateKey) error {
	var gone Template
	err := b.templates.DeleteIf(ctx, k.id(), func(t Template) error {
		gone = t
		return nil
	})
	if err == nil {
		err = b.release(ctx, gone.Content)
	}
	return nf.IgnoreNotFound(err)
}

// UploadTemplate stores the chart of a template: a gzipped tar with a
// Chart.yaml, in a folder or at the top level. Errors are those of
// UploadDefinition.
func (b *Bundles) UploadTemplate(ctx context.Context, k TemplateKey, content io.Reader) error {
	if _, err := b.templates.Get(ctx, k.id()); err != nil {
		return err
	}
	var chart string
	accept := func(files render.Files) (err error) {
		chart, err = wholeChart(files, "")
		return err
	}
	return b.upload(ctx, content, accept, func(ctx context.Context, fresh Content) (old Content, err error) {
		_, err = b.templates.Update(ctx, k.id(), func(stored *Template) error {
			old = stored.Content
			stored.Content, stored.Chart, stored.Updated = fresh, chart, b.cfg.Clock().UTC()
			return nil
		})
		return old, err
	})
}

// has reports whether a template has its own chart.
func (t Template) has() bool { return t.Content != Content{} }

// withoutContent returns the error for using an object without content.
func withoutContent(subject string) error {
	return nf.E(nf.Conflict, "use", subject, errNoContent)
}
