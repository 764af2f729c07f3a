package nf

// Pod is a pod of a VNF instance at one time, or an instance of one of its virtual
// machines.
type Pod struct {
	Health // Current: it is ready, or has succeeded

	Labels     map[string]string
	Phase      string   // status.phase
	Reason     string   // why it does not run, as Kubernetes says it: CrashLoopBackOff, NodeLost; empty: unknown
	IPs        []string // of the cluster's network
	Workload   Ref      // the object of the instance that it belongs to
	Node       string   // empty: it is not scheduled
	Interfaces []Interface
}

// Interface is an interface of a pod, as Multus has reported it when the pod was
// created, or of a virtual machine, as KubeVirt reports it.
type Interface struct {
	Name    string // "net1"; of a machine, the name of its network
	Network string // name of a network of the region, or else "namespace/name" of its definition; that of the cluster has a name of its own
	IPs     []string
	MAC     string
}
