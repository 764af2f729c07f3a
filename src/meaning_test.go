package src_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// textReaders are the functions that may read a text for people, with the reason.
var textReaders = map[string]string{
	"syntax/syntax.go YAML":                      "the YAML library says the line in its text alone",
	"render/manifest/yaml.go reader.syntaxError": "the YAML library says the line in its text alone",
	"render/helm/failure.go withoutTypes":        "the template library says the place in its text alone, with Go's types",
	"render/helm/failure.go meter.clean":         "and quotes values that are masked",
	"render/helm/template.go checkTemplate":      "so does the template engine",
	"render/helm/template.go templateFault":      "and says the place in its text alone",
	"cluster/errors.go isPermanentRejection":     "Kubernetes has no code for an exceeded quota",
	"cluster/errors.go missingRule":              "and none that tells a missing permission from an admission plugin",
	"cluster/errors.go internalKind":             "nor one that tells an object that does not fit its schema from an error of etcd",
	"cluster/errors.go mentioned":                "Kubernetes names a field manager in a message alone",
	"store/mongo/open.go Store.find":             "MongoDB says in a message that the server is a mongos",
	"nf/text.go Text.parts":                      "a placeholder is no word",
}

// TestMeaningIsData checks that no code reads a title, a message, a reason's
// sentence or the text of an error, and that every reason has a name.
func TestMeaningIsData(t *testing.T) {
	for _, finding := range checkMeaning(t, os.DirFS(".")) {
		t.Error(finding)
	}
}

