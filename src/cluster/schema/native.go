package schema

import (
	"math"
	"strings"
)

// The documents of built-in kinds have correct types and field names, but no
// bounds. Fields that they list as required or as an enumeration are not always
// enforced: a field may have a default, or be dropped because its feature is
// off. Therefore all other checks are listed here. Each entry is something that
// every API server rejects; tests verify all entries against a real API server.

// native is the checks of a Go type, in addition to types and unknown fields.
type native struct {
	required []string // rejected when absent, null, "" or an empty list
	enums    []string // the document's enumeration is enforced; "" is always allowed
	bounds   map[string]bounds
	rule     rule
}

type bounds struct{ min, max float64 }

// Bounds shared by many fields.
var (
	notNegative = bounds{0, math.MaxInt64}
	positive    = bounds{1, math.MaxInt64}
	port        = bounds{1, 65535}
	portOrNone  = bounds{0, 65535}
	userID      = bounds{0, math.MaxInt32}
	fileMode    = bounds{0, 0o777}
	weight      = bounds{1, 100}
	seconds30   = bounds{1, 30}
)

// natives are the checks of Go types, by component without "io.k8s.".
var natives = map[string]native{
	"api.core.v1.PodSpec": {
		required: []string{"containers"}, enums: []string{"dnsPolicy", "restartPolicy"},
		bounds: map[string]bounds{"activeDeadlineSeconds": positive}, rule: podRule,
	},
	"api.core.v1.PodTemplateSpec": {required: []string{"spec"}, rule: templateRule},
	"api.core.v1.Pod":             {required: []string{"spec"}},
	"api.core.v1.Container": {
		required: []string{"name", "image"}, enums: []string{"imagePullPolicy", "terminationMessagePolicy"}, rule: containerRule,
	},
	"api.core.v1.ContainerPort": {
		required: []string{"containerPort"}, enums: []string{"protocol"},
		bounds: map[string]bounds{"containerPort": port, "hostPort": portOrNone}, rule: portNameRule,
	},
	"api.core.v1.EnvVar":               {required: []string{"name"}},
	"api.core.v1.ConfigMapKeySelector": {required: []string{"key"}},
	"api.core.v1.SecretKeySelector":    {required: []string{"key"}},
	"api.core.v1.ConfigMapEnvSource":   {required: []string{"name"}},
	"api.core.v1.SecretEnvSource":      {required: []string{"name"}},
	"api.core.v1.ObjectFieldSelector":  {required: []string{"fieldPath"}},
	"api.core.v1.VolumeMount":          {required: []string{"name", "mountPath"}, enums: []string{"mountPropagation"}},
	"api.core.v1.VolumeDevice":         {required: []string{"name", "devicePath"}},
	"api.core.v1.HTTPGetAction":        {required: []string{"port"}, enums: []string{"scheme"}, rule: targetPortRule("port")},
	"api.core.v1.TCPSocketAction":      {required: []string{"port"}, rule: targetPortRule("port")},
	"api.core.v1.GRPCAction":           {required: []string{"port"}, bounds: map[string]bounds{"port": port}},
	"api.core.v1.ExecAction":           {required: []string{"command"}},
	"api.core.v1.Probe": {bounds: map[string]bounds{
		"initialDelaySeconds": notNegative, "timeoutSeconds": notNegative, "periodSeconds": notNegative,
		"successThreshold": notNegative, "failureThreshold": notNegative,
	}},
	"api.core.v1.SecurityContext":    {bounds: map[string]bounds{"runAsUser": userID, "runAsGroup": userID}},
	"api.core.v1.PodSecurityContext": {bounds: map[string]bounds{"runAsUser": userID, "runAsGroup": userID, "fsGroup": userID}},
	"api.core.v1.SeccompProfile":     {required: []string{"type"}, enums: []string{"type"}},
	"api.core.v1.Toleration":         {enums: []string{"effect"}},
	"api.core.v1.NodeSelectorRequirement": {
		required: []string{"key", "operator"}, enums: []string{"operator"},
	},
	"api.core.v1.NodeSelector":            {required: []string{"nodeSelectorTerms"}},
	"api.core.v1.PreferredSchedulingTerm": {bounds: map[string]bounds{"weight": weight}},
	"api.core.v1.WeightedPodAffinityTerm": {bounds: map[string]bounds{"weight": weight}},
	"api.core.v1.PodAffinityTerm":         {required: []string{"topologyKey"}},
	"api.core.v1.TopologySpreadConstraint": {
		required: []string{"topologyKey", "whenUnsatisfiable", "maxSkew"}, enums: []string{"whenUnsatisfiable"},
		bounds: map[string]bounds{"maxSkew": positive},
	},

	"api.core.v1.Volume":                            {required: []string{"name"}},
	"api.core.v1.ConfigMapVolumeSource":             {required: []string{"name"}, bounds: map[string]bounds{"defaultMode": fileMode}},
	"api.core.v1.SecretVolumeSource":                {required: []string{"secretName"}, bounds: map[string]bounds{"defaultMode": fileMode}},
	"api.core.v1.ProjectedVolumeSource":             {bounds: map[string]bounds{"defaultMode": fileMode}},
	"api.core.v1.DownwardAPIVolumeSource":           {bounds: map[string]bounds{"defaultMode": fileMode}},
	"api.core.v1.KeyToPath":                         {required: []string{"key", "path"}, bounds: map[string]bounds{"mode": fileMode}},
	"api.core.v1.HostPathVolumeSource":              {required: []string{"path"}, enums: []string{"type"}},
	"api.core.v1.NFSVolumeSource":                   {required: []string{"server", "path"}},
	"api.core.v1.CSIVolumeSource":                   {required: []string{"driver"}},
	"api.core.v1.PersistentVolumeClaimVolumeSource": {required: []string{"claimName"}},

	"api.core.v1.ServiceSpec": {
		enums: []string{"type", "sessionAffinity", "externalTrafficPolicy", "internalTrafficPolicy"}, rule: serviceRule,
	},
	"api.core.v1.ServicePort": {
		required: []string{"port"}, enums: []string{"protocol"},
		bounds: map[string]bounds{"port": port}, rule: targetPortRule("targetPort"),
	},
	"api.core.v1.PersistentVolumeClaimSpec": {required: []string{"accessModes"}, enums: []string{"accessModes", "volumeMode"}},
	"api.core.v1.PersistentVolumeSpec":      {enums: []string{"accessModes", "volumeMode", "persistentVolumeReclaimPolicy"}},
	"api.core.v1.ConfigMap":                 {rule: dataRule},
	"api.core.v1.Secret":                    {rule: dataRule},

	"api.apps.v1.Deployment": {required: []string{"spec"}},
	"api.apps.v1.DeploymentSpec": {
		required: []string{"selector", "template"}, rule: workloadRule,
		bounds: map[string]bounds{
			"replicas": notNegative, "minReadySeconds": notNegative, "revisionHistoryLimit": notNegative, "progressDeadlineSeconds": notNegative,
		},
	},
	"api.apps.v1.DeploymentStrategy": {enums: []string{"type"}},
	"api.apps.v1.ReplicaSet":         {required: []string{"spec"}},
	"api.apps.v1.ReplicaSetSpec": {
		required: []string{"selector", "template"}, rule: workloadRule,
		bounds: map[string]bounds{"replicas": notNegative, "minReadySeconds": notNegative},
	},
	"api.apps.v1.StatefulSet": {required: []string{"spec"}},
	"api.apps.v1.StatefulSetSpec": {
		required: []string{"selector", "template"}, enums: []string{"podManagementPolicy"}, rule: workloadRule,
		bounds: map[string]bounds{"replicas": notNegative, "minReadySeconds": notNegative},
	},
	"api.apps.v1.StatefulSetUpdateStrategy":        {enums: []string{"type"}},
	"api.apps.v1.RollingUpdateStatefulSetStrategy": {bounds: map[string]bounds{"partition": notNegative}},
	"api.apps.v1.DaemonSet":                        {required: []string{"spec"}},
	"api.apps.v1.DaemonSetSpec": {
		required: []string{"selector", "template"}, rule: workloadRule,
		bounds: map[string]bounds{"minReadySeconds": notNegative, "revisionHistoryLimit": notNegative},
	},
	"api.apps.v1.DaemonSetUpdateStrategy": {enums: []string{"type"}},

	"api.batch.v1.Job": {required: []string{"spec"}},
	"api.batch.v1.JobSpec": {
		required: []string{"template"}, enums: []string{"completionMode"}, rule: jobRule,
		bounds: map[string]bounds{
			"parallelism": notNegative, "completions": notNegative, "backoffLimit": notNegative,
			"activeDeadlineSeconds": notNegative, "ttlSecondsAfterFinished": notNegative,
		},
	},
	"api.batch.v1.JobTemplateSpec": {required: []string{"spec"}},
	"api.batch.v1.CronJob":         {required: []string{"spec"}},
	"api.batch.v1.CronJobSpec": {
		required: []string{"schedule", "jobTemplate"}, enums: []string{"concurrencyPolicy"},
		bounds: map[string]bounds{
			"startingDeadlineSeconds": notNegative, "successfulJobsHistoryLimit": notNegative, "failedJobsHistoryLimit": notNegative,
		},
	},

	"api.autoscaling.v1.HorizontalPodAutoscalerSpec": {
		required: []string{"scaleTargetRef", "maxReplicas"}, bounds: map[string]bounds{"minReplicas": notNegative, "maxReplicas": positive},
	},
	"api.autoscaling.v1.CrossVersionObjectReference": {required: []string{"kind", "name"}},
	"api.autoscaling.v2.HorizontalPodAutoscalerSpec": {
		required: []string{"scaleTargetRef", "maxReplicas"}, bounds: map[string]bounds{"minReplicas": notNegative, "maxReplicas": positive},
	},
	"api.autoscaling.v2.CrossVersionObjectReference": {required: []string{"kind", "name"}},
	"api.autoscaling.v2.MetricSpec":                  {required: []string{"type"}},

	"api.networking.v1.HTTPIngressPath":       {required: []string{"pathType", "backend"}, enums: []string{"pathType"}},
	"api.networking.v1.HTTPIngressRuleValue":  {required: []string{"paths"}},
	"api.networking.v1.IngressServiceBackend": {required: []string{"name"}},
	"api.networking.v1.ServiceBackendPort":    {bounds: map[string]bounds{"number": portOrNone}},
	"api.networking.v1.NetworkPolicySpec":     {enums: []string{"policyTypes"}},
	"api.networking.v1.NetworkPolicyPort":     {enums: []string{"protocol"}},
	"api.networking.v1.IPBlock":               {required: []string{"cidr"}},

	"api.rbac.v1.PolicyRule":         {required: []string{"verbs"}},
	"api.rbac.v1.RoleBinding":        {required: []string{"roleRef"}},
	"api.rbac.v1.ClusterRoleBinding": {required: []string{"roleRef"}},
	"api.rbac.v1.RoleRef":            {required: []string{"kind", "name"}},
	"api.rbac.v1.Subject":            {required: []string{"kind", "name"}},

	"api.storage.v1.StorageClass": {
		required: []string{"provisioner"}, enums: []string{"reclaimPolicy", "volumeBindingMode"},
	},
	"api.admissionregistration.v1.MutatingWebhook": {
		required: []string{"clientConfig", "sideEffects", "admissionReviewVersions"},
		bounds:   map[string]bounds{"timeoutSeconds": seconds30}, enums: []string{"failurePolicy", "matchPolicy", "reinvocationPolicy", "sideEffects"},
	},
	"api.admissionregistration.v1.ValidatingWebhook": {
		required: []string{"clientConfig", "sideEffects", "admissionReviewVersions"},
		bounds:   map[string]bounds{"timeoutSeconds": seconds30}, enums: []string{"failurePolicy", "matchPolicy", "sideEffects"},
	},
	"apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition": {required: []string{"spec"}},
	"apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": {
		required: []string{"group", "scope", "names", "versions"},
	},
	"apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames": {required: []string{"plural", "kind"}},
}

