package src_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// embeddable are the types of other modules that a struct may embed. Each is an
// interface that the struct decorates, or a record.
var embeddable = map[string]string{
	"io.Reader":               "an interface",
	"io.ReadSeeker":           "an interface",
	"io.Closer":               "an interface",
	"io.ReadCloser":           "an interface",
	"net.Conn":                "an interface",
	"net.Listener":            "an interface",
	"net/http.RoundTripper":   "an interface",
	"net/http.ResponseWriter": "an interface",
	"go.opentelemetry.io/otel/sdk/trace.SpanExporter":                    "an interface",
	"go.uber.org/zap/zapcore.LevelEnabler":                               "an interface",
	"golang.org/x/crypto/ssh/agent.Agent":                                "an interface",
	"github.com/santhosh-tekuri/jsonschema/v6.Regexp":                    "an interface",
	"k8s.io/client-go/discovery.AggregatedDiscoveryInterfaceWithContext": "an interface",
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured":     "an object of Kubernetes is a map, and its methods read that map",
	"k8s.io/apimachinery/pkg/runtime/schema.GroupVersionKind":            "a name of three parts",
	"k8s.io/apimachinery/pkg/runtime/schema.GroupVersionResource":        "a name of three parts",
	"go.opentelemetry.io/proto/otlp/trace/v1.Span":                       "a message is a record, and its methods read its fields",
	"go.yaml.in/yaml/v3.Node":                                            "a node of a document is a record",
}

// TestEmbeds checks that structs share only fields and interfaces. A struct that
// embeds a type with behavior has every method of it, also those that its users
// must not call.
func TestEmbeds(t *testing.T) {
	for _, finding := range indexTypes(parseAll(t, os.DirFS("."))).check() {
		t.Error(finding)
	}
}

// TestCheckEmbeds proves that the check finds each kind of violation.
func TestCheckEmbeds(t *testing.T) {
	const engine = "type engine struct{ n int }\nfunc (e *engine) Stop(id string) error { return nil }\n"
	const record = "type record struct{ N int }\nfunc (r record) Valid(deep bool) bool { return true }\n"
	cases := map[string]struct {
		reason string
		source string
		want   string // in a finding; empty: none
	}{
		"Engine":          {"all methods of the engine are promoted", engine + "type t struct{ engine }", "nf/a.go: t embeds nf.engine"},
		"Pointer":         {"a pointer promotes them, too", engine + "type t struct{ *engine }", "nf/a.go: t embeds nf.engine"},
		"Indirect":        {"a struct promotes the methods that it embeds", record + "type u struct {\nrecord\nn int\n}\ntype t struct{ u }", "nf/a.go: t embeds nf.u"},
		"Alias":           {"another name is the same type", engine + "type u = engine\ntype t struct{ u }", "nf/a.go: t embeds nf.u"},
		"Generic":         {"type parameters do not matter", "type u[K any] struct{ k K }\nfunc (u[K]) Get() {}\ntype t struct{ u[int] }", "nf/a.go: t embeds nf.u"},
		"Anonymous":       {"a struct may have no name", engine + "var _ = struct{ *engine }{}", "nf/a.go: a struct embeds nf.engine"},
		"OtherPackage":    {"types of other packages count", `import "` + module + `store"` + "\ntype t struct{ store.Table }", "nf/a.go: t embeds store.Table"},
		"OtherModule":     {"a type of another module is listed", `import "time"` + "\ntype t struct{ time.Time }", "nf/a.go: t embeds time.Time"},
		"Listed":          {"an interface of another module can be decorated", `import "io"` + "\ntype t struct{ io.Reader }", ""},
		"Interface":       {"an interface can be decorated", "type i interface{ Get() }\ntype t struct{ i }", ""},
		"Error":           {"error is an interface", "type t struct{ error }", ""},
		"NoMethods":       {"fields alone are shared", "type u struct{ n int }\ntype t struct{ u }", ""},
		"Record":          {"a record has no state to protect", record + "type t struct{ record }", ""},
		"RecordOfRecords": {"nor has one that consists of records", record + "type u struct{ record }\nfunc (u) Get() {}\ntype t struct{ u }", ""},
		"NamedRecord":     {"a type that is declared by another one has its fields", record + "type u record\nfunc (u) Get() {}\ntype t struct{ u }", ""},
		"Named":           {"a field with a name promotes nothing", engine + "type t struct{ e *engine }", ""},
		"Shadow":          {"one name has one meaning", record + "type t struct{ record }\nfunc (t) Valid() bool { return true }", "nf/a.go: t.Valid hides a method with another signature, nf.record.Valid"},
		"ShadowInterface": {"a decorator keeps the meaning", "type i interface{ Get(string) error }\ntype t struct{ i }\nfunc (t) Get() error { return nil }", "nf/a.go: t.Get hides a method with another signature, nf.i.Get"},
		"ShadowDeep":      {"a promoted method may come from far below", record + "type u struct{ record }\ntype t struct{ u }\nfunc (t) Valid() bool { return true }", "nf/a.go: t.Valid hides a method"},
		"Override":        {"the same signature is an override", record + "type t struct{ record }\nfunc (x t) Valid(_ bool) bool { return true }", ""},
		"OverrideOther":   {"a type has one name in all packages", `import s "` + module + `store"` + "\ntype t struct{ s.Getter }\nfunc (t) Get(a, b *s.Table) error { return nil }", ""},
	}
	const other = "package store\ntype Table struct{ n int }\nfunc (*Table) Get() {}\ntype Getter interface{ Get(x *Table, y *Table) error }\n"
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{
				"nf/a.go":      &fstest.MapFile{Data: []byte("package nf\n" + tc.source)},
				"nf/a_test.go": &fstest.MapFile{Data: []byte("package nf\ntype kit struct{ *engine }\n")},
				"store/b.go":   &fstest.MapFile{Data: []byte(other)},
			}
			got := indexTypes(parseAll(t, tree)).check()
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("%s: found %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// typeIndex holds the types of a tree by folder and name, except those of tests.
type typeIndex struct {
	files map[string]*ast.File
	types map[string]*indexedType
}

// indexedType is a type with the names and the signatures of its own methods.
type indexedType struct {
	in      source
	expr    ast.Expr
	alias   bool
	methods map[string]string
}

// source is a file. The names in it are resolved by its imports.
type source struct {
	name string
	file *ast.File
}

func indexTypes(files map[string]*ast.File) typeIndex {
	x := typeIndex{files: map[string]*ast.File{}, types: map[string]*indexedType{}}
	for name, file := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		x.files[name] = file
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				x.declare(source{name, file}, g)
			}
		}
	}
	for name, file := range x.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			s := source{name, file}
			if found := x.types[s.typeName(f.Recv.List[0].Type)]; found != nil {
				found.methods[f.Name.Name] = s.signature(f.Type)
			}
		}
	}
	return x
}

