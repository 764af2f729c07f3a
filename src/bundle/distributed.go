package bundle

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// maxModels is the number of versions of a VF module that a definition remembers.
const maxModels = 20

// Distributed stores definitions that SDC distributes. It is safe for concurrent use.
type Distributed struct{ bundles *Bundles }

// NewDistributed returns the distributed definitions among bundles.
func NewDistributed(b *Bundles) Distributed { return Distributed{b} }

// PutDefinition makes a definition have a chart and a description, and reports whether
// its content has changed. It creates the definition with its profile default, if there
// is none. Check validates the files of the chart, in addition to UploadDefinition, whose
// errors PutDefinition returns. If it fails, nothing is stored. New instances use the new
// content; instances that exist keep theirs.
func (ds Distributed) PutDefinition(ctx context.Context, d Definition, content io.Reader, check func(context.Context, render.Files) error) (changed bool, err error) {
	if err := checkNames("store", d.subject(), [2]string{"rb-name", d.Name}, [2]string{"rb-version", d.Version}); err != nil {
		return false, err
	}
	b := ds.bundles
	staged, done, err := b.blobs.Take(ctx, content, b.cfg.Limits.Archive)
	if err != nil {
		return false, err
	}
	defer done()
	there, err := b.definitions.Get(ctx, d.id())
	if nf.IgnoreNotFound(err) != nil {
		return false, err
	}
	if there.Content.Digest == staged.Digest() {
		return false, ds.describe(ctx, d)
	}
	accept := func(files render.Files) (err error) {
		if d.Chart, err = chartIn(files, ""); err != nil {
			return err
		}
		if files, err = chartFiles(files, d.Chart); err != nil {
			return err
		}
		return check(ctx, files)
	}
	err = b.upload(ctx, staged, accept, func(ctx context.Context, fresh Content) (Content, error) {
		return ds.replace(ctx, d, fresh)
	})
	return err == nil, err
}

// replace writes a definition with new content, and returns the content that it had.
func (ds Distributed) replace(ctx context.Context, d Definition, fresh Content) (old Content, err error) {
	b := ds.bundles
	d.Content = Content{}
	_, err = b.CreateDefinition(ctx, d)
	created := err == nil
	if !created && nf.KindOf(err) != nf.Exists {
		return Content{}, err
	}
	_, err = b.definitions.Update(ctx, d.id(), func(stored *Definition) error {
		old = stored.Content
		stored.Content, stored.Chart = fresh, d.Chart
		d.distributed(stored, b.cfg.Clock())
		return nil
	})
	if err != nil && created {
		err = errors.Join(err, ds.withdraw(context.WithoutCancel(ctx), d, fresh)) // also if the context has ended
	}
	return old, err
}

// withdraw deletes a definition that has just been created, its default profile, and its
// content. It does nothing if the definition has got other content than fresh in the meantime.
func (ds Distributed) withdraw(ctx context.Context, d Definition, fresh Content) error {
	var used bool
	err := ds.bundles.definitions.DeleteWhere(ctx, d.id(), func(stored Definition) bool {
		// A failed write can have stored fresh.
		used = stored.Content != (Content{}) && stored.Content != fresh
		return !used
	})
	if err != nil || used {
		return err
	}
	return errors.Join(ds.bundles.RemoveProfile(ctx, Key{d.Name, d.Version, defaultProfile}), ds.bundles.release(ctx, fresh))
}

// describe updates the description and the origin of a definition.
func (ds Distributed) describe(ctx context.Context, d Definition) error {
	b := ds.bundles
	_, err := b.definitions.Update(ctx, d.id(), func(stored *Definition) error {
		d.distributed(stored, b.cfg.Clock())
		return nil
	})
	return err
}

// distributed updates a stored definition by d, which was distributed.
func (d Definition) distributed(stored *Definition, now time.Time) {
	var models []string
	if stored.Origin != nil {
		models = stored.Origin.Models
	}
	stored.Description, stored.Labels, stored.Updated = d.Description, d.Labels, now.UTC()
	if d.Origin == nil {
		return
	}
	origin := *d.Origin
	models = slices.DeleteFunc(slices.Clone(models), func(id string) bool { return slices.Contains(origin.Models, id) })
	origin.Models = append(models, origin.Models...)
	origin.Models = origin.Models[max(len(origin.Models)-maxModels, 0):]
	stored.Origin = &origin
}

// MarkDeleted marks the definitions of a service that SDC has deleted, and returns their
// number. The definitions stay.
func (ds Distributed) MarkDeleted(ctx context.Context, service string) (n int, err error) {
	b := ds.bundles
	for d, err := range b.definitions.All(ctx, "") {
		if err != nil {
			return n, err
		}
		if d.Origin == nil || d.Origin.Service != service || !d.Origin.Deleted.IsZero() {
			continue
		}
		_, err := b.definitions.Update(ctx, d.id(), func(stored *Definition) error {
			if stored.Origin != nil && stored.Origin.Service == service {
				origin := *stored.Origin
				origin.Deleted = b.cfg.Clock().UTC()
				stored.Origin = &origin
			}
			return nil
		})
		if nf.IgnoreNotFound(err) != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Designs returns the UUIDs of the versions of services of SDC that definitions have, and
// that SDC has not deleted as far as is known.
func (ds Distributed) Designs(ctx context.Context) ([]string, error) {
	var out []string
	for d, err := range ds.bundles.definitions.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		if d.Origin != nil && d.Origin.Deleted.IsZero() && !slices.Contains(out, d.Origin.Service) {
			out = append(out, d.Origin.Service)
		}
	}
	return out, nil
}
