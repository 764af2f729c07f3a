package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
)

// nameRule is the rule for object names of a kind.
type nameRule struct {
	invalid func(string) []string
	must    string
}

var (
	subdomain = nameRule{validation.IsDNS1123Subdomain, dnsSubdomain}
	label     = nameRule{validation.IsDNS1123Label, dnsLabel}
	pathName  = nameRule{content.IsPathSegmentName, pathSegment}
	longest52 = nameRule{atMost(52), "must have at most 52 characters, as the names of the jobs add 11, and " + dnsSubdomain[len("must "):]}
	longest63 = nameRule{atMost(63), "must have at most 63 characters, as it becomes a label of the pods, and " + dnsSubdomain[len("must "):]}
)

func atMost(n int) func(string) []string {
	return func(name string) []string {
		if len(name) > n {
			return []string{"is too long"}
		}
		return validation.IsDNS1123Subdomain(name)
	}
}

// nameRules are the name rules of built-in kinds. Names of all others need only
// be a URL path segment. API servers before 1.36 also require that the name of
// a Service starts with a letter; this is not checked here.
var nameRules = map[string]nameRule{
	"Namespace":                           label,
	"Service":                             label,
	"Pod":                                 subdomain,
	"ConfigMap":                           subdomain,
	"Secret":                              subdomain,
	"ServiceAccount":                      subdomain,
	"PersistentVolume":                    subdomain,
	"PersistentVolumeClaim":               subdomain,
	"LimitRange":                          subdomain,
	"ResourceQuota":                       subdomain,
	"Endpoints":                           subdomain,
	"Deployment.apps":                     subdomain,
	"DaemonSet.apps":                      subdomain,
	"ReplicaSet.apps":                     subdomain,
	"StatefulSet.apps":                    label,
	"Job.batch":                           longest63,
	"CronJob.batch":                       longest52,
	"HorizontalPodAutoscaler.autoscaling": subdomain,
	"Ingress.networking.k8s.io":           subdomain,
	"IngressClass.networking.k8s.io":      subdomain,
	"NetworkPolicy.networking.k8s.io":     subdomain,
	"StorageClass.storage.k8s.io":         subdomain,
	"PriorityClass.scheduling.k8s.io":     subdomain,
	"RuntimeClass.node.k8s.io":            subdomain,
	"Lease.coordination.k8s.io":           subdomain,
	"EndpointSlice.discovery.k8s.io":      subdomain,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":   subdomain,
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io": subdomain,
	"CustomResourceDefinition.apiextensions.k8s.io":               subdomain,
}

// metadata checks the name, labels, annotations, finalizers and owner
// references of an object. k is nil if the kind's schema is unknown.
func (w *walk) metadata(k *kind, gvk schema.GroupVersionKind) {
	m, _ := w.root["metadata"].(map[string]any)
	w.at(func() {
		w.objectName(w.nameRule(k, gvk), m)
		if !w.loose {
			w.at(func() { w.labels(m["labels"]) }, field("labels"))
			w.others(m)
		}
	}, field("metadata"))
	if gvk.GroupKind() == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		w.definitionName(m)
	}
}

func (w *walk) nameRule(k *kind, gvk schema.GroupVersionKind) nameRule {
	if k == nil {
		return pathName
	}
	rule, ok := nameRules[gvk.GroupKind().String()]
	switch {
	case !k.native, k.old && gvk.Kind == "StatefulSet",
		gvk.Kind == "Job" && dig(w.root, "spec", "manualSelector") == true: // then the name does not become a label
		return subdomain
	case ok:
		return rule
	}
	return pathName
}

func (w *walk) objectName(rule nameRule, m map[string]any) {
	name, _ := m["name"].(string)
	switch prefix, _ := m["generateName"].(string); {
	case name == "" && prefix != "":
		w.report("is required: server-side apply cannot generate a name", field("name"))
	case name == "":
		w.report("is required", field("name"))
	case len(rule.invalid(name)) > 0:
		w.report(rule.must+", got "+show(name), field("name"))
	}
}

// definitionName checks that the name of a CustomResourceDefinition is
// <plural>.<group>.
func (w *walk) definitionName(m map[string]any) {
	name, _ := m["name"].(string)
	plural, _ := dig(w.root, "spec", "names", "plural").(string)
	group, _ := dig(w.root, "spec", "group").(string)
	if want := plural + "." + group; name != "" && plural != "" && group != "" && name != want {
		w.report(fmt.Sprintf("must be %s (spec.names.plural and spec.group), got %s", want, show(name)), field("metadata"), field("name"))
	}
}

// others checks other metadata, with the API server's validation functions.
func (w *walk) others(m map[string]any) {
	if m["annotations"] == nil && m["ownerReferences"] == nil && m["finalizers"] == nil {
		return
	}
	var meta struct {
		Annotations     map[string]string       `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		Finalizers      []string                `json:"finalizers"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &meta); err != nil {
		return // the type mismatch is reported elsewhere
	}
	var errs fielderrors.ErrorList
	errs = append(errs, apivalidation.ValidateAnnotations(meta.Annotations, fielderrors.NewPath("annotations"))...)
	errs = append(errs, apivalidation.ValidateOwnerReferences(meta.OwnerReferences, fielderrors.NewPath("ownerReferences"))...)
	errs = append(errs, apivalidation.ValidateFinalizers(meta.Finalizers, fielderrors.NewPath("finalizers"))...)
	for _, e := range errs {
		w.report(w.detail(e), field(e.Field))
	}
}

// detail formats a field error of Kubernetes' libraries.
func (w *walk) detail(e *fielderrors.Error) string {
	message := e.Detail
	switch e.Type {
	case fielderrors.ErrorTypeRequired:
		message = "is required"
	case fielderrors.ErrorTypeTooLong:
		message = "is too long: " + e.Detail
	}
	if s, ok := e.BadValue.(string); ok && s != "" {
		message += w.got(s)
	}
	return strings.TrimSpace(message)
}
