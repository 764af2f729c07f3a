package notify

import (
	"github.com/multicloud-k8s/k8splugin/src/nf"

	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
)

// digest returns a hash of an object's meaningful state. It ignores the fields
// that change without a change of meaning, such as the resource version.
func digest(object map[string]any) string {
	essence := maps.Clone(object)
	essence["metadata"] = stableFields(object["metadata"])
	if status, ok := object["status"].(map[string]any); ok {
		essence["status"] = stripVolatile(status)
	}
	text, err := json.Marshal(essence)
	if err != nil {
		return "-" // not reached: the object was decoded from JSON
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// noise lists the annotations in which controllers and kubectl store their own
// state.
var noise = []string{
	nf.AppliedAnnotation,
	"control-plane.alpha.kubernetes.io/leader",
	"endpoints.kubernetes.io/last-change-trigger-time",
	"deprecated.daemonset.template.generation",
}

// stableFields returns the parts of an object's metadata that are meaningful for
// digest.
func stableFields(metadata any) map[string]any {
	m, _ := metadata.(map[string]any)
	out := map[string]any{}
	for _, field := range []string{"uid", "labels", "deletionTimestamp", "finalizers"} {
		if value, ok := m[field]; ok {
			out[field] = value
		}
	}
	if annotations, ok := m["annotations"].(map[string]any); ok {
		kept := maps.Clone(annotations)
		maps.DeleteFunc(kept, func(name string, _ any) bool { return slices.Contains(noise, name) })
		if len(kept) > 0 {
			out["annotations"] = kept
		}
	}
	return out
}

// stripVolatile returns a status without the fields that change periodically.
func stripVolatile(status map[string]any) map[string]any {
	out := maps.Clone(status)
	delete(out, "observedGeneration")
	conditions, ok := status["conditions"].([]any)
	if !ok {
		return out
	}
	still := make([]any, len(conditions))
	for i, c := range conditions {
		still[i] = c
		if condition, ok := c.(map[string]any); ok {
			condition = maps.Clone(condition)
			for _, field := range []string{"lastHeartbeatTime", "lastProbeTime", "observedGeneration"} {
				delete(condition, field)
			}
			still[i] = condition
		}
	}
	out["conditions"] = still
	return out
}

// presentable returns an object as subscribers receive it: without managed
// fields, and with the values of a Secret blank.
func presentable(object map[string]any) map[string]any {
	out := maps.Clone(object)
	m, _ := object["metadata"].(map[string]any)
	metadata := maps.Clone(m)
	delete(metadata, "managedFields")
	if out["kind"] == "Secret" && out["apiVersion"] == "v1" {
		for _, field := range []string{"data", "stringData"} {
			if values, ok := out[field].(map[string]any); ok {
				out[field] = blank(values)
			}
		}
		// This annotation repeats all of the Secret's data.
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, noise[0])
			metadata["annotations"] = annotations
		}
	}
	if metadata != nil {
		out["metadata"] = metadata
	}
	return out
}

func blank(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for name := range values {
		out[name] = ""
	}
	return out
}
