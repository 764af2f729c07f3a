module github.com/multicloud-k8s/k8splugin/kud/lab/modules/kubevirt

go 1.26.0

// Nothing of it is built: the definitions are taken from its files.
require kubevirt.io/kubevirt v1.8.0
