package nf

// Pod is a pod of a VNF instance at one time.
type Pod struct {
	Health // Current: it is ready, or has succeeded

	Workload   Ref    // the object of the instance that it belongs to
	Node       string // empty: it is not scheduled
	Interfaces []Interface
}

// Interface is an interface of a pod, as Multus has reported it when the pod was
// created.
type Interface struct {
	Name    string // "net1"
	Network string // name of a network of the region, or else "namespace/name" of its definition; that of the cluster has a name of its own
	IPs     []string
	MAC     string
}
