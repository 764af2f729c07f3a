package accesstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The projects and the regions. There is an instance in each pair of them, and
// a package in each project.
const (
	ProjectA = "a"
	ProjectB = "b"
	East     = "east"
	West     = "west"
)

// Anonymous is the name of the caller that sends no token.
const Anonymous = ""

// person is an identity with a service token and one grant.
type person struct {
	name        string
	role        string // empty: no grant
	permissions []nf.Permission
	projects    string // one, or "*"
	regions     string
}

func people() []person {
	viewer := []nf.Permission{nf.ReadRegion, nf.ReadPackage, nf.ReadInstance, nf.ReadNetwork, nf.ReadVolume}
	operator := append(slices.Clone(viewer), nf.WritePackage, nf.CreateInstance, nf.ChangeInstance, nf.RemoveInstance, nf.WriteNetwork, nf.WriteVolume)
	return []person{
		{name: "stranger"},
		{"viewer-a-east", "viewer", viewer, ProjectA, East},
		{"viewer-a", "viewer", viewer, ProjectA, "*"},
		{"viewer-all", "viewer", viewer, "*", "*"},
		{"operator-a-east", "operator", operator, ProjectA, East},
		{"operator-b", "operator", operator, ProjectB, "*"},
		{"operator-west", "operator", operator, "*", West},
		{"operator-all", "operator", operator, "*", "*"},
		{"admin-a-east", "admin", nf.Permissions(), ProjectA, East},
		{"admin-a", "admin", nf.Permissions(), ProjectA, "*"},
		{"admin-east", "admin", nf.Permissions(), "*", East},
		{"admin-all", "admin", nf.Permissions(), "*", "*"},
		{"starter-a", "starter", []nf.Permission{nf.ReadRegion, nf.ReadPackage, nf.ReadInstance, nf.CreateInstance}, ProjectA, "*"},
		{"changer-a", "changer", []nf.Permission{nf.ReadInstance, nf.ChangeInstance}, ProjectA, "*"},
		{"blind-all", "maker", []nf.Permission{nf.ReadPackage, nf.CreateInstance, nf.ChangeInstance, nf.RemoveInstance, nf.WritePackage, nf.WriteRegion}, "*", "*"},
		{"blind-a", "blind", []nf.Permission{nf.CreateInstance, nf.ChangeInstance, nf.RemoveInstance, nf.WritePackage, nf.WriteRegion}, ProjectA, "*"},
	}
}

// People returns the names of all callers, including Anonymous.
func People() []string {
	out := []string{Anonymous}
	for _, p := range people() {
		out = append(out, p.name)
	}
	return out
}

// Token returns the service token of a caller, or "" for Anonymous.
func Token(who string) string {
	if who == Anonymous {
		return ""
	}
	return "k8spt_test-" + who
}

// File writes the access.yaml of these identities into a folder of the test,
// and returns its name.
func File(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(name, []byte(YAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// YAML returns the content of that file.
func YAML() string {
	var tokens, grants, roles strings.Builder
	for _, p := range people() {
		sum := sha256.Sum256([]byte(Token(p.name)))
		fmt.Fprintf(&tokens, "- {name: %s, sha256: %s}\n", p.name, hex.EncodeToString(sum[:]))
		if p.role == "" {
			continue
		}
		fmt.Fprintf(&grants, "- {subjects: ['token:%s'], role: %s, projects: ['%s'], regions: ['%s']}\n", p.name, p.role, p.projects, p.regions)
		if !slices.Contains([]string{"viewer", "operator", "admin"}, p.role) {
			fmt.Fprintf(&roles, "- {name: %s, permissions: %q}\n", p.role, p.permissions)
		}
	}
	return "tokens:\n" + tokens.String() + "roles:\n" + strings.ReplaceAll(roles.String(), `" "`, `", "`) + "grants:\n" + grants.String()
}

// May reports whether a caller has a permission in a scope.
func May(who string, permission nf.Permission, s nf.Scope) bool {
	for _, p := range people() {
		if p.name != who || !slices.Contains(p.permissions, permission) {
			continue
		}
		// A permission for the whole service needs a grant for all projects or
		// all regions where the scope has none. Any grant in the scope suffices
		// for other permissions.
		wide := permission == nf.WriteRegion || permission == nf.ReadAudit || permission == nf.AdministerStore
		in := func(granted, asked string) bool {
			return granted == "*" || granted == asked || asked == "" && !wide
		}
		return in(p.projects, s.Project) && in(p.regions, s.Region)
	}
	return false
}
