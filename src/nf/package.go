package nf

import (
	"encoding/json"
	"fmt"
	"time"
)

// Package is a deployable unit: a CSAR of ordered artifacts. Its content is a
// blob, addressed by the digest. A package can exist before its content.
type Package struct {
	ID          string             `json:"id"` // the csar_id
	Name        string             `json:"name,omitempty"`
	Version     string             `json:"version,omitempty"`
	Description string             `json:"description,omitempty"`
	UserData    map[string]any     `json:"user_data,omitempty"` // chosen by the client; the service does not interpret it
	Kind        string             `json:"kind,omitempty"`      // name of its renderer; empty: no content yet
	Digest      string             `json:"digest,omitempty"`    // "sha256:<hex>" of the archive's bytes; empty: no content yet
	Source      string             `json:"source,omitempty"`    // where the service fetched it from, without credentials
	Design      string             `json:"design,omitempty"`    // UUID of the version of the service or resource of SDC that it was fetched from
	Withdrawn   time.Time          `json:"withdrawn,omitzero"`  // when SDC was found to have deleted Design
	Upload      string             `json:"upload,omitempty"`    // name of the upload that holds the content in the store
	Size        int64              `json:"size,omitempty"`      // bytes of the archive
	MediaType   string             `json:"media_type,omitempty"`
	Files       []string           `json:"files,omitempty"` // files of the archive, sorted
	Variables   []Variable         `json:"variables,omitempty"`
	Namespaces  []string           `json:"namespaces,omitempty"` // that it opens, in addition to the instance's own
	Warnings    []string           `json:"warnings,omitempty"`
	VNFD        *VNFD              `json:"vnfd,omitempty"`       // of a CSAR; nil: it has none
	Onboarding  *Onboarding        `json:"onboarding,omitempty"` // the content that is being received and checked; nil: none
	Failure     *OnboardingFailure `json:"failure,omitempty"`    // of the last attempt to give it content; nil: none, or it has content
	Disabled    bool               `json:"disabled,omitempty"`   // nothing new is deployed from it
	Removing    string             `json:"removing,omitempty"`   // the running attempt to remove it
	Project     string             `json:"project,omitempty"`    // the tenant; empty: DefaultProject
	Request     RequestKey         `json:"request,omitzero"`     // the client's key for the creation
	Created     time.Time          `json:"created"`
	Updated     time.Time          `json:"updated"`
}

// State returns whether the package has content.
func (p Package) State() PackageState {
	if p.Digest == "" {
		return PackageCreated
	}
	return PackageOnboarded
}

// StateAt returns State or, while the first content is being received and checked,
// PackageUploading or PackageProcessing.
func (p Package) StateAt(now time.Time) PackageState {
	if state := p.State(); state != PackageCreated || p.Onboarding == nil || !now.Before(p.Onboarding.Until) {
		return state
	}
	return p.Onboarding.State
}

// Onboarding is an attempt to give a package its first content. It ends with its
// process, or when it is not renewed in time.
type Onboarding struct {
	Attempt string       `json:"attempt"` // its id
	State   PackageState `json:"state"`   // PackageUploading or PackageProcessing
	Until   time.Time    `json:"until"`   // then it has ended
}

// OnboardingFailure is why an attempt to give a package its first content failed.
type OnboardingFailure struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
}

// PackageState says whether a package has content.
type PackageState string

// The states of a package.
const (
	PackageCreated    PackageState = "created"    // it has no content yet, so it cannot be used
	PackageUploading  PackageState = "uploading"  // its content is being received
	PackageProcessing PackageState = "processing" // its content is being checked
	PackageOnboarded  PackageState = "onboarded"  // its content was checked and stored
)

// MaxUserData limits the user data of a package: bytes of its JSON form.
const MaxUserData = 16 << 10

// CheckUserData returns a violation if the user data of a package is too large
// or has a number that JSON would change.
func CheckUserData(field string, values map[string]any) Violations {
	v := checkNumbers(field, values)
	switch raw, err := json.Marshal(values); {
	case err != nil:
		v = append(v, Violation{Field: field, Message: "is not JSON"})
	case len(raw) > MaxUserData:
		v = append(v, Violation{Field: field, Message: fmt.Sprintf("is longer than %d bytes", MaxUserData)})
	}
	return v
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
