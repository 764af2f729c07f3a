package helm

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstrument(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Text":       {"what can be called is counted", "a", "{{__call 1}}a"},
		"Blank":      {"blanks can call nothing", " \n", " \n"},
		"Print":      {"what is printed is weighed", "{{ .a }}", "{{__call 0}}{{ .a  | __out}}"},
		"Trim":       {"trimming stays", "{{- .a | b -}} x", "{{__call 2}}{{- .a | b | __out -}} x"},
		"Assign":     {"what is assigned is weighed", "{{ $a := 1 }}{{$a = 2}}", "{{__call 0}}{{ $a := 1  | __let}}{{$a = 2 | __let}}"},
		"Variable":   {"a variable is printed", "{{ $a.b }}", "{{__call 0}}{{ $a.b  | __out}}"},
		"Range":      {"rounds are counted with their text", "{{range .}}abc{{if .}}de{{else}}f{{end}}{{end}}", "{{__call 0}}{{range .}}{{__step 6}}abc{{if .}}de{{else}}f{{end}}{{end}}"},
		"RangeTrim":  {"text after a range is trimmed as it was", "{{range . -}} a {{- end}}", "{{__call 0}}{{range . -}}{{__step 3 -}} a {{- end}}"},
		"Bar":        {"a bar may have nothing behind it", "{{.a|}}{{- .b | -}}", "{{__call 0}}{{.a| __out}}{{- .b | __out -}}"},
		"Tight":      {"a keyword may stand beside what follows", "{{range.}}{{if.a}}{{end}}{{end}}", "{{__call 0}}{{range.}}{{__step 0}}{{if.a}}{{end}}{{end}}"},
		"Define":     {"calls are counted", `{{define "a"}}b{{end}}`, `{{define "a"}}{{__call 1}}b{{end}}`},
		"Empty":      {"an empty template replaces no other", `{{define "a"}} {{/* c */}}{{end}}`, `{{define "a"}} {{/* c */}}{{end}}`},
		"Block":      {"a block is a template", `{{block "a" .}}b{{end}}`, `{{__call 0}}{{block "a" .}}{{__call 1}}b{{end}}`},
		"Quotes":     {"an end in quotes is none", "{{ \"}}\" }}{{ `}}` }}{{ '}' }}", "{{__call 0}}{{ \"}}\"  | __out}}{{ `}}`  | __out}}{{ '}'  | __out}}"},
		"Comment":    {"comments are no actions", "{{/* {{ */}}{{- /* }} */ -}}", "{{/* {{ */}}{{- /* }} */ -}}"},
		"Tpl":        {"what is a template at run time is instrumented then", `{{ tpl (.a | b ")").c . }}`, `{{__call 0}}{{ tpl (__tpl (.a | b ")").c) .  | __out}}`},
		"TplText":    {"a text is an operand", "{{ if tpl `a b` . }}{{end}}", "{{__call 0}}{{ if tpl (__tpl `a b`) . }}{{end}}"},
		"TplNot":     {"a field is no function", `{{ .tpl $tpl "tpl" }}`, `{{__call 0}}{{ .tpl $tpl "tpl"  | __out}}`},
		"TplInner":   {"templates make templates", `{{ tpl (tpl .a .) . }}`, `{{__call 0}}{{ tpl (__tpl (tpl (__tpl .a) .)) .  | __out}}`},
		"Method":     {"what a method returns is counted", `{{ .Files.Get "a" | b }}`, `{{__call 0}}{{ .Files.Get "a"  | __let| b  | __out}}`},
		"MethodArg":  {"as an argument, too", `{{ f $f.AsConfig (x .a.B "c") (y).C .Values.d }}`, `{{__call 0}}{{ f ($f.AsConfig | __let) (x (.a.B | __let) "c") ((y).C | __let) .Values.d  | __out}}`},
		"MethodIf":   {"in a condition", `{{ if .A -}}{{ else if .B }}{{ end }}`, `{{__call 0}}{{ if .A | __let -}}{{ else if .B  | __let}}{{ end }}`},
		"MethodWith": {"and in what is handed on", `{{ template "a" .B }}{{ with $x := .C }}{{ end }}`, `{{__call 0}}{{ template "a" .B  | __let}}{{ with $x := .C  | __let}}{{ end }}`},
		"MethodIn":   {"in parentheses", `{{ (.A "b") }}`, `{{__call 0}}{{ (.A "b" | __let)  | __out}}`},
		"Arguments":  {"those of functions that cannot be replaced are counted", `{{ if eq .a "b" 1 -2 true (len .c) now.Unix }}{{end}}`, `{{__call 0}}{{ if eq (__arg .a) "b" 1 -2 true (__arg (len .c)) (__arg now.Unix) }}{{end}}`},
		"MethodText": {"what a method is given is counted", `{{ .F.G .a "b" 1 (c) | d }}{{ .p | .F.G }}`, `{{__call 0}}{{ .F.G (__text .a) "b" 1 (__text (c))  | __let| d  | __out}}{{ .p | __text | .F.G  | __out}}`},
		"Index":      {"also behind a bar", `{{ $x := .a | index .m }}`, `{{__call 0}}{{ $x := .a | index (__arg .m)  | __let}}`},
		"Unclosed":   {"what is no template is let alone", "{{ a", "{{ a"},
		"Unbalanced": {"what is no template is let alone", "{{end}}", "{{end}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, instrument(tc.text).text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzInstrument compares an instrumented template with the one it was made of:
// it is one just if that is, and prints the same.
func FuzzInstrument(f *testing.F) {
	for _, text := range []string{
		"{{- range $i, $e := .l -}} {{$i}}={{ $e -}} {{else}} none {{end}}",
		"{{define \"a\"}} {{ . }} {{end}}{{template \"a\" .s}}{{ tpl \"{{ .s }}\" . }}",
		"{{with $x := .s}}{{$x}}{{else with .n}}b{{end}}{{.missing}}{{ nil }}",
		"{{block \"b\" .m}}{{.k | printf \"%v}}\" }}{{end}} {{- /* c */ -}} x {{`raw }}`}}",
		"{{range .l}}{{if eq . 2}}{{break}}{{end}}{{continue}}{{end}}{{$a := 1}}{{$a = 2}}{{$a}}",
		"{{ tpl (tpl `{{ \"{{ .n }}\" }}` .) . }}{{ 'a' }}{{(.m).k}}{{- -3}}",
		"{{.s|}}{{range.l}}{{if.}}{{with.}}{{.}}{{end}}{{end}}{{end}}",
		"{{ if eq .s \"text\" 1 (index .m \"k\") }}{{ .T.Year }}{{ else if .T.IsZero }}{{ end }}{{ printf \"%v\" .T.Zone }}",
		"{{ .T.Format .s }}{{ .s | .T.Format }}{{ .T.Add (.T.Sub .T) }}{{ .T.AddDate .n 1 (len .l) }}{{ .T.Format .missing }}{{ .n | (.T).Format }}",
		"{{ with $x := .T.UTC -}} {{ $x.Unix }}{{ (.T.Add 3).Unix }}{{ end }}{{ index .l 1 | eq 2 }}{{ template \"u\" .T.Month }}{{ define \"u\" }}{{ . }}{{ end }}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<10 || strings.Contains(text, "__") {
			return
		}
		plainText, plainErr := run(t, text, false)
		if in := instrument(text); in.broken && plainErr == nil {
			t.Fatalf("%q is taken for no template", text)
		}
		metered, err := run(t, instrument(text).text, true)
		if (plainErr == nil) != (err == nil) {
			t.Fatalf("%q fails with %v, and as %q with %v", text, plainErr, instrument(text).text, err)
		}
		if err == nil && plainText != metered {
			t.Fatalf("%q prints %q, and as %q %q", text, plainText, instrument(text).text, metered)
		}
	})
}

