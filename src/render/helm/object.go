package helm

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

const (
	maxDocuments  = 5000
	maxDocument   = 256 << 10 // separators in one document; see marks
	maxPrinted    = 1 << 20   // separators in all documents
	maxValues     = 512 << 10 // values in all documents
	maxListDepth  = 8         // nested lists of objects
	maxObjectName = 253
)

// document is one YAML document and its place in a template's output.
type document struct {
	at   place
	text string
}

// separator matches the end of a document for Helm, which accepts more than
// YAML does.
var separator = regexp.MustCompile(`(?m)^---[ \t]*`)

// split returns the documents of a text as Helm splits them, without leading
// blanks. It omits blank documents.
func split(file, text string) []document {
	var documents []document
	from, line := 0, 1
	add := func(to int) {
		piece := text[from:to]
		trimmed := strings.TrimLeftFunc(piece, unicode.IsSpace)
		at := line + strings.Count(piece[:len(piece)-len(trimmed)], "\n")
		line += strings.Count(piece, "\n")
		if trimmed != "" {
			documents = append(documents, document{place{file, at}, trimmed})
		}
	}
	for _, found := range separator.FindAllStringIndex(text, -1) {
		add(found[0])
		from = found[1]
	}
	add(len(text))
	return documents
}

// decoder decodes documents to objects and enforces limits.
type decoder struct {
	ctx       context.Context //nolint:containedctx // it lives as long as one rendering
	report    *report
	documents int
	marks     int
	values    int
	printed   bool // by templates: Helm appends a line end to each document that is not a hook
}

// decoded is an object with the annotations that Helm reads. An annotation of a list
// applies to its items.
type decoded struct {
	render.Object

	marks map[string]string
}

// objects returns the objects in a file.
func (d *decoder) objects(file, text string) []decoded {
	var objects []decoded
	for _, doc := range split(file, text) {
		if d.ctx.Err() != nil || !d.take(doc) {
			return nil // the caller reports the context's end
		}
		root := d.root(doc)
		w, err := weigh(reflect.ValueOf(root))
		if err != nil {
			d.report.add(doc.at, "", "is nested more than %d deep", maxDepth)
			continue
		}
		if d.values += w.items; d.values > maxValues {
			d.report.add(doc.at, "", "brings the objects to more than %d values", maxValues)
			return nil
		}
		if root != nil {
			objects = append(objects, d.flatten(root, nil, doc.at, 0)...)
		}
	}
	return objects
}

// take reports whether a document is within the limits.
func (d *decoder) take(doc document) bool {
	count := marks([]byte(doc.text))
	d.documents++
	d.marks += count
	const what = "separators of values (commas, colons, dashes, brackets)"
	switch {
	case d.documents > maxDocuments || d.marks > maxPrinted:
		d.report.add(doc.at, "", "brings the objects to more than %d documents or %d %s", maxDocuments, maxPrinted, what)
		return false
	case count > maxDocument:
		d.report.add(doc.at, "", "has more than %d %s", maxDocument, what)
		return false
	}
	return true
}

// root parses a document as Helm's client does. The client adds a line break if
// the document does not end with one. Helm has already appended one before
// that, which matters to a block scalar at the end of the document.
func (d *decoder) root(doc document) map[string]any {
	line := doc
	if !strings.HasSuffix(line.text, "\n") {
		line.text += "\n"
	}
	if !d.printed {
		return d.decode(line)
	}
	doc.text += "\n"
	root := d.decode(doc)
	if _, isHook := annotation(root, hookAnnotation); isHook {
		return d.decode(line)
	}
	return root
}

// decode parses a document. A document that contains only comments is nil.
func (d *decoder) decode(doc document) map[string]any {
	if expanded([]byte(doc.text)) > maxExpanded {
		d.report.add(doc.at, "", "has more than %d bytes with its aliases expanded", maxExpanded)
		return nil
	}
	text, err := yaml.YAMLToJSON([]byte(doc.text))
	if err != nil {
		d.syntaxError(doc, err)
		return nil
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		d.report.add(doc.at, "", "is YAML that cannot be converted to JSON")
		return nil
	}
	switch root := root.(type) {
	case nil:
		return nil
	case map[string]any:
		return root
	}
	d.report.add(doc.at, "", "is not an object")
	return nil
}

var keyOfLine = regexp.MustCompile(`^\s*(?:- )*["']?[A-Za-z0-9_./-]{1,40}["']?:`)

// syntaxError reports why a document is not YAML. It quotes only the key of the
// line, since the value may be secret.
func (d *decoder) syntaxError(doc document, err error) {
	line, message := syntax.YAML(err)
	if line == 0 {
		d.report.add(doc.at, "", "is not YAML")
		return
	}
	near := ""
	lines := strings.Split(strings.TrimRight(doc.text, "\n"), "\n")
	line = min(line, len(lines)) // the parser may report the line after the last one
	if key := strings.TrimSpace(keyOfLine.FindString(lines[line-1])); key != "" {
		near = fmt.Sprintf(", near %q", key)
	}
	d.report.add(place{doc.at.file, doc.at.line + line - 1}, "", "is not YAML: %s%s", message, near)
}

