package nf

import "cmp"

// DefaultProject is the tenant of what was made without naming one.
const DefaultProject = "default"

// ProjectOf returns the project by its name, which may be empty in records.
func ProjectOf(project string) string { return cmp.Or(project, DefaultProject) }

// Identity is who makes a request.
type Identity struct {
	Name   string   // unique within its kind
	Kind   string   // how it was proved: "user", "token", "certificate", "oidc"; "anonymous" when access is open
	Groups []string // that whoever proved it vouches for
}

// Permission is one thing that an identity may be allowed to do.
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
	ReadAudit       Permission = "audit:read"
	AdministerStore Permission = "store:admin" // keys and backups
)

// Permissions lists every permission.
func Permissions() []Permission {
	return []Permission{ReadRegion, WriteRegion, ReadPackage, WritePackage, ReadInstance, CreateInstance,
		ChangeInstance, RemoveInstance, ReadAudit, AdministerStore}
}

// Scope is where a permission is asked for. An empty field is something that
// belongs to no project or to no region.
type Scope struct {
	Project string
	Region  string
}
