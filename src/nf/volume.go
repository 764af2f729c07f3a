package nf

// SetClaims are the PersistentVolumeClaims that a StatefulSet has made from its
// templates, and that stay when it is deleted.
type SetClaims struct {
	Set    Ref
	Labels map[string]string // that each of the claims has
	Claims []Ref             // sorted
}
