package nf

import "time"

// Package is a deployable unit: a CSAR of ordered artifacts. Its content is a
// blob, addressed by the digest.
type Package struct {
	ID          string     `json:"id"` // the csar_id
	Name        string     `json:"name,omitempty"`
	Version     string     `json:"version,omitempty"`
	Description string     `json:"description,omitempty"`
	Kind        string     `json:"kind"`             // the renderer for it: "manifest" or "helm"
	Digest      string     `json:"digest"`           // "sha256:<hex>" of the archive's bytes
	Source      string     `json:"source,omitempty"` // where the service fetched it from, without credentials
	Upload      string     `json:"upload"`           // name of the upload that holds the content in the store
	Size        int64      `json:"size"`             // bytes of the archive
	MediaType   string     `json:"media_type"`
	Files       []string   `json:"files"` // files of the archive, sorted
	Variables   []Variable `json:"variables,omitempty"`
	Namespaces  []string   `json:"namespaces,omitempty"` // that it opens, in addition to the instance's own
	Warnings    []string   `json:"warnings,omitempty"`
	Removing    string     `json:"removing,omitempty"` // the running attempt to remove it
	Project     string     `json:"project,omitempty"`  // the tenant; empty: DefaultProject
	Request     RequestKey `json:"request,omitzero"`   // the client's key for the upload
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
}

// Variable is a variable that a package declares in its metadata.
type Variable struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // one of string, integer, number, boolean, object, array
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Sensitive   bool   `json:"sensitive,omitempty"` // masked wherever parameters are shown
	Description string `json:"description,omitempty"`
}
