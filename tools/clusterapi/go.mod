// The modules with the CustomResourceDefinitions of Cluster API and of its providers for
// Docker and OpenStack, which tests serve in the sandbox. A module of its own, so that
// none of their dependencies reach those of the other tools.
module github.com/multicloud-k8s/k8splugin/tools/clusterapi

go 1.26.0

require (
	sigs.k8s.io/cluster-api v1.14.2
	sigs.k8s.io/cluster-api-provider-openstack v0.14.7
	sigs.k8s.io/cluster-api/test v1.14.2
)
