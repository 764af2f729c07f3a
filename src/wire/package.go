package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Package is a package. Before its content is uploaded, it has neither a kind
// nor a digest, a size and a media type.
type Package struct {
	ID           string          `json:"csar_id"`
	Project      string          `json:"project"`
	State        nf.PackageState `json:"state"`
	Enabled      bool            `json:"enabled"`
	Name         string          `json:"name,omitempty"`
	Version      string          `json:"version,omitempty"`
	Description  string          `json:"description,omitempty"`
	UserData     map[string]any  `json:"user_data,omitempty"`
	Kind         string          `json:"kind,omitempty"`
	Source       string          `json:"source,omitempty"`
	Design       string          `json:"sdc_uuid,omitempty"`      // of the service or resource of SDC that it was fetched from
	Withdrawn    time.Time       `json:"sdc_deleted_at,omitzero"` // when SDC was found to have deleted it
	Digest       string          `json:"digest,omitempty"`
	Size         int64           `json:"size,omitempty"` // in bytes
	MediaType    string          `json:"media_type,omitempty"`
	Files        []string        `json:"files"`
	Variables    []Variable      `json:"variables"`
	Namespaces   []string        `json:"namespaces,omitempty"` // that its objects may be in, in addition to the instance's
	Warnings     []string        `json:"warnings"`
	VNFInstances []string        `json:"vnf_instances,omitzero"` // only for a single package
	More         bool            `json:"more_vnf_instances,omitempty"`
	Created      time.Time       `json:"created_at"`
	Updated      time.Time       `json:"updated_at"`
}

// Variable is a variable of a package.
type Variable struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required"`
	Sensitive   bool   `json:"sensitive"`
	Description string `json:"description,omitempty"`
}

// PackageOf converts a package without the instances that use it, with
// sensitive defaults masked.
func PackageOf(p nf.Package) Package {
	return Package{
		ID: p.ID, Project: nf.ProjectOf(p.Project), State: p.State(), Enabled: !p.Disabled, Name: p.Name, Version: p.Version, Description: p.Description,
		UserData: p.UserData, Kind: p.Kind, Source: p.Source, Design: p.Design, Withdrawn: p.Withdrawn, Digest: p.Digest, Size: p.Size, MediaType: p.MediaType, Files: notNil(p.Files),
		Variables: List(p.Variables, variableOf), Namespaces: p.Namespaces, Warnings: notNil(p.Warnings),
		Created: p.Created, Updated: p.Updated,
	}
}

func variableOf(v nf.Variable) Variable {
	if v.Sensitive && v.Default != nil {
		v.Default = nf.Masked
	}
	return Variable{
		Name: v.Name, Type: v.Type, Default: v.Default, Required: v.Required, Sensitive: v.Sensitive, Description: v.Description,
	}
}

// PackageCreate is a request for a package without an archive. With a chart, the
// server fetches the chart, which becomes the content of the package. Without
// one, the package has no content yet.
type PackageCreate struct {
	ID       string         `json:"csar_id,omitempty"`   // default is a new id
	Project  string         `json:"project,omitempty"`   // default "default"
	Name     string         `json:"name,omitempty"`      // until the content declares one; not with a chart
	UserData map[string]any `json:"user_data,omitempty"` // not with a chart
	Chart    *Chart         `json:"chart,omitempty"`
	Source   *PackageSource `json:"source,omitempty"` // not with a chart
}

// PackageSource is a catalog that the server fetches a chart from.
type PackageSource struct {
	SDC *SDCSource `json:"sdc"`
}

// SDCSource selects a chart or another package in SDC.
type SDCSource struct {
	Service  string `json:"service_uuid,omitempty"`      // of a version; or Resource
	Resource string `json:"resource_uuid,omitempty"`     // of a version
	Instance string `json:"resource_instance,omitempty"` // in the service; empty: any
	Artifact string `json:"artifact,omitempty"`          // its name; empty: any chart
}

// Chart is the chart that the server fetches.
type Chart struct {
	URL      string `json:"url"`                // oci://host/path/name, a chart repository, or an archive in one
	Name     string `json:"name,omitempty"`     // in the repository
	Version  string `json:"version,omitempty"`  // a version or a range; default is the highest release
	Digest   string `json:"digest,omitempty"`   // required SHA-256; empty: any
	Username string `json:"username,omitempty"` // may be empty
	Password string `json:"password,omitempty"` // a token if Username is empty
}

// PackageEdit holds the fields of a package that a merge patch may change.
type PackageEdit struct {
	Enabled  bool           `json:"enabled"`
	UserData map[string]any `json:"user_data,omitempty"`
}
