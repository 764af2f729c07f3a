// Public charts that the tests of src/render/helm render, as Helm does. Each lies
// in a Go module, which is fetched for its files alone: nothing imports one, so
// this file is not for go mod tidy, which would empty it. A module of its own, so
// that none of these reach the service's go.mod.
module github.com/multicloud-k8s/k8splugin/tools/charts

go 1.26.0

require (
	github.com/bitnami-labs/sealed-secrets v0.27.3
	github.com/cert-manager/cert-manager v1.16.2
	github.com/cert-manager/trust-manager v0.14.0
	github.com/cilium/cilium v1.16.5
	github.com/crossplane/crossplane v1.18.2
	github.com/dapr/dapr v1.14.4
	github.com/external-secrets/external-secrets v0.12.1
	github.com/fluxcd/flux v1.25.4
	github.com/grafana/alloy v1.5.1
	github.com/grafana/loki/v3 v3.3.2
	github.com/k8snetworkplumbingwg/sriov-network-operator v1.4.0
	github.com/kyverno/kyverno v1.13.2
	github.com/nginxinc/kubernetes-ingress v1.12.5
	github.com/open-policy-agent/gatekeeper/v3 v3.18.0
	github.com/rook/rook v1.15.6
	github.com/zalando/postgres-operator v1.13.0
	go.universe.tf/metallb v0.14.9
	sigs.k8s.io/external-dns v0.15.1
	sigs.k8s.io/kueue v0.9.1
	sigs.k8s.io/metrics-server v0.7.2
	sigs.k8s.io/node-feature-discovery v0.16.6
	sigs.k8s.io/secrets-store-csi-driver v1.4.7
	volcano.sh/volcano v1.10.0
)
