package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// builtin returns the permissions of the built-in roles.
func builtin() map[string][]nf.Permission {
	viewer := []nf.Permission{nf.ReadRegion, nf.ReadPackage, nf.ReadInstance, nf.ReadNetwork, nf.ReadVolume}
	operator := append(slices.Clone(viewer), nf.WritePackage, nf.CreateInstance, nf.ChangeInstance, nf.RemoveInstance, nf.WriteNetwork, nf.WriteVolume)
	return map[string][]nf.Permission{"viewer": viewer, "operator": operator, "admin": nf.Permissions()}
}

// whole reports whether a permission is for the whole service. A grant limited
// to projects or regions does not give it in a scope without a project or
// region.
func whole(p nf.Permission) bool {
	return p == nf.WriteRegion || p == nf.ReadAudit || p == nf.AdministerStore
}

// roles returns the built-in roles and those of the file, by name.
func (l *loader) roles(f file) map[string][]nf.Permission {
	all := builtin()
	for i, e := range f.roles {
		field := fmt.Sprintf("roles[%d]", i)
		l.checkName(e.at, field+".name", e.name)
		if _, taken := all[e.name]; taken {
			l.document.refuse(e.at, field+".name", "%q already exists", e.name)
			continue
		}
		if len(e.permissions) == 0 {
			l.document.refuse(e.at, field+".permissions", "are missing")
		}
		var permissions []nf.Permission
		for j, name := range e.permissions {
			found := permissionsOf(name)
			if len(found) == 0 {
				l.document.refuse(e.at, fmt.Sprintf("%s.permissions[%d]", field, j), "%q is not a permission; permissions are %s", name, permissionNames())
			}
			permissions = append(permissions, found...)
		}
		all[e.name] = permissions
	}
	return all
}

// permissionsOf returns the named permission, or all permissions of a noun for
// "noun:*".
func permissionsOf(name string) []nf.Permission {
	noun, all := strings.CutSuffix(name, ":*")
	var out []nf.Permission
	for _, p := range nf.Permissions() {
		if string(p) == name || all && strings.HasPrefix(string(p), noun+":") {
			out = append(out, p)
		}
	}
	return out
}

func permissionNames() string {
	var names []string
	for _, p := range nf.Permissions() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
