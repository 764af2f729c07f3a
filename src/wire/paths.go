package wire

// The paths of what the documents link to.

// RegionPath returns the path of a cloud region.
func RegionPath(id string) string { return "/v1/cloud_regions/" + id }

// PackagePath returns the path of a package.
func PackagePath(id string) string { return "/v1/packages/" + id }

// InstancePath returns the path of a VNF instance.
func InstancePath(id string) string { return "/v1/vnf_instances/" + id }

// NetworkPath returns the path of a network.
func NetworkPath(id string) string { return "/v1/networks/" + id }

// ServicePath returns the path of a network service.
func ServicePath(id string) string { return "/v1/services/" + id }

// VolumePath returns the path of a volume.
func VolumePath(id string) string { return "/v1/volumes/" + id }

// OperationPath returns the path of an operation among those of all subjects.
func OperationPath(id string) string { return "/v1/operations/" + id }

// SitePath returns the path of a site.
func SitePath(id string) string { return "/v1/sites/" + id }

// SiteOperationPath returns the path of an operation among those of its site.
func SiteOperationPath(site, id string) string { return SitePath(site) + "/operations/" + id }
