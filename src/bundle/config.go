package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Has reports whether a composed package is there.
func (b *Bundles) Has(ctx context.Context, pkg string) (bool, error) {
	_, err := b.cfg.Packages.Package(ctx, pkg)
	return err == nil, nf.UnlessGone(err)
}

// history is how many versions of a configuration are kept, beside those that
// have a tag.
const history = 100

// ConfigKey names a configuration of an instance.
type ConfigKey struct {
	Instance string `json:"instance"` // as ONAP's API calls it
	// Generation is of the instance: an upgrade begins a new one, without any
	// configuration.
	Generation string `json:"generation"`
	Config     string `json:"config"`
}

func (k ConfigKey) id() string { return k.Instance + "/" + k.Generation + "/" + folded(k.Config) + "/" }

// Version is one version of a configuration. Versions are written once.
type Version struct {
	ConfigKey

	Number      int             `json:"number"` // from 1
	Deleted     bool            `json:"deleted,omitempty"`
	Template    string          `json:"template"`
	Package     string          `json:"package"` // what the template was then
	Description string          `json:"description,omitempty"`
	Values      json.RawMessage `json:"values"`              // as the client wrote them; of a deletion, those of the version that it repeats
	Repeats     int             `json:"repeats,omitempty"`   // of a deletion: the number of that version, when it is not the one before
	Sensitive   []string        `json:"sensitive,omitempty"` // names of values that are masked when shown
	Created     time.Time       `json:"created"`
}

// Deletion returns the version of a number that deletes what the configuration has
// applied, and repeats the values of v.
func (v Version) Deletion(number int) Version {
	out := v
	out.Number, out.Deleted, out.Repeats, out.Created = number, true, 0, time.Time{}
	if v.Number != number-1 {
		out.Repeats = v.Number
	}
	return out
}

func (v Version) id() string { return v.ConfigKey.id() + fmt.Sprintf("%010d", v.Number) }

// Tag is a name for a version of a configuration.
type Tag struct {
	ConfigKey

	Name   string `json:"name"`
	Number int    `json:"number"`
}

func (t Tag) id() string { return t.ConfigKey.id() + folded(t.Name) }

// Record adds a version to its configuration's history, and drops the version
// that is too old then. Recording a version again changes nothing.
func (l *Ledger) Record(ctx context.Context, v Version) error {
	err := l.versions.Insert(ctx, v.id(), v)
	if nf.KindOf(err) == nf.Exists {
		return nil
	}
	if err != nil || v.Number <= history {
		return err
	}
	tags, err := l.Tags(ctx, v.ConfigKey)
	if err != nil {
		return err
	}
	old := Version{ConfigKey: v.ConfigKey, Number: v.Number - history}
	for _, t := range tags {
		if t.Number == old.Number {
			return nil
		}
	}
	return nf.UnlessGone(l.versions.Delete(ctx, old.id()))
}

// Version returns one version of a configuration, or nf.NotFound.
func (l *Ledger) Version(ctx context.Context, k ConfigKey, number int) (Version, error) {
	v, err := l.versions.Get(ctx, Version{ConfigKey: k, Number: number}.id())
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.NotFound, "get", fmt.Sprintf("version %d of configuration %q", number, k.Config), nil)
	}
	return v, err
}

// Versions returns the versions of a configuration that are kept, ascending.
func (l *Ledger) Versions(ctx context.Context, k ConfigKey) ([]Version, error) {
	return l.versions.List(ctx, k.id())
}

// SetTag gives a version a name, which may have been another's.
func (l *Ledger) SetTag(ctx context.Context, t Tag) error {
	if t.Name == "" {
		return nf.E(nf.Invalid, "tag", fmt.Sprintf("configuration %q", t.Config), errors.New("the tag has no name"))
	}
	return l.tags.Put(ctx, t.id(), t)
}

// Tag returns the tag of a name, or nf.NotFound.
func (l *Ledger) Tag(ctx context.Context, k ConfigKey, name string) (Tag, error) {
	t, err := l.tags.Get(ctx, Tag{ConfigKey: k, Name: name}.id())
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.NotFound, "get", fmt.Sprintf("tag %q of configuration %q", name, k.Config), nil)
	}
	return t, err
}

// Tags returns the tags of a configuration.
func (l *Ledger) Tags(ctx context.Context, k ConfigKey) ([]Tag, error) {
	return l.tags.List(ctx, k.id())
}

// Forget drops the history and the tags of a configuration.
func (l *Ledger) Forget(ctx context.Context, k ConfigKey) error {
	return l.drop(ctx, k.id(), func(ConfigKey) bool { return true })
}

// ForgetFormer drops what is remembered of an instance's configurations, but for
// those of one generation.
func (l *Ledger) ForgetFormer(ctx context.Context, instance, generation string) error {
	return l.drop(ctx, instance+"/", func(k ConfigKey) bool { return k.Generation != generation })
}

// drop deletes the versions and tags below a prefix whose key is so.
func (l *Ledger) drop(ctx context.Context, prefix string, so func(ConfigKey) bool) error {
	for v, err := range l.versions.All(ctx, prefix) {
		if err == nil && so(v.ConfigKey) {
			err = nf.UnlessGone(l.versions.Delete(ctx, v.id()))
		}
		if err != nil {
			return err
		}
	}
	for t, err := range l.tags.All(ctx, prefix) {
		if err == nil && so(t.ConfigKey) {
			err = nf.UnlessGone(l.tags.Delete(ctx, t.id()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
