package helm

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// declared returns the names of the functions in the tables of a package's file:
// it hands them out in no other way.
func declared(t *testing.T, pkg, file string) []string {
	t.Helper()
	where, err := build.Import(pkg, ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(where.Dir, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	add := func(n ast.Expr) {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			name, _ := strconv.Unquote(text.Value)
			names = append(names, name)
		}
	}
	ast.Inspect(source, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr: // "toYaml": …
			if file == "funcs.go" {
				add(n.Key)
			}
		case *ast.AssignStmt: // funcMap["include"] = …
			if index, ok := n.Lhs[0].(*ast.IndexExpr); ok && fmt.Sprint(index.X) == "funcMap" {
				add(index.Index)
			}
		}
		return true
	})
	if len(names) < 4 {
		t.Fatalf("%s of %s declares %q", file, pkg, names)
	}
	return names
}

// TestEveryFunctionIsCounted looks for functions that run unseen, also for those
// that a later version of a library brings.
func TestEveryFunctionIsCounted(t *testing.T) {
	names := slices.Concat(
		slices.Collect(maps.Keys(sprig.TxtFuncMap())), declared(t, "helm.sh/helm/v4/pkg/engine", "funcs.go"),
		declared(t, "helm.sh/helm/v4/pkg/engine", "engine.go"), declared(t, "text/template", "funcs.go"),
	)
	slices.Sort(names)
	elsewhere := map[string]string{
		"env": "Helm removes it", "expandenv": "Helm removes it",
		"include": "the template that it calls begins with " + callFunc, "tpl": "its text is wrapped in " + tplFunc,
		"and": "in constant time", "or": "in constant time", "not": "in constant time", "len": "in constant time",
		"slice": "", "call": "in constant time: there is no function to be called",
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), -1, errTime(time.Second))
	defer cancel()
	counted := functions(&meter{ctx: ctx, limit: maxWork}, &lookup{})
	for _, name := range slices.Compact(names) {
		f, ok := counted[name]
		if !ok {
			unlike := fmt.Sprintf("{{ %s %s.x }}", name, "")
			if _, known := elsewhere[name]; !known && !strings.Contains(instrument(unlike).text, argFunc) {
				t.Errorf("%s runs unseen", name)
			}
			continue
		}
		function := reflect.ValueOf(f)
		args := make([]reflect.Value, function.Type().NumIn())
		for i := range args {
			args[i] = reflect.Zero(function.Type().In(i))
		}
		call := function.Call
		if function.Type().IsVariadic() {
			call = function.CallSlice
		}
		func() {
			defer func() {
				if end, ok := recover().(*limitError); !ok || end.Error() != "the rendering takes more than 1s" {
					t.Errorf("%s runs after the end", name)
				}
			}()
			call(args)
		}()
	}
	if len(counted) < 230 {
		t.Errorf("only %d functions are counted", len(counted))
	}
}

// called runs a function of a meter on values, and returns what is said of a
// failure.
func called(t *testing.T, m *meter, known template.FuncMap, name string, args []any) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "{{ $x := %s", name)
	for i := range args {
		fmt.Fprintf(&b, " (index .a %d)", i)
	}
	const file = "c/templates/a.yaml"
	parsed, err := template.New(file).Funcs(template.FuncMap{name: known[name]}).Parse(b.String() + " }}")
	if err != nil {
		t.Fatal(err)
	}
	if err = parsed.Execute(&b, map[string]any{"a": args}); err == nil {
		return ""
	}
	r := &report{}
	fault := templateError{names: []string{file}, m: m, l: &lookup{}, err: err}
	if m.err != nil {
		return m.err.at(fault.limited()).Error()
	}
	fault.report(r)
	return r.err("render").Error()
}

// hostile returns values for a parameter of a type.
func hostile(of reflect.Type) []any {
	texts := []any{"", "x", "é", "\x00", "%!d(", "(", "a: [", "9999999999999999999999", "-1", "2006-13-45", "x,y", "[0]{1,2000}", strings.Repeat("x", 300)}
	numbers := []any{0, -1, 1, 2, 5, 1 << 40, math.MaxInt, math.MinInt}
	table := map[string]any{"a": nil, "b": map[string]any{"c": []any{1, nil}}, "scheme": 1, "userinfo": "%"}
	switch of.Kind() {
	case reflect.String:
		return texts
	case reflect.Int, reflect.Int64:
		return numbers
	case reflect.Uint32:
		return []any{uint32(0), uint32(math.MaxUint32)}
	case reflect.Bool:
		return []any{true, false}
	case reflect.Float64:
		return []any{0.0, -1.5, math.MaxFloat64}
	case reflect.Map:
		return []any{map[string]any{}, table}
	case reflect.Slice:
		return []any{[]any{}, []any{"x", nil, 1, table}}
	case reflect.Struct:
		return []any{reflect.Zero(of).Interface()}
	default:
		return append([]any{nil, true, 1.5, math.MaxFloat64, []any{}, []any{"x", nil, 1, table}, table, []string{"a"}, []byte("x"), time.Time{}}, slices.Concat(texts, numbers)...)
	}
}

// slow are functions that take long whatever they are given; they are called
// less often.
var slow = []string{"bcrypt", "derivePassword", "genCA", "genPrivateKey", "genSelfSignedCert", "genSignedCert", "htpasswd"}