func (x typeIndex) declare(s source, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		declared, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		found := &indexedType{in: s, expr: declared.Type, alias: declared.Assign.IsValid(), methods: map[string]string{}}
		if i, ok := declared.Type.(*ast.InterfaceType); ok {
			for _, f := range i.Methods.List {
				for _, name := range f.Names {
					found.methods[name.Name] = s.signature(f.Type.(*ast.FuncType))
				}
			}
		}
		x.types[s.typeName(declared.Name)] = found
	}
}

// check returns the structs that embed a type with behavior, and the methods
// that hide one with another signature.
func (x typeIndex) check() []string {
	var findings []string
	for name, file := range x.files {
		s := source{name, file}
		names := map[ast.Expr]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				names[n.Type] = n.Name.Name
			case *ast.StructType:
				for _, embedded := range s.embedded(n) {
					if !x.maybeEmbedded(embedded) {
						findings = append(findings, fmt.Sprintf("%s: %s embeds %s, and has all of its methods: give the field a name, or embed an interface", name, orText(names[n], "a struct"), embedded))
					}
				}
			}
			return true
		})
	}
	for key, t := range x.types {
		for embedded := range t.embeds() {
			for method, signature := range t.methods {
				if hidden, of := x.promoted(embedded, method, nil); hidden != "" && hidden != signature {
					findings = append(findings, fmt.Sprintf("%s: %s.%s hides a method with another signature, %s.%s: give it another name", t.in.name, path.Ext(key)[1:], method, of, method))
				}
			}
		}
	}
	return slices.Sorted(slices.Values(findings))
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// maybeEmbedded reports whether a struct may embed a type.
func (x typeIndex) maybeEmbedded(name string) bool {
	found, ours := x.types[name]
	switch {
	case name == "error":
		return true
	case !ours:
		_, listed := embeddable[name]
		return listed
	case found.alias:
		return x.maybeEmbedded(found.in.typeName(found.expr))
	}
	if _, ok := found.expr.(*ast.InterfaceType); ok {
		return true
	}
	return !x.hasMethods(name, nil) || x.isRecord(name)
}

// hasMethods reports whether a type has methods, of its own or promoted ones.
func (x typeIndex) hasMethods(name string, seen []string) bool {
	found, ours := x.types[name]
	if !ours || slices.Contains(seen, name) {
		return !ours
	}
	if len(found.methods) > 0 {
		return true
	}
	for embedded := range found.embeds() {
		if x.hasMethods(embedded, append(seen, name)) {
			return true
		}
	}
	return false
}

