package nf

// VNFD is what a CSAR says about itself: its VNF descriptor, and its list of
// artifacts.
type VNFD struct {
	ID              string            `json:"id"` // descriptor_id
	Provider        string            `json:"provider"`
	Product         string            `json:"product"`
	SoftwareVersion string            `json:"software_version"`
	Version         string            `json:"version"` // descriptor_version
	Managers        []string          `json:"managers,omitempty"`
	Flavors         []string          `json:"flavors,omitempty"` // deployment flavors, sorted
	Files           []string          `json:"files"`             // of the descriptor; the first one is its entry
	Manifest        string            `json:"manifest,omitempty"`
	Artifacts       []PackageArtifact `json:"artifacts,omitempty"`
	Images          []SoftwareImage   `json:"images,omitempty"`
	Signed          bool              `json:"signed,omitempty"` // the signature of the manifest was verified
}

// SoftwareImage is an image that a VNF descriptor names: of a container or of a disk.
type SoftwareImage struct {
	ID              string `json:"id"` // of its node template
	Name            string `json:"name"`
	Version         string `json:"version"`
	Provider        string `json:"provider,omitempty"`
	Algorithm       string `json:"algorithm,omitempty"`
	Hash            string `json:"hash,omitempty"`
	ContainerFormat string `json:"container_format,omitempty"` // upper case, such as DOCKER
	DiskFormat      string `json:"disk_format,omitempty"`      // upper case, such as QCOW2
	MinDisk         int64  `json:"min_disk,omitempty"`         // bytes
	MinRAM          int64  `json:"min_ram,omitempty"`          // bytes
	Size            int64  `json:"size,omitempty"`             // bytes
	Path            string `json:"path,omitempty"`             // in the CSAR, or a reference to a registry
}

// PackageArtifact is an artifact that a CSAR lists.
type PackageArtifact struct {
	Path      string `json:"path"`                // in the CSAR, or a URL
	Algorithm string `json:"algorithm,omitempty"` // of the hash, such as SHA-256; empty: none is declared
	Hash      string `json:"hash,omitempty"`      // lower-case hexadecimal digits
	MediaType string `json:"media_type,omitempty"`

	Signature   string `json:"signature,omitempty"`   // file with a signature (CMS) of this artifact alone
	Certificate string `json:"certificate,omitempty"` // file with the certificate of the signature, unless it is in it
}