// goText is what only a Go programmer understands.
var goText = regexp.MustCompile(`runtime error|reflect[:.]|interface conversion|goroutine|nil pointer dereference|makeslice|\[recovered\]|\.go:\d|strconv\.|0x[0-9a-f]{6}`)

// argumentsOf returns values for the parameters of a function, others in each
// round.
func argumentsOf(of reflect.Type, round int, values func(reflect.Type) []any) []any {
	var types []reflect.Type
	for in := range of.Ins() {
		types = append(types, in)
	}
	if of.IsVariadic() {
		last := types[len(types)-1].Elem()
		types = append(types[:len(types)-1], last, last, last)[:len(types)-1+round%4]
	}
	var args []any
	for i, in := range types {
		options := values(in)
		args = append(args, options[(round*(2*i+1)+round/len(options)*i)%len(options)])
	}
	return args
}

// eachFunction calls a test with every function that a template can call.
func eachFunction(t *testing.T, test func(name string, of reflect.Type)) {
	t.Helper()
	known := functions(&meter{ctx: t.Context(), limit: maxWork}, &lookup{meter: &meter{}})
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !strings.HasPrefix(name, "__") && name != "lookup" {
			test(name, reflect.TypeOf(known[name]))
		}
	}
}

// TestNoGoErrors calls every function with what it does not expect.
func TestNoGoErrors(t *testing.T) {
	t.Parallel()
	failed := 0
	m := &meter{}
	known := functions(m, &lookup{meter: m})
	eachFunction(t, func(name string, of reflect.Type) {
		rounds := 40
		if slices.Contains(slow, name) {
			rounds = 3
		}
		for round := range rounds {
			*m = meter{ctx: t.Context(), limit: 1 << 20}
			args := argumentsOf(of, round, hostile)
			said := called(t, m, known, name, args)
			if said == "" {
				continue
			}
			failed++
			named := m.err != nil || name == "fail" || name == "required" || strings.Contains(said, name)
			if goText.MatchString(said) || !strings.Contains(said, "c/templates/a.yaml:1") || !named {
				t.Errorf("%s %.200q: %s", name, fmt.Sprint(args...), said)
			}
		}
	})
	if failed < 700 {
		t.Errorf("only %d calls have failed", failed)
	}
}

func TestFailuresInWords(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, call, want string }{
		"Substr":  {"a text is shorter than that", `substr 5 2 "x"`, "error calling substr: the arguments are out of range"},
		"Div":     {"nothing is divided by zero", `div 1 0`, "error calling div: division by zero"},
		"Mod":     {"nor is its remainder", `mod 1 0`, "error calling mod: division by zero"},
		"DivF":    {"nor are decimals", `divf 1 0`, "error calling divf: division by zero"},
		"Chunk":   {"pieces have a size", `chunk 0 (list 1)`, "error calling chunk: the arguments are out of range"},
		"Nil":     {"nothing is not a list", `append nil 1`, "error calling append: an argument is nil"},
		"Kind":    {"a table has texts as its keys", `dig 1 2 3 (dict)`, "error calling dig: an argument has the wrong type"},
		"Pattern": {"a pattern is one", `regexFind "(" "x"`, "error calling regexFind: the pattern is not a regular expression"},
		"Number":  {"numbers have a size", `semver "9999999999999999999999.0.0"`, "error calling semver: a number is out of range"},
		"Missing": {"a value is there before one in it is", `.Values.a.b`, "cannot read .b: the value before it is null or missing"},
		"Field":   {"a list has no fields", `(list 1).a`, "a list has no field a"},
		"Type":    {"a table is no text", `repeat 1 .Values`, "a text is needed, not an object"},
		"Sprig":   {"what Sprig says stays", `concat 1`, "error calling concat: Cannot concat type int as list"},
		"Engine":  {"so does what the engine says", `index (list 1) 5`, "error calling index: index out of range: 5"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Renderer{}.Render(t.Context(), input(one("a: b\n{{ "+tc.call+" }}")))
			found := nf.ViolationsOf(err)
			if len(found) != 1 || found[0].File != "c/templates/a.yaml" || found[0].Line != 2 || !strings.HasSuffix(found[0].Message, tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// large returns values of which much can be made, by the kinds of parameters.
func large() map[reflect.Kind][]any {
	const size = 1 << 20
	text := strings.Repeat("x", size)
	list, shared, table := make([]any, size/50), make([]any, size/50), make(map[string]any, size/50)
	for i := range list {
		list[i], shared[i], table[strconv.Itoa(i)] = i, text, i
	}
	deep := any(list)
	for range maxDepth - 10 {
		deep = []any{deep}
	}
	texts := []any{
		text, "x", "", strings.Repeat(",", size), strings.Repeat("\x00", size), strings.Repeat("%[1]s", size/5), strings.Repeat(`\pL`, size/10),
		"[" + strings.Repeat("[],", size/3) + "]", strings.Repeat("((x{10}){10}){10}", size/100), strings.Repeat("é ", size/3), strings.Repeat("\n", size),
	}
	return map[reflect.Kind][]any{
		reflect.String: texts, reflect.Int: {1_000_000, 1, 0, -1, math.MaxInt},
		reflect.Map: {table, map[string]any{"a": deep, "b": shared}, map[string]any{}}, reflect.Slice: {list, shared},
		reflect.Interface: append([]any{list, shared, table, deep}, texts...),
	}
}
