package render

import (
	"cmp"
	"fmt"
	"slices"
)

// Recreate says whether an object may be deleted and created again to change a
// field that the API server does not change in any other way.
type Recreate string

// The recreate policies.
const (
	RecreateNever    Recreate = "never" // the default
	RecreateIfNeeded Recreate = "ifNeeded"
)

// Valid reports whether the policy is a known one.
func (r Recreate) Valid() bool { return r == RecreateNever || r == RecreateIfNeeded }

// RecreateAnnotation is the annotation that sets an object's policy. It
// overrides the policy of its group.
const RecreateAnnotation = "k8splugin.io/recreate"

// recreate returns the policy for an object of the group, or a description of
// its fault.
func (g Group) recreate(o Object) (policy Recreate, fault string) {
	policy = cmp.Or(g.Recreate, RecreateNever)
	if value, given := descend(o.Object, "metadata", "annotations")[RecreateAnnotation]; given {
		text, _ := value.(string)
		policy = Recreate(text)
	}
	switch {
	case !policy.Valid():
		return "", fmt.Sprintf("must be %s or %s", RecreateNever, RecreateIfNeeded)
	case policy == RecreateIfNeeded && deletesData(o):
		return "", fmt.Sprintf("%s of a %s would destroy data", RecreateIfNeeded, o.GetKind())
	}
	return policy, ""
}

// deletesData reports whether deleting an object also deletes data. A StatefulSet
// can request that.
func deletesData(o Object) bool {
	retention := descend(o.Object, "spec", "persistentVolumeClaimRetentionPolicy")
	return slices.Contains(permanent, groupKind(o)) || groupKind(o) == "StatefulSet.apps" && retention["whenDeleted"] == "Delete"
}