// adjust adds the checks in natives to the node of a Go type.
func adjust(n *node, component string, r raw) {
	checks := natives[strings.TrimPrefix(component, "io.k8s.")]
	n.required, n.rule = checks.required, checks.rule
	fields, _ := r.schema("properties")
	for _, name := range checks.enums {
		field, _ := fields.schema(name)
		f := n.fields[name]
		if items, ok := field.schema("items"); ok && f != nil {
			field, f = items, f.item
		}
		if f != nil {
			f.enum, _ = field["enum"].([]any)
		}
	}
	for name, b := range checks.bounds {
		if f := n.fields[name]; f != nil {
			f.limits = &limits{min: new(b.min), max: new(b.max)}
		}
	}
}

const statefulSetSpec = "io.k8s.api.apps.v1.StatefulSetSpec"

// loosen disables checks of values of pods and claims in a StatefulSetSpec: API
// servers before 1.35 do not validate them.
func loosen(n *node) {
	if template := n.fields["template"]; template != nil {
		n.fields["template"] = template.loosened()
	}
	if claims := n.fields["volumeClaimTemplates"]; claims != nil && claims.item != nil {
		claims.item = claims.item.loosened()
	}
}

// loosened returns a loose copy of a node, for one use of its type.
func (n *node) loosened() *node {
	out := *n
	out.loose = true
	return &out
}
