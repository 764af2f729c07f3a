package schema

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// rule is a check of a value that schemas do not contain. It reports findings
// relative to the current path of the walk, which is that of the value.
type rule func(w *walk, v any)

// objects returns the items of a list as objects; nil for each other item.
func objects(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, len(list))
	for i := range list {
		out[i], _ = list[i].(map[string]any)
	}
	return out
}

// dig returns the value at a path below v, or nil.
func dig(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// podRule checks the names in a pod: container names, and volume names and the
// mounts that refer to them.
func podRule(w *walk, v any) {
	volumes := map[string]bool{}
	for i, volume := range objects(dig(v, "volumes")) {
		volumes[w.name(volume, "volumes", i)] = true
	}
	if w.root["kind"] == "StatefulSet" {
		for _, claim := range objects(dig(w.root, "spec", "volumeClaimTemplates")) {
			name, _ := dig(claim, "metadata", "name").(string)
			volumes[name] = true
		}
	}
	seen := map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		for i, container := range objects(dig(v, list)) {
			name := w.name(container, list, i)
			if list == "initContainers" && seen[name] {
				w.report("is the name of another container"+w.got(name), field(list), item(i), field("name"))
			}
			seen[name] = true
			for j, mount := range objects(container["volumeMounts"]) {
				if name, _ := mount["name"].(string); name != "" && !volumes[name] {
					w.reportOpen("must be the name of a volume"+w.got(name), field(list), item(i), field("volumeMounts"), item(j), field("name"))
				}
			}
		}
	}
}

// name returns the name of a list item, and checks it.
func (w *walk) name(m map[string]any, list string, i int) string {
	name, _ := m["name"].(string)
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		w.report(dnsLabel+w.got(name), field(list), item(i), field("name"))
	}
	return name
}

// containerRule checks that port names in a container are unique, and checks
// its resources.
func containerRule(w *walk, v any) {
	seen := map[string]bool{}
	for i, port := range objects(dig(v, "ports")) {
		name, _ := port["name"].(string)
		if name != "" && seen[name] {
			w.report("is the name of another port"+w.got(name), field("ports"), item(i), field("name"))
		}
		seen[name] = true
	}
	w.resources(dig(v, "resources"))
}

func portNameRule(w *walk, v any) {
	if name, _ := dig(v, "name").(string); name != "" && len(validation.IsValidPortName(name)) > 0 {
		w.report(portName+w.got(name), field("name"))
	}
}

// targetPortRule returns the rule for a field that is a port number or name.
func targetPortRule(name string) rule {
	return func(w *walk, v any) {
		switch p := dig(v, name).(type) {
		case string:
			if p != "" && len(validation.IsValidPortName(p)) > 0 {
				w.report(portName+w.got(p), field(name))
			}
		case int64:
			if p != 0 && len(validation.IsValidPortNum(int(p))) > 0 {
				w.report("must be between 1 and 65535"+w.got(p), field(name))
			}
		}
	}
}

// resources checks that no quantity is negative, and no request exceeds its
// limit.
func (w *walk) resources(v any) {
	for _, list := range []string{"limits", "requests"} {
		quantities, _ := dig(v, list).(map[string]any)
		for name, q := range quantities {
			value, ok := quantityOf(q)
			if !ok {
				continue
			}
			at := []segment{field("resources"), field(list), key(name)}
			if value.Sign() < 0 {
				w.report("must be at least 0"+w.got(q), at...)
			}
			limit, ok := quantityOf(dig(v, "limits", name))
			if list == "requests" && ok && value.Cmp(limit) > 0 {
				w.report("must be at most the limit "+limit.String()+w.got(q), at...)
			}
		}
	}
}

func quantityOf(v any) (resource.Quantity, bool) {
	switch v.(type) {
	case string, int64, float64:
		q, err := resource.ParseQuantity(fmt.Sprint(v))
		return q, err == nil
	}
	return resource.Quantity{}, false
}

