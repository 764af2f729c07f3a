package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Has reports whether a composed package exists.
func (b *Bundles) Has(ctx context.Context, pkg string) (bool, error) {
	_, err := b.cfg.Packages.Package(ctx, pkg)
	return err == nil, nf.IgnoreNotFound(err)
}

// history is the number of versions kept of a configuration, in addition to
// tagged ones.
const history = 100

// ConfigKey identifies a configuration of an instance.
type ConfigKey struct {
	Instance string `json:"instance"` // the id in ONAP's API
	// Generation is the instance's generation. An upgrade starts a new one,
	// without configurations.
	Generation string `json:"generation"`
	Config     string `json:"config"`
}

func (k ConfigKey) id() string { return k.Instance + "/" + k.Generation + "/" + folded(k.Config) + "/" }

// Version is one version of a configuration. Versions are immutable.
type Version struct {
	ConfigKey

	Number      int             `json:"number"` // from 1
	Deleted     bool            `json:"deleted,omitempty"`
	Template    string          `json:"template"`
	Package     string          `json:"package"` // the template's package at that time
	Description string          `json:"description,omitempty"`
	Values      json.RawMessage `json:"values"`              // as the client sent them; of a deletion, those of the version that it repeats
	Repeats     int             `json:"repeats,omitempty"`   // of a deletion: number of the repeated version if it is not the previous one
	Sensitive   []string        `json:"sensitive,omitempty"` // names of values that are masked when shown
	Created     time.Time       `json:"created"`
}

// Deletion returns a version with the given number that deletes the
// configuration's objects and repeats the values of v.
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

// Record adds a version to its configuration's history, and deletes the
// untagged version that falls out of it. Recording a version again has no
// effect.
func (ir *InstanceRecords) Record(ctx context.Context, v Version) error {
	err := ir.versions.Insert(ctx, v.id(), v)
	if nf.KindOf(err) == nf.Exists {
		return nil
	}
	if err != nil || v.Number <= history {
		return err
	}
	tags, err := ir.Tags(ctx, v.ConfigKey)
	if err != nil {
		return err
	}
	old := Version{ConfigKey: v.ConfigKey, Number: v.Number - history}
	for _, t := range tags {
		if t.Number == old.Number {
			return nil
		}
	}
	return nf.IgnoreNotFound(ir.versions.Delete(ctx, old.id()))
}

// Version returns one version of a configuration, or nf.NotFound.
func (ir *InstanceRecords) Version(ctx context.Context, k ConfigKey, number int) (Version, error) {
	v, err := ir.versions.Get(ctx, Version{ConfigKey: k, Number: number}.id())
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.NotFound, "get", fmt.Sprintf("version %d of configuration %q", number, k.Config), nil)
	}
	return v, err
}

// Versions returns the stored versions of a configuration in ascending order.
func (ir *InstanceRecords) Versions(ctx context.Context, k ConfigKey) ([]Version, error) {
	return ir.versions.List(ctx, k.id())
}

// SetTag tags a version. A tag of that name is moved from the version that had
// it.
func (ir *InstanceRecords) SetTag(ctx context.Context, t Tag) error {
	if t.Name == "" {
		return nf.E(nf.Invalid, "tag", fmt.Sprintf("configuration %q", t.Config), errors.New("the tag has no name"))
	}
	return ir.tags.Put(ctx, t.id(), t)
}

// Tag returns the tag of a name, or nf.NotFound.
func (ir *InstanceRecords) Tag(ctx context.Context, k ConfigKey, name string) (Tag, error) {
	t, err := ir.tags.Get(ctx, Tag{ConfigKey: k, Name: name}.id())
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.NotFound, "get", fmt.Sprintf("tag %q of configuration %q", name, k.Config), nil)
	}
	return t, err
}

// Tags returns the tags of a configuration.
func (ir *InstanceRecords) Tags(ctx context.Context, k ConfigKey) ([]Tag, error) {
	return ir.tags.List(ctx, k.id())
}

// DeleteConfig deletes the history and the tags of a configuration.
func (ir *InstanceRecords) DeleteConfig(ctx context.Context, k ConfigKey) error {
	return ir.drop(ctx, k.id(), func(ConfigKey) bool { return true })
}

// DeleteFormerConfigs deletes the history and the tags of an instance's
// configurations, except those of the given generation.
func (ir *InstanceRecords) DeleteFormerConfigs(ctx context.Context, instance, generation string) error {
	return ir.drop(ctx, instance+"/", func(k ConfigKey) bool { return k.Generation != generation })
}

// drop deletes the versions and tags below a prefix whose key satisfies so.
func (ir *InstanceRecords) drop(ctx context.Context, prefix string, so func(ConfigKey) bool) error {
	for v, err := range ir.versions.All(ctx, prefix) {
		if err == nil && so(v.ConfigKey) {
			err = nf.IgnoreNotFound(ir.versions.Delete(ctx, v.id()))
		}
		if err != nil {
			return err
		}
	}
	for t, err := range ir.tags.All(ctx, prefix) {
		if err == nil && so(t.ConfigKey) {
			err = nf.IgnoreNotFound(ir.tags.Delete(ctx, t.id()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
