package onap

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Bundles gives access to resource bundles with the permissions of the caller in
// the context. Its methods return nf.Forbidden, nf.Unauthenticated, or what the
// caller may use.
type Bundles interface {
	// Read returns the bundles for reading. The names are those in the request,
	// for the audit log.
	Read(ctx context.Context, names ...string) (BundleReader, error)
	// Write returns the bundles for changes.
	Write(ctx context.Context, names ...string) (BundleWriter, error)
	// ForNew returns the composer of packages for a new instance of a project in a region.
	ForNew(ctx context.Context, project, region string) (Composer, error)
	// ForChange returns the composer of packages for a change of an instance.
	ForChange(ctx context.Context, in nf.Instance) (Composer, error)
}

// BundleReader reads resource bundles. Its methods are those of bundle.Bundles.
type BundleReader interface {
	Definition(ctx context.Context, name, version string) (bundle.Definition, error)
	Definitions(ctx context.Context, name string) ([]bundle.Definition, error)
	ProfileReader
	Template(ctx context.Context, k bundle.TemplateKey) (bundle.Template, error)
	Templates(ctx context.Context, name, version string) ([]bundle.Template, error)
}

// ProfileReader reads profiles.
type ProfileReader interface {
	Profile(ctx context.Context, k bundle.Key) (bundle.Profile, error)
	Profiles(ctx context.Context, name, version string) ([]bundle.Profile, error)
}

// BundleWriter changes resource bundles.
type BundleWriter interface {
	DefinitionWriter
	ProfileWriter
	TemplateWriter
}

// DefinitionWriter changes definitions.
type DefinitionWriter interface {
	CreateDefinition(ctx context.Context, d bundle.Definition) (bundle.Definition, error)
	UpdateDefinition(ctx context.Context, d bundle.Definition) (bundle.Definition, error)
	RemoveDefinition(ctx context.Context, name, version string) error
	UploadDefinition(ctx context.Context, name, version string, content io.Reader) error
}

// ProfileWriter changes profiles.
type ProfileWriter interface {
	CreateProfile(ctx context.Context, p bundle.Profile) (bundle.Profile, error)
	UpdateProfile(ctx context.Context, p bundle.Profile) (bundle.Profile, error)
	RemoveProfile(ctx context.Context, k bundle.Key) error
	UploadProfile(ctx context.Context, k bundle.Key, content io.Reader) error
}

// TemplateWriter changes configuration templates.
type TemplateWriter interface {
	CreateTemplate(ctx context.Context, t bundle.Template) (bundle.Template, error)
	UpdateTemplate(ctx context.Context, t bundle.Template) (bundle.Template, error)
	RemoveTemplate(ctx context.Context, k bundle.TemplateKey) error
	UploadTemplate(ctx context.Context, k bundle.TemplateKey, content io.Reader) error
}

// Composer composes packages from bundles.
type Composer interface {
	Profile(ctx context.Context, k bundle.Key) (bundle.Profile, error)
	Compose(ctx context.Context, k bundle.Key) (bundle.Composed, error)
	ComposeTemplate(ctx context.Context, k bundle.Key, template string) (string, error)
	Has(ctx context.Context, pkg string) (bool, error)
}

// Connections gives access to the connections to regions with the permissions of
// the caller in the context.
type Connections interface {
	// Connection returns a region and the connection to it, or nf.NotFound. A
	// caller that may not change the region gets neither its access nor secrets.
	Connection(ctx context.Context, region string) (nf.Region, bundle.Connection, error)
	Put(ctx context.Context, region string, c bundle.Connection) error
	Remove(ctx context.Context, region string) error
}

// Aliases resolves the ids that this API assigned to instances.
type Aliases interface {
	Alias(ctx context.Context, id string) (bundle.Alias, error)
}

// Records gives access to what this API stores of instances with the permissions
// of the caller in the context.
type Records interface {
	Read(ctx context.Context, in nf.Instance) (RecordReader, error)
	Change(ctx context.Context, in nf.Instance) (RecordWriter, error)
}

// RecordReader reads the history of configurations, and test runs. Its methods
// are those of bundle.InstanceRecords.
type RecordReader interface {
	HistoryReader
	Run(ctx context.Context, instance, id string) (bundle.Run, error)
	Runs(ctx context.Context, instance string) ([]bundle.Run, error)
}

// HistoryReader reads the history of configurations.
type HistoryReader interface {
	Version(ctx context.Context, k bundle.ConfigKey, number int) (bundle.Version, error)
	Versions(ctx context.Context, k bundle.ConfigKey) ([]bundle.Version, error)
	Tag(ctx context.Context, k bundle.ConfigKey, name string) (bundle.Tag, error)
	Tags(ctx context.Context, k bundle.ConfigKey) ([]bundle.Tag, error)
}

// RecordWriter reads and changes what RecordReader reads, and moves instances.
type RecordWriter interface {
	RecordReader
	HistoryWriter
	Realias(ctx context.Context, id string, edit func(*bundle.Alias) error) (bundle.Alias, error)
	AddRun(ctx context.Context, r bundle.Run) error
	DeleteRun(ctx context.Context, r bundle.Run) error
}

// HistoryWriter changes the history of configurations.
type HistoryWriter interface {
	Record(ctx context.Context, v bundle.Version) error
	SetTag(ctx context.Context, t bundle.Tag) error
	DeleteConfig(ctx context.Context, k bundle.ConfigKey) error
	DeleteFormerConfigs(ctx context.Context, instance, generation string) error
}
