package helm

import (
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// namespacesAnnotation is the annotation in Chart.yaml that lists, separated by
// commas, the namespaces in which the chart's objects may be in addition to the
// release's.
const namespacesAnnotation = "k8splugin.io/namespaces"

// namespaces returns the additional namespaces that a chart declares.
func namespaces(c *chart.Chart, r *report) []string {
	var names []string
	for name := range strings.SplitSeq(c.Metadata.Annotations[namespacesAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	for _, v := range nf.CheckNamespaces("annotations."+namespacesAnnotation, names) {
		r.add(place{file: chartFile}, v.Field, "%s", v.Message)
	}
	return names
}
