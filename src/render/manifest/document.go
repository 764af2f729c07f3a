package manifest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Words in the metadata that stand for any kind, and short names of kinds.
var (
	anyKind    = []string{"manifest", "generic", "resources"}
	shortKinds = map[string]string{"crd": "customresourcedefinition"}
)

// identify reports whether the object's identity is valid and known. It reports
// faults; a field that depends on an unknown value is not a fault.
func (d document) identify(object map[string]any, r *report) bool {
	before := len(r.found)
	meta, _ := object["metadata"].(map[string]any)
	if object["metadata"] == (unknown{}) {
		meta = map[string]any{"name": unknown{}}
	}
	version, hasVersion := d.text(r, object["apiVersion"], "apiVersion")
	kind, hasKind := d.text(r, object["kind"], "kind")
	name, hasName := d.text(r, meta["name"], "metadata", "name")
	known := hasVersion && hasKind && hasName
	if given := meta["namespace"]; given != nil {
		namespace, ok := d.text(r, given, "metadata", "namespace")
		if ok && nf.CheckNamespace("", namespace) != nil {
			r.add(d.at("metadata", "namespace"), "metadata.namespace", "is not a valid namespace name")
		}
		known = known && ok
	}
	if hasName && !isObjectName(name) {
		r.add(d.at("metadata", "name"), "metadata.name", "is not a valid object name: it must have 1 to %d printable characters without / and %%, and must not be . or ..", maxObjectName)
	}
	if _, given := meta["generateName"]; given {
		r.add(d.at("metadata", "generateName"), "metadata.generateName", "cannot be repeated; use metadata.name")
	}
	d.checkReserved(r, meta)
	known = d.checkRecreate(r, meta) && known
	if hasVersion {
		d.checkVersion(r, version)
	}
	if hasKind {
		d.checkKind(r, kind)
	}
	return known && len(r.found) == before
}

const maxObjectName = 253

// isObjectName reports whether a text can be an object's name. The name becomes
// a segment of a URL path.
func isObjectName(name string) bool {
	return len(name) <= maxObjectName && !strings.ContainsFunc(name, hidden) && len(content.IsPathSegmentName(name)) == 0
}

var versionPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// isKind reports whether a text can be a kind.
func isKind(text string) bool {
	for i, r := range text {
		letter := 'a' <= r|0x20 && r|0x20 <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != "" && len(text) <= maxWord
}

// text returns a field that must be a text, and whether its value is known and
// valid.
func (d document) text(r *report, value any, steps ...string) (string, bool) {
	name := strings.Join(steps, ".")
	text, isText := value.(string)
	switch {
	case value == (unknown{}):
	case value == nil || isText && text == "":
		r.add(d.at(steps...), name, "is missing")
	case !isText:
		r.add(d.at(steps...), name, "is not a text")
	default:
		return text, true
	}
	return "", false
}

func (d document) checkVersion(r *report, version string) {
	if !versionPattern.MatchString(version) {
		r.add(d.at("apiVersion"), "apiVersion", "is not of the form version or group/version")
	}
}

func (d document) checkKind(r *report, kind string) {
	if !isKind(kind) {
		r.add(d.at("kind"), "kind", "is not a valid kind")
		return
	}
	if d.kind == "" || strings.EqualFold(kind, d.kind) {
		return
	}
	// The kind may come from a variable, so the message shows it as written.
	r.add(d.at("kind"), "kind", "is %s, but the metadata lists the file as %s", get(d.root, "kind").Value, d.kind)
}

// checkReserved reports labels and annotations with which an object would pose
// as one of the service's. The owner label is allowed because it is always
// replaced.
func (d document) checkReserved(r *report, meta map[string]any) {
	for _, kind := range []string{"labels", "annotations"} {
		fields, _ := meta[kind].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if strings.HasPrefix(name, nf.ReservedPrefix) && name != nf.OwnerLabel && name != render.RecreateAnnotation {
				r.add(d.at("metadata", kind, name), "metadata."+kind+"."+name, "is set by the service")
			}
		}
	}
}

// checkRecreate reports an annotation with an invalid recreate policy, and
// returns whether the object's policy is known.
func (d document) checkRecreate(r *report, meta map[string]any) bool {
	annotations, _ := meta["annotations"].(map[string]any)
	value, given := annotations[render.RecreateAnnotation]
	if value == (unknown{}) {
		return false
	}
	if text, _ := value.(string); given && !render.Recreate(text).Valid() {
		r.add(d.at("metadata", "annotations", render.RecreateAnnotation), "metadata.annotations."+render.RecreateAnnotation,
			"must be %s or %s", render.RecreateNever, render.RecreateIfNeeded)
	}
	return true
}

// at returns the place of a field, or of the nearest existing field above it.
func (d document) at(steps ...string) place {
	n := d.root
	for _, name := range steps {
		child := get(n, name)
		if child == nil {
			break
		}
		n = child
	}
	return place{d.file, n.Line}
}