// isRecord reports whether everybody may read and write every field of a struct.
func (x typeIndex) isRecord(name string) bool {
	found, ours := x.types[name]
	if !ours {
		return false
	}
	fields, ok := found.expr.(*ast.StructType)
	if !ok {
		return x.isRecord(found.in.typeName(found.expr))
	}
	for _, f := range fields.Fields.List {
		if len(f.Names) == 0 && !x.maybeEmbedded(found.in.typeName(f.Type)) {
			return false
		}
		for _, field := range f.Names {
			if !field.IsExported() {
				return false
			}
		}
	}
	return true
}

// promoted returns the signature of a type's method, of its own or a promoted
// one, and the type that declares it. Without a method, both are empty.
func (x typeIndex) promoted(name, method string, seen []string) (signature, of string) {
	found := x.types[name]
	if found == nil || slices.Contains(seen, name) {
		return "", ""
	}
	if signature, ok := found.methods[method]; ok {
		return signature, name
	}
	for embedded := range found.embeds() {
		if signature, of := x.promoted(embedded, method, append(seen, name)); signature != "" {
			return signature, of
		}
	}
	return "", ""
}

// embeds returns the types that a type embeds, or that it is an alias of.
func (t *indexedType) embeds() map[string]bool {
	out := map[string]bool{}
	if t.alias {
		out[t.in.typeName(t.expr)] = true
	}
	switch expr := t.expr.(type) {
	case *ast.StructType:
		for _, name := range t.in.embedded(expr) {
			out[name] = true
		}
	case *ast.InterfaceType:
		for _, f := range expr.Methods.List {
			if len(f.Names) == 0 {
				out[t.in.typeName(f.Type)] = true
			}
		}
	}
	return out
}

func (s source) embedded(t *ast.StructType) []string {
	var out []string
	for _, f := range t.Fields.List {
		if len(f.Names) == 0 {
			out = append(out, s.typeName(f.Type))
		}
	}
	return out
}

// typeName returns a type's folder and name, or the path of its module and its
// name. It leaves out the pointer and the type parameters.
func (s source) typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		if types.Universe.Lookup(t.Name) != nil {
			return t.Name
		}
		return path.Dir(s.name) + "." + t.Name
	case *ast.StarExpr:
		return s.typeName(t.X)
	case *ast.IndexExpr:
		return s.typeName(t.X)
	case *ast.IndexListExpr:
		return s.typeName(t.X)
	case *ast.SelectorExpr:
		return s.imported(t.X.(*ast.Ident).Name) + "." + t.Sel.Name
	}
	return ""
}

// imported returns the path of the package with a name in this file. It is
// relative to src for our packages.
func (s source) imported(name string) string {
	for _, i := range s.file.Imports {
		found, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		last := path.Base(found)
		if version, ok := strings.CutPrefix(last, "v"); ok && strings.Trim(version, "0123456789") == "" {
			last = path.Base(path.Dir(found))
		}
		if i.Name != nil && i.Name.Name == name || i.Name == nil && last == name {
			return strings.TrimPrefix(found, module)
		}
	}
	return name
}

// signature returns the types of a function's parameters and results. They are
// equal for equal types in all files.
func (s source) signature(f *ast.FuncType) string {
	side := func(list *ast.FieldList) string {
		var out []string
		for _, field := range list.List {
			out = append(out, slices.Repeat([]string{s.typeText(field.Type)}, max(1, len(field.Names)))...)
		}
		return "(" + strings.Join(out, ", ") + ")"
	}
	results := f.Results
	if results == nil {
		results = &ast.FieldList{}
	}
	return side(f.Params) + side(results)
}

func (s source) typeText(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return "*" + s.typeText(t.X)
	case *ast.Ellipsis:
		return "..." + s.typeText(t.Elt)
	case *ast.ArrayType:
		return "[]" + s.typeText(t.Elt)
	case *ast.MapType:
		return "map[" + s.typeText(t.Key) + "]" + s.typeText(t.Value)
	case *ast.IndexExpr:
		return s.typeName(t.X) + "[" + s.typeText(t.Index) + "]"
	case *ast.IndexListExpr:
		out := s.typeName(t.X)
		for _, index := range t.Indices {
			out += " " + s.typeText(index)
		}
		return out
	case *ast.FuncType:
		return "func" + s.signature(t)
	case *ast.Ident, *ast.SelectorExpr:
		return s.typeName(t)
	}
	return types.ExprString(t)
}
