package multus

import (
	"encoding/json"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
)

// Resources returns the extended resource of which each attachment takes one, by the field
// of the normalized specification, or nothing.
func (Driver) Resources(spec json.RawMessage) map[string]string {
	given, err := schema.Decode(spec)
	name, ok := given[resourceField].(string)
	if err != nil || !ok {
		return nil
	}
	return map[string]string{"spec." + resourceField: name}
}

// Plugins returns the types of the CNI plugins that a network needs on the nodes, by the
// fields of its normalized specification. Those of an existing definition are unknown.
func (Driver) Plugins(spec json.RawMessage) map[string]string {
	given, err := schema.Decode(spec)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	need := func(path string, plugin any) {
		m, _ := plugin.(map[string]any)
		if name, ok := m["type"].(string); ok {
			out[path+".type"] = name
		}
		if ipam, _ := m["ipam"].(map[string]any); ipam["type"] != nil {
			out[path+".ipam.type"] = fmt.Sprint(ipam["type"])
		}
	}
	raw, isRaw := given["raw"].(map[string]any)
	if !isRaw {
		need("spec", given)
		for i, link := range schema.ListOf(given, chainField) {
			need(fmt.Sprintf("spec.%s[%d]", chainField, i), link)
		}
		return out
	}
	need("spec.raw", raw)
	for i, one := range schema.ListOf(raw, "plugins") {
		need(fmt.Sprintf("spec.raw.plugins[%d]", i), one)
	}
	return out
}
