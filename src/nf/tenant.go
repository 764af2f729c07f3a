package nf

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ProjectAnnotation is on every namespace that the service created. Its value
// is the project for which it was created.
const ProjectAnnotation = "k8splugin.io/project"

// AnyProject stands for every project in the tenants of a region.
const AnyProject = "*"

// Tenant is the part of a cloud region that a project may use, in addition to
// the namespaces that the service creates for it.
type Tenant struct {
	Namespaces     []string `json:"namespaces,omitempty"`      // names; "*" stands for any characters
	ClusterKinds   []string `json:"cluster_kinds,omitempty"`   // cluster-scoped kinds as "Kind.group"; "*" stands for any characters
	ServiceAccount string   `json:"service_account,omitempty"` // "namespace/name" that the service impersonates; empty: none
}

var (
	tenantNamespacePattern = regexp.MustCompile(`^[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?$`)
	tenantKindPattern      = regexp.MustCompile(`^[A-Za-z*][A-Za-z0-9*]*(\.[a-z0-9*]([a-z0-9*.-]*[a-z0-9*])?)?$`)
)

// CheckTenants returns a violation for each error in the tenants of a region.
// The keys are projects.
func CheckTenants(field string, tenants map[string]Tenant) Violations {
	var v Violations
	for _, project := range slices.Sorted(maps.Keys(tenants)) {
		at := field + "." + project
		if project != AnyProject {
			v = append(v, CheckID(at, project)...)
		}
		v = append(v, tenants[project].check(at)...)
	}
	return v
}

func (t Tenant) check(at string) Violations {
	var v Violations
	for i, name := range t.Namespaces {
		if !tenantNamespacePattern.MatchString(name) {
			v = append(v, Violation{Field: fmt.Sprintf("%s.namespaces[%d]", at, i), Message: fmt.Sprintf("%q is not a namespace name, with %q for any characters", name, "*")})
		}
	}
	for i, kind := range t.ClusterKinds {
		if !tenantKindPattern.MatchString(kind) {
			v = append(v, Violation{Field: fmt.Sprintf("%s.cluster_kinds[%d]", at, i), Message: fmt.Sprintf(`%q is not a kind and its group, as in "ClusterRole.rbac.authorization.k8s.io"`, kind)})
		}
	}
	if t.ServiceAccount == "" {
		return v
	}
	namespace, name, _ := strings.Cut(t.ServiceAccount, "/")
	if CheckNamespace("", namespace) != nil || !isSubdomain(name) {
		v = append(v, Violation{Field: at + ".service_account", Message: fmt.Sprintf(`%q is not "namespace/name"`, t.ServiceAccount)})
	}
	return v
}

// isSubdomain reports whether a name is a DNS subdomain, as the names of most objects.
func isSubdomain(name string) bool {
	const longest = 253
	for label := range strings.SplitSeq(name, ".") {
		if !namespacePattern.MatchString(label) {
			return false
		}
	}
	return len(name) <= longest
}

// Tenancy is the part of a region that one project may use.
type Tenancy struct {
	Region, Project string
	Whole           bool     // the whole region: projects are not isolated
	Namespaces      []string // patterns, as in Tenant
	ClusterKinds    []string
	ServiceAccount  string // "namespace/name" to impersonate; empty: none
}

// Tenancy returns the part of the region that a project may use. If apart is
// false, projects are not isolated: it returns the whole region, without
// impersonation.
func (r Region) Tenancy(project string, apart bool) Tenancy {
	t := Tenancy{Region: r.ID, Project: project, Whole: !apart}
	if t.Whole {
		return t
	}
	for _, name := range [...]string{project, AnyProject} { // the project's own service account first
		entry := r.Tenants[name]
		t.Namespaces = append(t.Namespaces, entry.Namespaces...)
		t.ClusterKinds = append(t.ClusterKinds, entry.ClusterKinds...)
		t.ServiceAccount = cmp.Or(t.ServiceAccount, entry.ServiceAccount)
	}
	return t
}

// Namespace is the state of a namespace in a region.
type Namespace struct {
	Created bool   // by the service
	Project string // the project for which the service created it
}

// MayUse reports whether the project may use a namespace: one that is granted,
// one that does not exist (live is nil), or one that the service created for
// it.
func (t Tenancy) MayUse(name string, live *Namespace) bool {
	return t.Whole || live == nil || live.Created && live.Project == t.Project || matchesAny(t.Namespaces, name)
}

// MayHold reports whether the project may have objects of a cluster-scoped kind.
func (t Tenancy) MayHold(group, kind string) bool {
	return t.Whole || matchesAny(t.ClusterKinds, clusterKind(group, kind))
}

// DeniedNamespace returns the violation for a namespace that a field of the
// request names and that the project may not use.
func (t Tenancy) DeniedNamespace(field, name string) Violation {
	return Violation{Field: field, Message: fmt.Sprintf(
		"namespace %q of cloud region %s was not made for project %s, and is not granted to it; a grant of the region would allow it: tenants: {%[3]s: {namespaces: [%[1]q]}}",
		name, t.Region, t.Project)}
}

// Refuse returns the error for resources that the region does not grant the
// project.
func (t Tenancy) Refuse(denied Violations) error {
	return &Error{Kind: Forbidden, Op: "use", Subject: "cloud region " + t.Region, Reason: ReasonTenant, Err: denied}
}

func clusterKind(group, kind string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

// matchesAny reports whether one of the patterns matches the whole name.
// Patterns and names are validated, so "*" is the only special character.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// Bounds are the namespaces and kinds that the objects of an instance may have.
type Bounds struct {
	Namespace string   // the instance's own, for objects that name none
	Further   []string // that its request or its package opens
	Tenancy   Tenancy
}

// Opens reports whether the instance may have objects in a namespace.
func (b Bounds) Opens(namespace string) bool {
	return namespace == b.Namespace || slices.Contains(b.Further, namespace)
}

// Outside returns a violation for an object in a namespace that the instance
// does not open, and for a Namespace object of that kind.
func (b Bounds) Outside(ref Ref) Violations {
	const message = `is a namespace that the instance does not open: its own is %q, and "namespaces" of the request or of the package names further ones`
	switch {
	case ref.isNamespace() && !b.Opens(ref.Name):
		return Violations{{Object: ref, Message: fmt.Sprintf(message, b.Namespace)}}
	case ref.Namespace != "" && !b.Opens(ref.Namespace):
		return Violations{{Object: ref, Field: "metadata.namespace", Message: fmt.Sprintf("%q "+message, ref.Namespace, b.Namespace)}}
	}
	return nil
}

// Denied returns a violation for an object of a cluster-scoped kind that the
// project may not have. A Ref without a namespace is cluster-scoped. A
// namespace that the instance opens is allowed.
func (b Bounds) Denied(ref Ref) Violations {
	if ref.Namespace != "" || ref.isNamespace() && b.Opens(ref.Name) || b.Tenancy.MayHold(ref.Group, ref.Kind) {
		return nil
	}
	return Violations{{Object: ref, Message: fmt.Sprintf(
		"is cluster-scoped, and cloud region %s does not grant the kind to project %s; a grant of the region would allow it: tenants: {%[2]s: {cluster_kinds: [%[3]q]}}",
		b.Tenancy.Region, b.Tenancy.Project, clusterKind(ref.Group, ref.Kind))}}
}

func (r Ref) isNamespace() bool { return r.Group == "" && r.Kind == "Namespace" }