// run executes a template with its own tpl.
func run(t *testing.T, text string, metered bool) (string, error) {
	t.Helper()
	m := &meter{ctx: t.Context(), limit: maxWork}
	var b strings.Builder
	funcs := template.FuncMap{stepFunc: m.step, callFunc: m.call, outFunc: m.out, letFunc: m.let, argFunc: m.arg, textFunc: m.text, tplFunc: m.tpl}
	calls := 0
	root := template.New("root").Option("missingkey=zero")
	funcs["tpl"] = func(inner string, data any) (string, error) {
		if calls++; calls > 10 {
			return "", errStack
		}
		var b bytes.Buffer
		parsed, err := template.Must(root.Clone()).New("inner").Parse(inner)
		if err == nil {
			err = parsed.Execute(&b, data)
		}
		return b.String(), err
	}
	if !metered {
		for _, name := range []string{stepFunc, callFunc, outFunc, letFunc, argFunc, textFunc, tplFunc} {
			delete(funcs, name)
		}
	}
	parsed, err := root.Funcs(funcs).Parse(text)
	if err != nil {
		return "", err
	}
	data := map[string]any{"s": "text", "n": 3, "l": []any{1, 2, "x"}, "m": map[string]any{"k": nil}, "T": time.Unix(1, 0).UTC()}
	limited := &limitedWriter{&b, 1 << 16}
	err = parsed.Execute(limited, data)
	return b.String(), err
}

// limitedWriter fails where a template prints too much.
type limitedWriter struct {
	to   *strings.Builder
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return w.to.Write(p)
}
