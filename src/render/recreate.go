package render

import (
	"cmp"
	"fmt"
	"slices"
)

// Recreate says whether an object may be deleted and made again, so that a
// field changes that the API server changes in no other way.
type Recreate string

// The recreate policies.
const (
	RecreateNever    Recreate = "never" // the default
	RecreateIfNeeded Recreate = "ifNeeded"
)

// Valid reports whether the policy is one.
func (r Recreate) Valid() bool { return r == RecreateNever || r == RecreateIfNeeded }

// RecreateAnnotation on an object says which policy holds for it, whatever its
// group says.
const RecreateAnnotation = "k8splugin.io/recreate"

// recreate returns the policy that holds for an object of the group, or what is
// wrong with it.
func (g Group) recreate(o Object) (policy Recreate, fault string) {
	policy = cmp.Or(g.Recreate, RecreateNever)
	if value, given := descend(o.Object, "metadata", "annotations")[RecreateAnnotation]; given {
		text, _ := value.(string)
		policy = Recreate(text)
	}
	switch {
	case !policy.Valid():
		return "", fmt.Sprintf("must be %s or %s", RecreateNever, RecreateIfNeeded)
	case policy == RecreateIfNeeded && takesData(o):
		return "", fmt.Sprintf("%s of a %s would destroy data", RecreateIfNeeded, o.GetKind())
	}
	return policy, ""
}

// takesData reports whether data goes when the object does, which may be by its
// own wish.
func takesData(o Object) bool {
	retention := descend(o.Object, "spec", "persistentVolumeClaimRetentionPolicy")
	return slices.Contains(permanent, groupKind(o)) || groupKind(o) == "StatefulSet.apps" && retention["whenDeleted"] == "Delete"
}