// flatten replaces a list of objects by its items. If the list is a hook, its
// items become hooks.
func (d *decoder) flatten(root map[string]any, marks map[string]string, at place, depth int) []decoded {
	marks = marksOf(root, marks)
	kind, _ := root["kind"].(string)
	given, isList := root["items"]
	items, isArray := given.([]any)
	isList = isList && (isArray || given == nil) // Helm's client treats null as an empty list
	if !strings.HasSuffix(kind, "List") || !isList {
		o := &unstructured.Unstructured{Object: root}
		if !d.identify(root, at) {
			return nil
		}
		keep := strings.EqualFold(strings.TrimSpace(marks[policyAnnotation]), "keep")
		return []decoded{{render.Object{Unstructured: o, File: at.file, Line: at.line, Keep: keep}, marks}}
	}
	if depth == maxListDepth {
		d.report.add(at, "items", "are lists in more than %d others", maxListDepth)
		return nil
	}
	var objects []decoded
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			d.report.add(at, "items", "are not all objects")
			continue
		}
		inherit(object, root, strings.TrimSuffix(kind, "List"))
		objects = append(objects, d.flatten(object, marks, at, depth+1)...)
	}
	return objects
}

// inherit gives an item of a list its kind if it has none.
func inherit(item, list map[string]any, kind string) {
	if item["kind"] == nil && item["apiVersion"] == nil && kind != "" {
		item["kind"], item["apiVersion"] = kind, list["apiVersion"]
	}
}

// marksOf returns the annotations of an object that Helm reads. Missing ones
// are inherited from the list that contains it.
func marksOf(object map[string]any, list map[string]string) map[string]string {
	marks := map[string]string{}
	for _, name := range []string{hookAnnotation, weightAnnotation, discardAnnotation, policyAnnotation} {
		value, own := annotation(object, name)
		if !own {
			if value, own = list[name]; !own {
				continue
			}
		}
		marks[name] = value
	}
	return marks
}

// annotation returns an annotation as a text, whatever scalar it was written
// as.
func annotation(object map[string]any, name string) (string, bool) {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	switch value := annotations[name].(type) {
	case nil:
		return "", false
	case string:
		return value, true
	case int64, float64, bool:
		return fmt.Sprint(value), true
	}
	return "", false
}

// policyAnnotation is the annotation with which Helm leaves an object in place.
const policyAnnotation = "helm.sh/resource-policy"

// identify reports whether the identity of the object is valid.
func (d *decoder) identify(object map[string]any, at place) bool {
	before := len(d.report.found)
	meta, _ := object["metadata"].(map[string]any)
	d.text(at, object["apiVersion"], "apiVersion")
	d.text(at, object["kind"], "kind")
	if _, given := meta["generateName"]; given && meta["name"] == nil {
		d.report.add(at, "metadata.generateName", "is not supported; use metadata.name")
	} else if name := d.text(at, meta["name"], "metadata.name"); name != "" {
		if len(name) > maxObjectName || len(content.IsPathSegmentName(name)) > 0 {
			d.report.add(at, "metadata.name", "is not a valid object name")
		}
	}
	if given := meta["namespace"]; given != nil && given != "" {
		if namespace := d.text(at, given, "metadata.namespace"); namespace != "" && nf.CheckNamespace("", namespace) != nil {
			d.report.add(at, "metadata.namespace", "is not a valid namespace name")
		}
	}
	d.checkReserved(at, meta)
	return len(d.report.found) == before
}

func (d *decoder) text(at place, value any, field string) string {
	text, isText := value.(string)
	switch {
	case value == nil || isText && text == "":
		d.report.add(at, field, "is missing")
	case !isText:
		d.report.add(at, field, "is not a text")
	}
	return text
}

func (d *decoder) checkReserved(at place, meta map[string]any) {
	for _, kind := range []string{"labels", "annotations"} {
		fields, _ := meta[kind].(map[string]any)
		for name := range fields {
			if strings.HasPrefix(name, nf.ReservedPrefix) && name != nf.OwnerLabel && name != render.RecreateAnnotation {
				d.report.add(at, "metadata."+kind+"."+name, "is set by the service")
			}
		}
	}
}

// installOrder compares two objects by the order in which Helm installs them:
// known kinds first, the others by the name of their kind.
func installOrder(a, b render.Object) int {
	rank := func(o render.Object) int {
		if i := slices.Index(releaseutil.InstallOrder, o.GetKind()); i >= 0 {
			return i
		}
		return len(releaseutil.InstallOrder)
	}
	if n := rank(a) - rank(b); n != 0 || rank(a) < len(releaseutil.InstallOrder) {
		return n
	}
	return strings.Compare(a.GetKind(), b.GetKind())
}

// isNotes reports whether Helm treats a template as notes to the user.
func isNotes(file string) bool { return strings.HasSuffix(file, "NOTES.txt") }
