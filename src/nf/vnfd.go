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
	Signed          bool              `json:"signed,omitempty"` // the signature of the manifest was verified
}

// PackageArtifact is an artifact that a CSAR lists.
type PackageArtifact struct {
	Path      string `json:"path"`                // in the CSAR, or a URL
	Algorithm string `json:"algorithm,omitempty"` // of the hash, such as SHA-256; empty: none is declared
	Hash      string `json:"hash,omitempty"`      // lower-case hexadecimal digits
	MediaType string `json:"media_type,omitempty"`
}
