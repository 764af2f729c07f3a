package nf

// SetClaims are the PersistentVolumeClaims that a StatefulSet created from its
// templates. They stay when the StatefulSet is deleted.
type SetClaims struct {
	Set    Ref
	Labels map[string]string // labels of each claim
	Claims []Ref             // sorted
}
