package declared

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Kind is the kind of a declaration.
type Kind string

// The kinds of declarations.
const (
	RegionKind   Kind = "region"
	PackageKind  Kind = "package"
	InstanceKind Kind = "instance"
	ServiceKind  Kind = "service"
)

// Set is what some files declare. The order of each list is that of the documents.
type Set struct {
	Regions   []Region
	Packages  []Package
	Instances []Instance
	Services  []Service
}

// Origin is where a declaration stands.
type Origin struct {
	File string
	Line int // of the document, from 1
}

func (o Origin) String() string { return o.File + ":" + strconv.Itoa(o.Line) }

// Region declares a cloud region.
type Region struct {
	Origin Origin `json:"-"`

	wire.RegionCreate

	// KubeconfigFile is the kubeconfig of the cluster, relative to the declaration,
	// and KubeContext its context; default is the current one.
	KubeconfigFile string `json:"kubeconfig_file,omitempty"`
	KubeContext    string `json:"kube_context,omitempty"`
}

// Package declares a package.
type Package struct {
	Origin Origin `json:"-"`

	ID      string `json:"csar_id"`
	Project string `json:"project,omitempty"`
	Path    string `json:"path"` // of its folder or archive, relative to the declaration
}

// Instance declares a VNF instance. Its name is required, and either its region or a
// placement.
type Instance struct {
	Origin Origin `json:"-"`

	wire.InstanceTarget
	wire.InstanceEdit

	// Placement has the server choose the region of an instance that does not exist.
	Placement *wire.PlacementNeeds `json:"placement,omitempty"`

	// Adopt makes objects that exist without an owner a new instance's. It has no
	// effect on an instance that exists.
	Adopt bool `json:"adopt,omitempty"`

	// ParameterFiles are files with parameters, relative to the declaration. Later
	// ones take precedence over earlier ones, and Parameters over all.
	ParameterFiles []string `json:"parameter_files,omitempty"`
}

// ReadFile returns the content of a file.
type ReadFile func(name string) ([]byte, error)

// Read reads declarations from files. It returns nf.Violations for everything that is
// wrong in any of them.
func Read(read ReadFile, names ...string) (Set, error) {
	r := reader{read: read, seen: map[string]Origin{}}
	for _, name := range names {
		text, err := read(name)
		if err != nil {
			return Set{}, fmt.Errorf("cannot read the declarations: %w", err)
		}
		r.file(name, text)
	}
	if len(r.wrong) > 0 {
		return Set{}, r.wrong
	}
	return r.set, nil
}

type reader struct {
	read  ReadFile
	set   Set
	seen  map[string]Origin // by kind and identity
	wrong nf.Violations
}

func (r *reader) refuse(at Origin, field, message string) {
	r.wrong = append(r.wrong, nf.Violation{File: at.File, Line: at.Line, Field: field, Message: message})
}

// file reads the documents of a file.
func (r *reader) file(name string, text []byte) {
	documents := yamlnode.NewDecoder(bytes.NewReader(text))
	for {
		var node yamlnode.Node
		err := documents.Decode(&node)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, message := syntax.YAML(err)
			r.refuse(Origin{name, max(line, 1)}, "", "is not YAML: "+message)
			return
		}
		if len(node.Content) == 1 && node.Content[0].Tag != "!!null" {
			r.document(Origin{name, node.Content[0].Line}, node.Content[0])
		}
	}
}

// document reads one declaration.
func (r *reader) document(at Origin, node *yamlnode.Node) {
	text, err := yamlnode.Marshal(node)
	var raw []byte
	if err == nil {
		raw, err = yaml.YAMLToJSONStrict(text)
	}
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil || fields == nil {
		r.refuse(at, "", "must be a map of names to values")
		return
	}
	var kind Kind
	_ = json.Unmarshal(fields["kind"], &kind) // what is no text is no kind
	delete(fields, "kind")
	d := document{reader: r, at: at, node: node, fields: fields}
	switch kind {
	case RegionKind:
		var one Region
		if d.decode(&one) && d.accept(one.check(), kind, one.ID) {
			one.Origin = at
			r.set.Regions = append(r.set.Regions, one)
		}
	case PackageKind:
		var one Package
		if d.decode(&one) && d.accept(one.check(), kind, one.ID) {
			one.Origin = at
			r.set.Packages = append(r.set.Packages, one)
		}
	case InstanceKind:
		var one Instance
		if d.decode(&one) && d.accept(slices.Concat(one.check(), r.parameters(at, &one)), kind, one.InstanceTarget.Region, one.Namespace, one.Name) {
			one.Origin = at
			if other, competes := r.rival(one); competes {
				r.refuse(at, "", "can be the same instance as that of "+other.String()+", because a placement decides on the region")
			}
			r.set.Instances = append(r.set.Instances, one)
		}
	case ServiceKind:
		var one Service
		if d.decode(&one) && d.accept(slices.Concat(one.check(), r.descriptor(at, &one)), kind, one.ID) {
			one.Origin = at
			r.set.Services = append(r.set.Services, one)
		}
	default:
		r.refuse(at, "kind", fmt.Sprintf("must be %s, %s, %s or %s", RegionKind, PackageKind, InstanceKind, ServiceKind))
	}
}