// templateRule checks the labels of a pod template.
func templateRule(w *walk, v any) {
	w.at(func() { w.labels(dig(v, "metadata", "labels")) }, field("metadata"), field("labels"))
}

func (w *walk) labels(v any) {
	m, _ := v.(map[string]any)
	for name, value := range m {
		if len(validation.IsQualifiedName(name)) > 0 {
			w.report(labelKey+w.got(name), key(name))
		}
		if s, ok := value.(string); ok && len(validation.IsValidLabelValue(s)) > 0 {
			w.report(labelValue+w.got(s), key(name))
		}
	}
}

// workloadRule checks that the selector matches the labels of the template, and
// that the restart policy is Always.
func workloadRule(w *walk, v any) {
	policy := dig(v, "template", "spec", "restartPolicy")
	if policy != nil && policy != "" && policy != "Always" {
		w.report("must be Always"+w.got(policy), field("template"), field("spec"), field("restartPolicy"))
	}
	m, ok := dig(v, "selector").(map[string]any)
	if !ok {
		return
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s); err != nil {
		return // the type mismatch is reported elsewhere
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	switch {
	case err != nil:
		w.report("is not a label selector: "+err.Error(), field("selector"))
	case selector.Empty():
		w.reportOpen("must select something: it is empty", field("selector"))
	case !selector.Matches(labelsOf(dig(v, "template", "metadata", "labels"))):
		w.reportOpen("must match the selector "+clip(selector.String()), field("template"), field("metadata"), field("labels"))
	}
}

func labelsOf(v any) labels.Set {
	m, _ := v.(map[string]any)
	out := labels.Set{}
	for key, value := range m {
		out[key], _ = value.(string)
	}
	return out
}

func jobRule(w *walk, v any) {
	path := []segment{field("template"), field("spec"), field("restartPolicy")}
	const must = "must be OnFailure or Never in a Job"
	switch policy := dig(v, "template", "spec", "restartPolicy"); policy {
	case "OnFailure", "Never":
	case nil, "":
		if dig(v, "template", "spec") != nil {
			w.reportOpen(must+": the default is Always", path...)
		}
	default:
		w.report(must+w.got(policy), path...)
	}
}

// serviceRule checks the names of a service's ports.
func serviceRule(w *walk, v any) {
	ports := objects(dig(v, "ports"))
	seen := map[string]bool{}
	for i, port := range ports {
		name := w.name(port, "ports", i)
		at := []segment{field("ports"), item(i), field("name")}
		switch {
		case name == "" && len(ports) > 1:
			w.reportOpen("is required: the service has several ports", at...)
		case name != "" && seen[name]:
			w.report("is the name of another port"+w.got(name), at...)
		}
		seen[name] = true
	}
}

// dataRule checks the keys of a ConfigMap or Secret.
func dataRule(w *walk, v any) {
	data, _ := dig(v, "data").(map[string]any)
	for _, list := range []string{"data", "binaryData", "stringData"} {
		m, _ := dig(v, list).(map[string]any)
		for name := range m {
			if len(validation.IsConfigMapKey(name)) > 0 {
				w.report(`must have a key of letters, digits, "-", "_" and ".", of at most 253 characters`, field(list), key(name))
			}
			if _, twice := data[name]; twice && list == "binaryData" {
				w.report("is a key of data, too", field(list), key(name))
			}
		}
	}
}

// Rules for names, as messages.
const (
	dnsLabel     = `must be lower-case letters, digits and "-", start and end with a letter or digit, and have at most 63 characters`
	dnsSubdomain = `must be lower-case letters, digits, "-" and ".", start and end with a letter or digit, and have at most 253 characters`
	pathSegment  = `must not be "." or "..", and must not contain "/" or "%"`
	portName     = `must be at most 15 lower-case letters, digits and "-", with a letter among them, and must not start or end with "-" or have "--"`
	labelKey     = `must have a key of letters, digits, "-", "_" and "." with at most 63 characters, and may have a DNS name and "/" before it`
	labelValue   = `must be at most 63 letters, digits, "-", "_" and ".", and start and end with a letter or digit`
)
