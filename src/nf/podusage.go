package nf

// PodUsage is how much of its resources a pod of an instance uses, as the metrics server
// of its region has measured it.
type PodUsage struct {
	Pod    string        // name
	CPU    ResourceUsage // in cores
	Memory ResourceUsage // in bytes
}

// ResourceUsage is the usage of a resource.
type ResourceUsage struct {
	Used     float64
	Allotted float64 // the limits of the containers, or their requests if they have no limits; 0: a container has neither
}
