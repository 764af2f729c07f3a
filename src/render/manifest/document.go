package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Words that stand for any kind in the metadata, and short ones for one kind.
var (
	anyKind    = []string{"manifest", "generic", "resources"}
	shortKinds = map[string]string{"crd": "customresourcedefinition"}
)

// identify reports whether the object says what it is. What is wrong is
// reported; what depends on an unknown value is not wrong.
func (d document) identify(object map[string]any, r *report) bool {
	before := len(r.found)
	meta, _ := object["metadata"].(map[string]any)
	if object["metadata"] == (unknown{}) {
		meta = map[string]any{"name": unknown{}}
	}
	version, hasVersion := d.text(r, object["apiVersion"], "apiVersion")
	kind, hasKind := d.text(r, object["kind"], "kind")
	_, hasName := d.text(r, meta["name"], "metadata", "name")
	known := hasVersion && hasKind && hasName
	if namespace, given := meta["namespace"]; given && namespace != nil {
		_, ok := d.text(r, namespace, "metadata", "namespace")
		known = known && ok
	}
	if _, given := meta["generateName"]; given {
		r.add(d.at("metadata", "generateName"), "metadata.generateName", "cannot be repeated; use metadata.name")
	}
	if hasVersion {
		d.checkVersion(r, version)
	}
	if hasKind {
		d.checkKind(r, kind)
	}
	return known && len(r.found) == before
}

// text returns a field that must be a text, and whether it is known to be one.
func (d document) text(r *report, value any, path ...string) (string, bool) {
	name := strings.Join(path, ".")
	text, isText := value.(string)
	switch {
	case value == (unknown{}):
	case value == nil || isText && text == "":
		r.add(d.at(path...), name, "is missing")
	case !isText:
		r.add(d.at(path...), name, "is not a text")
	default:
		return text, true
	}
	return "", false
}

func (d document) checkVersion(r *report, version string) {
	if _, err := schema.ParseGroupVersion(version); err != nil {
		r.add(d.at("apiVersion"), "apiVersion", "is not of the form version or group/version")
	}
}

func (d document) checkKind(r *report, kind string) {
	if d.kind == "" || strings.EqualFold(kind, d.kind) {
		return
	}
	// The kind may have come from a variable, so it is shown as it is written.
	r.add(d.at("kind"), "kind", "is %s, but the metadata lists the file as %s", d.root.get("kind").text, d.kind)
}

// at returns the place of a field, or of what is there of its path.
func (d document) at(path ...string) place {
	n := d.root
	for _, name := range path {
		child := n.get(name)
		if child == nil {
			break
		}
		n = child
	}
	return n.at
}
