package tosca_test

import (
	"bytes"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestTranslateTypes decodes the golden files into the types of Kubernetes, which do not
// accept unknown fields and values of other types.
func TestTranslateTypes(t *testing.T) {
	t.Parallel()
	for _, name := range [...]string{"tacker", "compute", "containers", "containers-high"} {
		content, err := os.ReadFile("testdata/golden/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			var head struct{ Kind string }
			if err := yaml.Unmarshal(document, &head); err != nil {
				t.Fatal(err)
			}
			into := map[string]any{
				"ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}, "HorizontalPodAutoscaler": &autoscalingv2.HorizontalPodAutoscaler{},
				"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{},
			}[head.Kind]
			if err := yaml.UnmarshalStrict(document, into); err != nil {
				t.Errorf("%s: %s: %v", name, head.Kind, err)
			}
		}
	}
}