// document is one document of a file.
type document struct {
	reader *reader
	at     Origin
	node   *yamlnode.Node
	fields map[string]json.RawMessage // without the kind
}

// refuse adds a violation of a field.
func (d document) refuse(field, message string) {
	d.reader.refuse(Origin{d.at.File, lineOf(d.node, field, d.at.Line)}, field, message)
}

// decode reads the fields, and reports whether each of them is known and has the right
// type.
func (d document) decode(to any) bool {
	raw, _ := json.Marshal(d.fields) // they were decoded from JSON
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(to); err != nil {
		field, message, ok := syntax.Mismatch(err)
		if !ok {
			message = err.Error()
		}
		for embedded, rest, ok := strings.Cut(field, "."); ok && embedded != strings.ToLower(embedded); embedded, rest, ok = strings.Cut(field, ".") {
			field = rest // the names of the API are in lower case
		}
		d.refuse(field, message)
		return false
	}
	var tree any
	_ = json.Unmarshal(raw, &tree) // as above
	unknown := unknownFields(tree, reflect.TypeOf(to), "")
	for _, field := range unknown {
		d.refuse(field, "is not a known field")
	}
	return len(unknown) == 0
}

// accept refuses a declaration with violations, or with the identity of another one.
func (d document) accept(wrong nf.Violations, kind Kind, identity ...string) bool {
	for _, v := range wrong {
		d.refuse(v.Field, v.Message)
	}
	key := string(kind) + " " + strings.Join(identity, "/")
	other, twice := d.reader.seen[key]
	if twice && len(wrong) == 0 {
		d.reader.refuse(d.at, "", "is declared at "+other.String()+", too")
	}
	d.reader.seen[key] = d.at
	return len(wrong) == 0 && !twice
}

// lineOf returns the line of a field of a document, or else that of the document.
func lineOf(node *yamlnode.Node, field string, otherwise int) int {
	top, rest, nested := strings.Cut(field, ".")
	for i := 0; i+1 < len(node.Content) && node.Kind == yamlnode.MappingNode; i += 2 {
		if node.Content[i].Value != top {
			continue
		}
		if nested {
			return lineOf(node.Content[i+1], rest, node.Content[i].Line)
		}
		return node.Content[i].Line
	}
	return otherwise
}

func (d Region) check() (v nf.Violations) {
	v = append(v, required("cloud_region_id", d.ID)...)
	given := 0
	for _, one := range []bool{d.KubeconfigFile != "", d.Kubeconfig != "", d.Access != nil} {
		if one {
			given++
		}
	}
	if given != 1 {
		v = append(v, nf.Violation{Field: "access", Message: "give exactly one of access, kubeconfig and kubeconfig_file"})
	}
	if d.KubeContext != "" && d.KubeconfigFile == "" {
		v = append(v, nf.Violation{Field: "kube_context", Message: "needs kubeconfig_file"})
	}
	return v
}

func (d Package) check() nf.Violations {
	return slices.Concat(required("csar_id", d.ID), required("path", d.Path))
}

func (d Instance) check() nf.Violations {
	v := slices.Concat(required("vnf_instance_name", d.Name), required("csar_id", d.InstanceEdit.Package))
	if (d.InstanceTarget.Region == "") == (d.Placement == nil) {
		v = append(v, nf.Violation{Field: "cloud_region_id", Message: "give exactly one of cloud_region_id and placement"})
	}
	return v
}

// rival returns where an earlier instance is declared that can be the same one as d: the
// region or the namespace of one of them is not declared.
func (r *reader) rival(d Instance) (Origin, bool) {
	for _, other := range r.set.Instances {
		placed := d.Placement != nil || other.Placement != nil
		projects := cmp.Or(d.Project, nf.DefaultProject) == cmp.Or(other.Project, nf.DefaultProject)
		namespaces := d.Namespace == other.Namespace || d.Namespace == "" || other.Namespace == ""
		if placed && projects && namespaces && d.Name == other.Name {
			return other.Origin, true
		}
	}
	return Origin{}, false
}

func required(field, value string) nf.Violations {
	if value == "" {
		return nf.Violations{{Field: field, Message: "is missing"}}
	}
	return nil
}

// parameters reads the parameter files of an instance.
func (r *reader) parameters(at Origin, d *Instance) (v nf.Violations) {
	all := map[string]any{}
	for _, name := range d.ParameterFiles {
		some, err := r.parameterFile(Beside(at, name))
		if err != nil {
			v = append(v, nf.Violation{Field: "parameter_files", Message: "cannot read " + name + ": " + err.Error()})
		}
		maps.Copy(all, some)
	}
	if maps.Copy(all, d.Parameters); len(all) > 0 {
		d.Parameters = all
	}
	return v
}

func (r *reader) parameterFile(name string) (out map[string]any, err error) {
	text, err := r.read(name)
	if err != nil {
		return nil, err
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&out)
	return out, err
}

// Beside returns the path of a file that a declaration names.
func Beside(at Origin, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(at.File), name)
}
