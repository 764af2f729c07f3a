// Package declared reads files that declare cloud regions, packages and VNF instances.
//
// A file is a YAML stream. The kind of each document is region, package,
// instance or service; its
// other fields are those of the API's request, and those of the types here:
//
//	kind: instance
//	vnf_instance_name: fw-1
//	cloud_region_id: east
//	csar_id: firewall
//	parameters: {replicas: 3}
//
// The package does not compare declarations with a server, and does not apply them. It
// does not read the files that declarations name, except those of parameters.
package declared
