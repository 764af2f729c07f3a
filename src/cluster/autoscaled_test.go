package cluster

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func hpa(t *testing.T, owner, ns, name, target string) *unstructured.Unstructured {
	t.Helper()
	return objects(t, owner, ns, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: `+name+`},
		spec: {maxReplicas: 9, minReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: `+target+`}}}`)[0]
}

// TestAutoscaledNumber applies a package with a number of replicas and an autoscaler,
// again and again.
func TestAutoscaledNumber(t *testing.T) {
	c, ns := sandbox(t)
	web := func(n, image string) *unstructured.Unstructured {
		u := workloadOf(t, ns, "Deployment", "web", held, "replicas: "+n+",")
		nf.SetAt(u.Object, "/spec/template/spec/containers/0/image", image)
		return u
	}
	scaler := hpa(t, "vnf-1", ns, "web", "web")
	apply := func(what string, want int64, us ...*unstructured.Unstructured) {
		t.Helper()
		preview, err := c.Diff(t.Context(), instance("vnf-1"), nf.AdoptionSelector{}, us)
		if err != nil {
			t.Fatal(err)
		}
		before := replicasOf(t, c, us[0])
		for _, f := range preview[0].Fields {
			if f.Path == "spec.replicas" && before == want {
				t.Errorf("%s: the preview would change it: %+v", what, f)
			}
		}
		mustApply(t, c, "vnf-1", us...)
		if is := replicasOf(t, c, us[0]); is != want {
			t.Errorf("%s: it has %v replicas, want %d", what, is, want)
		}
	}
	mustApply(t, c, "vnf-1", web("3", "i:1"))
	apply("an autoscaler comes, and has changed nothing yet", 3, web("5", "i:2"), scaler)
	apply("with the number as it was", 3, web("3", "i:3"), scaler)
	asClient(t, c, "/apis/apps/v1/namespaces/"+ns+"/deployments/web/scale", "kube-controller-manager", `{"spec": {"replicas": 6}}`)
	apply("the autoscaler has set a number", 6, web("3", "i:4"), scaler)
	apply("in a stage without the autoscaler", 6, web("2", "i:5"))
	asClient(t, c, "/apis/apps/v1/namespaces/"+ns+"/deployments/web/scale", "kube-controller-manager", `{"spec": {"replicas": 7}}`)
	apply("and another one", 7, web("6", "i:6"), scaler)
	if is, _ := nf.At(get(t, c, nf.RefOf(web("1", ""))).Object, "/spec/template/spec/containers/0/image"); is != "i:6" {
		t.Errorf("the other fields are applied: the image is %v", is)
	}
	if _, err := c.Delete(t.Context(), instance("vnf-1"), refs(scaler)); err != nil {
		t.Fatal(err)
	}
	apply("without an autoscaler the package has the number", 2, web("2", "i:6"))
}

// TestNumberIsLeft applies a package that no longer has a number of replicas, as that of a
// chart whose autoscaling is switched on.
func TestNumberIsLeft(t *testing.T) {
	c, ns := sandbox(t)
	mustApply(t, c, "vnf-1", workloadOf(t, ns, "Deployment", "web", held, "replicas: 3,"))
	without := workloadOf(t, ns, "Deployment", "web", held, "")
	for range 2 {
		preview, err := c.Diff(t.Context(), instance("vnf-1"), nf.AdoptionSelector{}, []*unstructured.Unstructured{without})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range preview[0].Fields {
			if f.Path == "spec.replicas" {
				t.Errorf("the preview would change it: %+v", f)
			}
		}
		mustApply(t, c, "vnf-1", without)
		if is := replicasOf(t, c, without); is != int64(3) {
			t.Errorf("it has %v replicas, want those that it had", is)
		}
	}
	mustApply(t, c, "vnf-1", workloadOf(t, ns, "Deployment", "web", held, "replicas: 2,"))
	if is := replicasOf(t, c, without); is != int64(2) {
		t.Errorf("it has %v replicas, want those of the package", is)
	}
}

// TestAutoscalersDenied applies with an account that may not list autoscalers.
func TestAutoscalersDenied(t *testing.T) {
	c, r, ns := recorded(t)
	web := workloadOf(t, ns, "Deployment", "web", held, "replicas: 3,")
	mustApply(t, c, "vnf-1", web)
	heal := r.Fail(func(r clustertest.Request) bool { return strings.HasSuffix(r.Path, "/horizontalpodautoscalers") }, clustertest.Status(http.StatusForbidden))
	changes, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{workloadOf(t, ns, "Deployment", "web", held, "replicas: 4,")})
	heal()
	if err != nil || replicasOf(t, c, web) != int64(4) || changes[0].Message == "" {
		t.Errorf("%v, %v; %v replicas", changes, err, replicasOf(t, c, web))
	}
}
