package tosca

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

const (
	maxFile   = 1 << 20 // bytes of a file
	maxFiles  = 200
	maxNodes  = 300_000 // YAML values of all files, each alias as the values that it stands for
	maxDepth  = 200     // of values in values
	maxChain  = 100     // types that one derives from
	maxNamed  = 1000    // node templates, groups and policies of a flavor, of each
	maxVDUs   = 200     // of a flavor
	maxLevels = 50      // instantiation levels, scaling aspects and deltas of an aspect, of each
	maxText   = 1024    // bytes of a value
	maxFaults = 50
	maxQuote  = 200
)

// reader reads one descriptor and collects its faults.
type reader struct {
	files     map[string][]byte
	templates []*template
	types     map[string]*yaml.Node // definitions of node, policy, group and artifact types
	alone     bool                  // imported files are not given
	nodes     int
	faults    nf.Violations
	warnings  []string
}

// template is one file of the descriptor.
type template struct {
	file    string
	root    *yaml.Node
	imports []*template
}

// load reads the files of the descriptor that begins with one.
func load(files map[string][]byte, entry string) (*reader, error) {
	r := &reader{files: files, types: map[string]*yaml.Node{}}
	name, ok := clean(entry)
	if _, found := files[name]; !ok || !found {
		r.fault(entry, nil, "is missing")
	} else {
		r.load(name, map[string]*template{})
	}
	return r, r.err()
}

func (r *reader) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return nf.E(nf.Invalid, "read", "the VNF descriptor", r.faults)
}

func (r *reader) fault(file string, at *yaml.Node, format string, args ...any) {
	if len(r.faults) < maxFaults {
		line := 0
		if at != nil {
			line = at.Line
		}
		r.faults = append(r.faults, nf.Violation{File: nf.Clip(file, maxText), Line: line, Message: fmt.Sprintf(format, args...)})
	}
}

// list yields the items of a list. It faults any other value but null.
func (r *reader) list(file string, n *yaml.Node, what string) iter.Seq[*yaml.Node] {
	if !isNull(n) && n.Kind != yaml.SequenceNode {
		r.fault(file, n, "%s must be a list", what)
	}
	return items(n)
}

// mapping yields the keys and values of a mapping. It faults any other value but null.
func (r *reader) mapping(file string, n *yaml.Node, what string) iter.Seq2[*yaml.Node, *yaml.Node] {
	if !isNull(n) && n.Kind != yaml.MappingNode {
		r.fault(file, n, "%s must be a mapping", what)
	}
	return pairs(n)
}

func (r *reader) warn(file string, at *yaml.Node, format string, args ...any) {
	if len(r.warnings) < maxFaults {
		r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: ", file, at.Line)+fmt.Sprintf(format, args...))
	}
}

// load reads a file and the files that it imports. It returns nil after a fault.
func (r *reader) load(name string, seen map[string]*template) *template {
	if t, found := seen[name]; found {
		return t
	}
	root := r.parse(name)
	if root == nil {
		return nil
	}
	t := &template{file: name, root: root}
	seen[name] = t
	r.templates = append(r.templates, t)
	for _, section := range [...]string{"node_types", "policy_types", "group_types", "artifact_types"} {
		for key, value := range pairs(get(root, section)) {
			if _, twice := r.types[key.Value]; !twice {
				r.types[key.Value] = value
			}
		}
	}
	for _, item := range imports(get(root, "imports")) {
		if len(r.faults) > 0 {
			break
		}
		if len(seen) >= maxFiles {
			r.fault(name, item, "the descriptor has more than %d files", maxFiles)
			break
		}
		if of := r.follow(item, name, seen); of != nil {
			t.imports = append(t.imports, of)
		}
	}
	return t
}

// follow loads an imported file. A file that is not in the CSAR by a URL is not read.
func (r *reader) follow(item *yaml.Node, from string, seen map[string]*template) *template {
	if strings.Contains(item.Value, "://") {
		r.warn(from, item, "the import %q is not in the CSAR, and is not read", nf.Clip(item.Value, maxQuote))
		return nil
	}
	if r.alone {
		return nil
	}
	name, ok := clean(path.Join(path.Dir(from), item.Value))
	if _, found := r.files[name]; !ok || !found {
		r.fault(from, item, "imports %q, which is not in the CSAR", nf.Clip(item.Value, maxQuote))
		return nil
	}
	return r.load(name, seen)
}

// imports returns the files of a list of imports. An entry is a file, or a mapping with
// the field file, or a mapping of a name to one of both.
func imports(list *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for item := range items(list) {
		if file := get(item, "file"); file != nil {
			item = file
		} else if item.Kind == yaml.MappingNode && len(item.Content) == 2 {
			if item = aliased(item.Content[1]); item.Kind == yaml.MappingNode {
				item = get(item, "file")
			}
		}
		if item != nil && item.Kind == yaml.ScalarNode {
			out = append(out, item)
		}
	}
	return out
}

// parse returns the mapping that a file consists of, or nil after a fault.
func (r *reader) parse(name string) *yaml.Node {
	content := r.files[name]
	if content == nil || len(content) > maxFile {
		r.fault(name, nil, "has more than %d bytes", maxFile)
		return nil
	}
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	err := decoder.Decode(&doc)
	if err == nil {
		if more := decoder.Decode(new(yaml.Node)); !errors.Is(more, io.EOF) {
			r.fault(name, nil, "must be one YAML document")
			return nil
		}
	}
	if err != nil {
		line, message := syntax.YAML(err)
		r.fault(name, &yaml.Node{Line: line}, "is not YAML: %s", nf.Clip(message, maxText))
		return nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		r.fault(name, &doc, "must be one YAML mapping")
		return nil
	}
	if get(doc.Content[0], "tosca_definitions_version") == nil {
		r.fault(name, doc.Content[0], "lacks tosca_definitions_version, so it is not a TOSCA service template")
		return nil
	}
	if !r.count(&doc, 0) {
		r.fault(name, nil, "the descriptor has more than %d values, or values in more than %d others", maxNodes, maxDepth)
		return nil
	}
	return doc.Content[0]
}

// count adds the values of a document to those of the descriptor, and reports whether
// they are within the limits. An alias counts as the values that it stands for, so that
// no reader of the values takes long.
func (r *reader) count(n *yaml.Node, depth int) bool {
	n = aliased(n)
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		return false
	}
	for _, c := range n.Content {
		if !r.count(c, depth+1) {
			return false
		}
	}
	return true
}

// clean returns the clean form of a path in the CSAR, or false if it leads out of it.
func clean(name string) (string, bool) {
	if name == "" || len(name) > maxText || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\\\x00") {
		return "", false
	}
	name = path.Clean(name)
	return name, name != "." && !slices.Contains(strings.Split(name, "/"), "..")
}

// derives reports whether a type is one of the bases, or derives from one.
func (r *reader) derives(name string, bases ...string) bool {
	for range maxChain {
		if slices.Contains(bases, name) {
			return true
		}
		of, known := r.types[name]
		if !known {
			return false
		}
		name = scalar(get(of, "derived_from"))
	}
	return false
}

// definition returns what a type, or one that it derives from, defines at a path; nil if
// none does.
func (r *reader) definition(name string, at ...string) *yaml.Node {
	for range maxChain {
		of, known := r.types[name]
		if !known {
			return nil
		}
		if value := get(of, at...); value != nil {
			return value
		}
		name = scalar(get(of, "derived_from"))
	}
	return nil
}
