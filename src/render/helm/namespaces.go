package helm

import (
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// namespacesAnnotation is the annotation of a Chart.yaml with the namespaces that
// the chart's objects may be in, besides the release's, separated by commas.
const namespacesAnnotation = "k8splugin.io/namespaces"

// namespaces returns the further namespaces that a chart opens.
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
