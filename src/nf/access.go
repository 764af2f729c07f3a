package nf

import "cmp"

// DefaultProject is the project of objects that were created without naming
// one.
const DefaultProject = "default"

// ProjectOf returns the project by its name, which may be empty in records.
func ProjectOf(project string) string { return cmp.Or(project, DefaultProject) }

// Identity is the caller of a request.
type Identity struct {
	Name   string   // unique within its kind
	Kind   string   // how it was authenticated: "user", "token", "certificate", "oidc", "keystone"; "anonymous" when access is open
	Groups []string // as asserted by the authentication source
	// Project is that of the token, and of what the caller creates without naming one;
	// empty: the caller has none. Only tokens of Keystone have one.
	Project string
}

// Permission is the right to one kind of request.
type Permission string

// The permissions. Reading includes lists, health and dry runs.
const (
	ReadRegion      Permission = "region:read"
	WriteRegion     Permission = "region:write" // register, update, remove
	ReadPackage     Permission = "package:read"
	WritePackage    Permission = "package:write"
	ReadInstance    Permission = "instance:read"
	CreateInstance  Permission = "instance:instantiate"
	ChangeInstance  Permission = "instance:change" // upgrade, roll back, retry, undo, cancel
	RemoveInstance  Permission = "instance:terminate"
	ReadNetwork     Permission = "network:read"  // includes attaching to it
	WriteNetwork    Permission = "network:write" // create, change, release
	ReadVolume      Permission = "volume:read"   // includes using it
	WriteVolume     Permission = "volume:write"  // create, change, release
	ReadAudit       Permission = "audit:read"
	AdministerStore Permission = "store:admin" // keys and backups
)

// Permissions lists every permission.
func Permissions() []Permission {
	return []Permission{ReadRegion, WriteRegion, ReadPackage, WritePackage, ReadInstance, CreateInstance,
		ChangeInstance, RemoveInstance, ReadNetwork, WriteNetwork, ReadVolume, WriteVolume, ReadAudit, AdministerStore}
}

// Scope is the project and region that a permission is required in. An empty
// field means that the request belongs to no project or to no region.
type Scope struct {
	Project string `json:"project,omitempty"`
	Region  string `json:"region,omitempty"`
}