func TestCheckMeaning(t *testing.T) {
	cases := map[string]struct {
		reason string
		source string
		want   string // in a finding; empty: nothing is found
	}{
		"Error":      {"the text of an error is for people", `var _ = strings.Contains(err.Error(), "gone")`, "reads err.Error()"},
		"Title":      {"a title is for people", `var _ = strings.HasPrefix(step.Title(), "run ")`, "reads step.Title()"},
		"Pattern":    {"with a regular expression, too", `var _ = pattern.FindStringSubmatch(op.Steps[0].Title())`, "reads"},
		"Compared":   {"a comparison is reading", `var _ = step.Title() == "hold"`, "compares step.Title()"},
		"Field":      {"so is a title on the wire", `var _ = op.Steps[i].Title == name`, "compares Title"},
		"Each other": {"a step says itself that it failed", `var _ = op.Failure.Step == op.Steps[i].Name`, "compares Failure.Step"},
		"Contained":  {"what a message says is for people", `var _ = strings.Contains(op.Failure.Message, message)`, "reads Failure.Message"},
		"Alias":      {"whatever the failure is called", `var _ = strings.Contains(f.Message, message)`, "reads f.Message"},
		"Trimmed":    {"cutting a part off is reading", `var _, _ = strings.CutPrefix(op.Failure.Message, "cannot ")`, "reads Failure.Message"},
		"Suffix":     {"at the end, too", `var _ = strings.TrimSuffix(err.Error(), ": gone")`, "reads err.Error()"},
		"Replaced":   {"so is replacing a part", `var _ = strings.ReplaceAll(step.Message, "x", "y")`, "reads step.Message"},
		"Detail":     {"a problem's detail is for people", `var _ = strings.Contains(p.Detail, p.Operation)`, "reads p.Detail"},
		"Variable":   {"so is a message in a variable", `var _ = strings.SplitN(message, ": ", 2)`, "reads message"},
		"Renamed":    {"whatever the variable is called", `func f() { said := err.Error(); _ = strings.Contains(said, "gone") }`, "reads said"},
		"Titled":     {"a title in a variable, too", `func f() { var t string; _, t = 1, step.Title(); _ = strings.HasPrefix(t, "run ") }`, "reads t"},
		"Its own":    {"a reason in a field has a name, too", `var _ = op.Failure.Reason == "gone"`, `compares a reason with "gone"`},
		"Masked":     {"whether masking changed a text is no meaning", `var _ = mask(err.Error()) == err.Error()`, ""},
		"Missing":    {"a text that is missing has no words", `var _ = op.Failure.Step != "" && step.Message == ""`, ""},
		"Handed on":  {"a function that is given a title could read it", `var _ = trace.Step(ctx, step.Title())`, "hands step.Title() on"},
		"Own":        {"so could one of the package", `var _ = stepName(s.Title())`, "hands s.Title() on"},
		"Logged":     {"a log prints a title", `func f() { log.DebugContext(ctx, "step begins", "step", next.Title()); _ = attribute.String("step", next.Title()) }`, ""},
		"Printed":    {"printing a text does not read it", `var _ = fmt.Sprint(err.Error(), step.Title())`, ""},
		"Reason":     {"a reason has a name", `var _ = nf.ReasonOf(err) == "gone"`, `compares a reason with "gone"`},
		"Switched":   {"in a switch, too", `func f() { switch nf.ReasonOf(err) { case "gone": } }`, `compares a reason with "gone"`},
		"Made":       {"a new error uses the reason's name", `var _ = &nf.Error{Kind: nf.Conflict, Reason: "gone"}`, `gives the reason "gone"`},
		"Named":      {"a name is what is wanted", `var _ = &nf.Error{Reason: nf.ReasonHeld}; var _ = nf.ReasonOf(err) == nf.ReasonHeld`, ""},
		"No reason":  {"none is none", `var _ = nf.ReasonOf(err) == ""`, ""},
		"Other type": {"another type's field is another's", `var _ = Status{Reason: "NotFound"}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			findings := checkMeaning(t, houseOf(tc.source))
			if !found(findings, tc.want) {
				t.Errorf("%s: found %q, want %q", tc.reason, findings, tc.want)
			}
		})
	}
}

// checkMeaning returns the places of a tree that read what is written for people.
func checkMeaning(t *testing.T, tree fs.FS) []string {
	t.Helper()
	files := parseAll(t, tree)
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, decl := range files[name].Decls {
			if textReaders[name+" "+functionOf(decl)] != "" {
				continue
			}
			texts := textsIn(decl)
			ast.Inspect(decl, func(n ast.Node) bool {
				what := misread(n)
				if what == "" {
					what = rereads(n, texts)
				}
				if what != "" {
					findings = append(findings, strings.TrimSpace(name+" "+functionOf(decl))+" "+what)
				}
				return true
			})
		}
	}
	return findings
}

// functionOf returns the name of a declared function, with the type of its
// receiver: "Text.parts". It is empty for other declarations.
func functionOf(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return fmt.Sprint(of) + "." + f.Name.Name
}

// textsIn returns the variables to which a declaration assigns a text for people.
func textsIn(decl ast.Decl) map[string]bool {
	texts := map[string]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if assigned, ok := n.(*ast.AssignStmt); ok && len(assigned.Lhs) == len(assigned.Rhs) {
			for i, from := range assigned.Rhs {
				if variable, ok := assigned.Lhs[i].(*ast.Ident); ok && textOf(from) != "" {
					texts[variable.Name] = true
				}
			}
		}
		return true
	})
	return texts
}

// rereads says that a node reads one of the variables, if it does.
func rereads(n ast.Node, texts map[string]bool) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || !reads(call) {
		return ""
	}
	for _, arg := range call.Args {
		if variable, ok := arg.(*ast.Ident); ok && texts[variable.Name] {
			return "reads " + variable.Name
		}
	}
	return ""
}

// misread says what is wrong with a node, if anything is.
func misread(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		for _, arg := range n.Args {
			switch text := textOf(arg); {
			case text == "":
			case reads(n):
				return "reads " + text
			case strings.HasSuffix(textCall(arg), ".Title()") && !prints(n):
				return "hands " + text + " on"
			}
		}
	case *ast.BinaryExpr:
		if n.Op != token.EQL && n.Op != token.NEQ {
			return ""
		}
		for _, pair := range [...][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
			if text := textOf(pair[0]); text != "" && (literal(pair[1]) != "" || !isError(pair[0]) && !isEmpty(pair[1])) {
				return "compares " + text
			}
			if isReason(pair[0]) && literal(pair[1]) != "" {
				return "compares a reason with " + literal(pair[1])
			}
		}
	case *ast.SwitchStmt:
		return misswitched(n)
	case *ast.CompositeLit:
		return misnamed(n)
	}
	return ""
}

// reads reports whether a call looks into a text.
func reads(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	verbs := []string{"HasPrefix", "HasSuffix", "EqualFold", "TrimPrefix", "TrimSuffix", "Sscanf"}
	families := []string{"Contains", "Count", "Cut", "Fields", "Find", "Index", "LastIndex", "Replace", "Split"}
	return slices.Contains(verbs, f.Sel.Name) || strings.Contains(f.Sel.Name, "Match") ||
		slices.ContainsFunc(families, func(family string) bool { return strings.HasPrefix(f.Sel.Name, family) })
}

// prints reports whether a call only prints its arguments: to a text, to a log, or
// into an attribute of a span.
func prints(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of := fmt.Sprint(f.X)
	return of == "fmt" || of == "slog" || of == "attribute" || f.Sel.Name == "With" || strings.HasSuffix(f.Sel.Name, "Context")
}

// textOf returns the source of a text for people: a call that makes one, a title,
// a message, a problem's detail, or the step that a failure names.
func textOf(e ast.Expr) string {
	if variable, ok := e.(*ast.Ident); ok && variable.Name == "message" {
		return variable.Name
	}
	field, ok := e.(*ast.SelectorExpr)
	if !ok {
		return textCall(e)
	}
	of := ""
	switch x := field.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	name := field.Sel.Name
	if name == "Title" || name == "Message" || name == "Detail" || name == "Step" && of == "Failure" {
		return strings.TrimPrefix(of+"."+name, ".")
	}
	return ""
}

// isError reports whether an expression is the text of an error, which may be
// compared with a masked one.
func isError(e ast.Expr) bool { return strings.HasSuffix(textCall(e), ".Error()") }

// isEmpty reports whether an expression is "".
func isEmpty(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == `""`
}

// textCall returns the source of a call that makes a text for people.
func textCall(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Error" && f.Sel.Name != "Title" {
		return ""
	}
	if x, plain := f.X.(*ast.Ident); plain {
		return x.Name + "." + f.Sel.Name + "()"
	}
	return "a call of " + f.Sel.Name + "()"
}

// isReason reports whether an expression is a reason: of an error, or a field.
func isReason(e ast.Expr) bool {
	if field, ok := e.(*ast.SelectorExpr); ok {
		return field.Sel.Name == "Reason"
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "ReasonOf"
}

// literal returns a text that stands in the source, with its quotes; "" for the
// empty one.
func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING && lit.Value != `""` {
		return lit.Value
	}
	return ""
}

func misswitched(s *ast.SwitchStmt) string {
	if s.Tag == nil || !isReason(s.Tag) {
		return ""
	}
	for _, stmt := range s.Body.List {
		clause, ok := stmt.(*ast.CaseClause)
		if !ok {
			continue
		}
		for _, e := range clause.List {
			if text := literal(e); text != "" {
				return "compares a reason with " + text
			}
		}
	}
	return ""
}

// misnamed looks at the reason of an nf.Error.
func misnamed(lit *ast.CompositeLit) string {
	if f, ok := lit.Type.(*ast.SelectorExpr); !ok || fmt.Sprint(f.X) != "nf" || f.Sel.Name != "Error" {
		return ""
	}
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Reason" && literal(pair.Value) != "" {
			return "gives the reason " + literal(pair.Value)
		}
	}
	return ""
}
