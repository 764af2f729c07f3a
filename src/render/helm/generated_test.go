package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestGeneratedLikeHelm compares our rendering of generated charts with Helm's.
func TestGeneratedLikeHelm(t *testing.T) { rapid.Check(t, likeHelm) }

func FuzzGeneratedLikeHelm(f *testing.F) { f.Fuzz(rapid.MakeFuzz(likeHelm)) }

func likeHelm(t *rapid.T) {
	files := chartFiles(t)
	archive := rendertest.TarGz(files)
	values := map[string]any{}
	if rapid.Bool().Draw(t, "values given") {
		values = map[string]any{"s": "given", "up": rapid.Bool().Draw(t, "on"), "sub": map[string]any{"s": "to sub"}, "global": map[string]any{"g": "given"}}
	}
	want, wantErr := byHelm(archive, normalize(values).(map[string]any))
	got, err := byUs(t.Context(), archive, values)
	if (wantErr == nil) != (err == nil) {
		t.Fatalf("Helm fails with %v, we with %v\n%s", wantErr, err, shownFiles(files))
	}
	if err != nil {
		if want.printed == nil || got.printed == nil {
			return
		}
		want, got = made{printed: want.printed}, made{printed: got.printed} // which is not YAML
	}
	if diff := differences(want, nil, got); diff != "" {
		t.Fatalf("%s\n%s", diff, shownFiles(files))
	}
}

func shownFiles(files map[string]string) string {
	var b strings.Builder
	for name, content := range files {
		fmt.Fprintf(&b, "-- %s --\n%q\n", name, content)
	}
	return b.String()
}

// chartFiles draws the files of a chart.
func chartFiles(t *rapid.T) map[string]string {
	files := map[string]string{}
	c := &chartDrawer{t: t, files: files}
	c.draw("c", "c/", 0)
	return files
}

// chartDrawer draws charts.
type chartDrawer struct {
	t     *rapid.T
	files map[string]string
	names int
}

func (c *chartDrawer) oneOf(options ...string) string {
	return rapid.SampledFrom(options).Draw(c.t, "part")
}

func (c *chartDrawer) often() bool { return rapid.IntRange(0, 3).Draw(c.t, "often") > 0 }

func (c *chartDrawer) seldom() bool { return rapid.IntRange(0, 4).Draw(c.t, "seldom") == 0 }

func (c *chartDrawer) number(most int) int { return rapid.IntRange(0, most).Draw(c.t, "number") }

// draw draws a chart into a folder.
func (c *chartDrawer) draw(name, folder string, depth int) {
	metadata := "apiVersion: v2\nname: " + name + "\nversion: 1.2.3\nappVersion: \"4.5\"\ndescription: a chart\n"
	if depth > 0 && c.seldom() {
		metadata += "type: library\n"
	}
	values := drawnValues
	if depth < 2 && c.seldom() || depth == 0 && c.often() {
		metadata += c.dependencies(folder, depth)
		values += "sub:\n  s: from above\n  own: 1\n"
	}
	if before, dependencies, has := strings.Cut(metadata, "dependencies:\n"); has && c.seldom() {
		metadata = strings.Replace(before, "apiVersion: v2", "apiVersion: v1", 1)
		c.files[folder+"requirements.yaml"] = "dependencies:\n" + dependencies
	}
	c.files[folder+"Chart.yaml"] = metadata
	c.files[folder+"values.yaml"] = values
	c.files[folder+"templates/_helpers.tpl"] = c.helpers(name)
	c.files[folder+"conf/a.txt"] = "one\ntwo {{ .no }}\n"
	c.files[folder+"conf/b.yaml"] = "k: v\nl: [1, 2]"
	for i := range 1 + c.number(2) {
		file := c.file(name)
		if c.seldom() {
			file = strings.ReplaceAll(file, "\n", "\r\n")
		}
		if c.seldom() {
			file = "\ufeff" + file
		}
		c.files[fmt.Sprintf("%stemplates/%s%d.yaml", folder, c.oneOf("", "nested/", "z"), i)] = file
	}
	if c.seldom() {
		c.files[folder+"templates/"+c.oneOf("NOTES.txt", "myNOTES.txt", "nested/NOTES.txt")] = "Read {{ .Release.Name }}: not: yaml: [\n"
	}
	if c.seldom() {
		c.extra(folder, name)
	}
	if c.seldom() {
		c.files[folder+"crds/d.yaml"] = c.oneOf("", "---\n", "# a\n---\n") + c.crd() + c.oneOf("", "\n", "\n---\n"+c.crd(), "\n---\n# nothing\n")
	}
}

// extra draws files that charts seldom have.
func (c *chartDrawer) extra(folder, name string) {
	switch c.number(8) {
	case 0:
		c.files[folder+"templates/more.txt"] = c.document(name)
	case 1:
		c.files[folder+"templates/.hidden.yaml"] = c.document(name)
	case 2:
		c.files[folder+"templates/_not/shown.yaml"] = c.document(name)
	case 3:
		c.files[folder+"templates/_partial.yaml"] = "not: [yaml"
	case 4:
		c.files[folder+"crds/read.txt"], c.files[folder+"crds/deep/d.yml"] = "not: [yaml", c.crd()
	case 5:
		c.files[folder+"charts/_left/Chart.yaml"], c.files[folder+"charts/.out/Chart.yaml"] = "not: [yaml", "x"
	case 6:
		c.files[folder+".helmignore"], c.files[folder+"LICENSE"] = "*.yaml\n", "do"
	case 7:
		c.files[folder+"values.schema.json"] = c.oneOf(`{"properties": {"s": {"type": "string"}}}`, `{"properties": {"s": {"pattern": "^(text|given|from above|to sub)$"}}}`, `{"required": ["missing"]}`)
	default:
		c.files[folder+"charts/README.md"] = "no chart"
	}
}

const drawnValues = `s: text
t: "{{ .Values.s }} and {{ include \"name\" . }}"
n: 3
f: 1.5
big: 1234567890
up: true
nothing: null
empty: {}
list: [a, 1, true, {k: v}]
map: {x: "1", y: two, z: {deep: "a: b"}}
block: |
  line one
    line two

folded: >-
  one
  two
global: {g: global}
own: {data: {imported: yes}}
exports: {data: {exported: 1}}
`

// dependencies draws subcharts, and returns what the metadata says of them.
func (c *chartDrawer) dependencies(folder string, depth int) string {
	text := "dependencies:\n"
	for _, name := range []string{"sub", "other"}[:1+c.number(1)] {
		inner := &chartDrawer{t: c.t, files: map[string]string{}}
		inner.draw(name, name+"/", depth+1)
		if c.seldom() {
			c.files[folder+"charts/"+name+"-1.2.3.tgz"] = string(rendertest.TarGz(inner.files))
		} else {
			for path, content := range inner.files {
				c.files[folder+"charts/"+path] = content
			}
		}
		for i := range 1 + c.number(1) {
			text += "- name: " + name + "\n  version: " + c.oneOf(`1.2.3`, `">=1.0.0"`, `^1.2`, `1.x`) + "\n  repository: \"\"\n"
			text += c.oneOf("", "", "  condition: up\n", "  condition: sub.enabled,up\n", "  tags: [front, back]\n")
			if i > 0 || c.seldom() {
				text += fmt.Sprintf("  alias: %s-again%d\n", name, i)
			}
			text += c.oneOf("", "", "  import-values: [data]\n", "  import-values: [{child: own.data, parent: imported}]\n")
		}
	}
	return text
}

// helpers draws named templates.
func (c *chartDrawer) helpers(name string) string {
	return `{{/* Named
templates. */}}
{{- define "name" -}}` + c.oneOf("", " ", "\n") + `{{ .Chart.Name | trunc 63 }}` + c.oneOf("", " ", "\n") + `{{- end -}}
{{ define "labels" }}
app: {{ include "name" . }}
` + c.oneOf("", "{{- if .Values.up }}\nup: \"yes\"\n{{- end }}") + `
{{ end }}
{{- define "` + name + `.only" }}{{ .Values.s }}{{ end }}
{{ define "list" }}{{ range $i, $e := .Values.list }}{{ if $i }},{{ end }}{{ $e }}{{ end }}{{ end }}
` + "{{ define \"empty\" }} {{/* nothing */}} {{ end }}" + c.oneOf("", "{{ block \"blocked\" . }}b{{ end }}", "{{ define \"empty\" }}x{{ end }}")
}

func (c *chartDrawer) name(prefix string) string {
	c.names++
	return fmt.Sprintf("%s%d", prefix, c.names)
}

func (c *chartDrawer) crd() string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + c.name("d") + ".example.org\n  annotations:\n    a: |+\n      b\n"
}

// file draws a template that prints some documents.
func (c *chartDrawer) file(chart string) string {
	var b strings.Builder
	b.WriteString(c.oneOf("", "", "\n", "# comment\n", "---\n", "{{- $x := .Values -}}\n", "  \n", "{{/* c */}}\n"))
	for i := range 1 + c.number(2) {
		if i > 0 {
			b.WriteString(c.oneOf("---\n", "\n---\n", "---  \n", "--- # next\n", "---\n---\n", "\n---\n\n\n", "---\n# only a comment\n---\n", "---\r\n", "---\t\n"))
		}
		document := c.document(chart)
		switch c.number(5) {
		case 0:
			document = "{{- if .Values.up }}\n" + document + "{{- end }}" + c.oneOf("", "\n")
		case 1:
			document = "{{ if .Values.empty }}\n" + document + "\n{{ else }}" + document + "{{ end }}" + c.oneOf("", "\n")
		case 2:
			document = "{{- range until 2 }}\n{{- with $ }}\n---\n" + document + "{{- end }}{{ end }}\n"
		case 3:
			document = strings.TrimRight(document, "\n")
		}
		b.WriteString(document)
	}
	return b.String()
}

// document draws an object.
func (c *chartDrawer) document(chart string) string {
	kind := c.oneOf("v1 ConfigMap", "v1 ConfigMap", "v1 Service", "v1 Secret", "batch/v1 Job", "example.org/v1 Thing", "v1 List", "v1 ServiceAccount", "apps/v1 Deployment")
	version, kind, _ := strings.Cut(kind, " ")
	if kind == "List" {
		return "apiVersion: v1\nkind: List\n" + c.oneOf("", "metadata:\n  annotations: {helm.sh/hook: pre-delete}\n") +
			"items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: " + c.name("l") + "}\n- {apiVersion: v1, kind: Secret, metadata: {name: " + c.name("l") + "}}\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", version, kind, c.oneOf("{{ .Release.Name }}-", "{{ include \"name\" . }}-", "a-")+c.name(""))
	if c.seldom() {
		b.WriteString("  labels:\n    {{- include \"labels\" . | nindent 4 }}\n")
	}
	if c.seldom() {
		b.WriteString("  annotations:\n" + c.hook())
	}
	b.WriteString("data:\n")
	for i := range 1 + c.number(3) {
		b.WriteString("  k" + fmt.Sprint(i) + ":" + c.value(chart))
	}
	return b.String()
}

// hook draws the annotations of a hook.
func (c *chartDrawer) hook() string {
	events := []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "pre-delete", "post-delete", "test", "test-success", "Pre-Install"}
	text := "    helm.sh/hook: " + c.oneOf(events...)
	for range c.number(2) {
		text += c.oneOf(",", ", ", " ,") + c.oneOf(events...)
	}
	text += "\n" + c.oneOf("", "    helm.sh/hook-weight: \"-5\"\n", "    helm.sh/hook-weight: \"7\"\n", "    helm.sh/hook-weight: \"x\"\n", "    \"helm.sh/hook-weight\": ' 3'\n")
	return text + c.oneOf("", "    helm.sh/hook-delete-policy: before-hook-creation\n", "    helm.sh/hook-delete-policy: hook-succeeded, hook-failed\n", "    helm.sh/hook-delete-policy: Hook-Succeeded,unknown\n")
}

// value draws what is behind a key that is indented by two.
func (c *chartDrawer) value(chart string) string {
	block := func(header string) string {
		text := " " + header + "\n    " + c.oneOf("line", "{{ .Values.s }}", "# no comment", "- a") + "\n"
		for range c.number(3) {
			text += "    " + c.oneOf("line", "{{ .Values.s }}", "  more", "{{ .Values.n }}  ", "# no comment", "a: b", "", "---x", c.oneOf("a", "{{- .Values.s }}", "{{ .Values.n -}}")) + "\n"
		}
		return text
	}
	if !c.often() {
		return block(c.oneOf("|", "|-", "|+", ">", ">-", ">+"))
	}
	return " " + c.oneOf(slices.Concat(drawnValueTemplates, []string{`{{ include "` + chart + `.only" . | quote }}`})...) + c.oneOf("\n", "\n", "  \n", "\n\n")
}

// drawnValueTemplates are what charts have behind keys.
var drawnValueTemplates = []string{
	`x`, `"{{ .Values.s }}"`, `{{ .Values.s | quote }}`, `{{ .Values.n }}`, `{{ .Values.big }}`, `{{ .Values.f | quote }}`, `{{ .Values.nothing }}`, `{{ (.Values.missing).too }}`,
	`{{ .Values.missing | default "d" | upper | quote }}`, `{{ tpl .Values.t . | quote }}`, `{{ tpl "{{ .Values.n }}-{{ tpl .Values.t . }}" . | quote }}`,
	`{{ toYaml .Values.map | nindent 4 }}`, "\n{{ toYaml .Values.map | indent 4 }}", `{{ toJson .Values.list }}`, `{{ .Values.map | toYaml | quote }}`, `{{ .Values.block | quote }}`,
	"|\n{{ .Values.block | indent 4 }}", "|-\n{{ .Values.folded | indent 4 }}", `{{ .Files.Get "conf/a.txt" | quote }}`, "{{ (.Files.Glob \"conf/*\").AsConfig | nindent 4 }}",
	"{{ (.Files.Glob \"conf/*\").AsSecrets | nindent 4 }}", `{{ range .Files.Lines "conf/a.txt" }}{{ . }};{{ end }}`, `{{ .Files.Get "no" | default "none" }}`,
	`{{ range $p, $_ := .Files.Glob "**" }}{{ $p | base }} {{ end }}x`, `{{ (lookup "v1" "Secret" "ns" "none") | toJson | quote }}`, `{{ if lookup "v1" "Node" "" "" }}a{{ else }}b{{ end }}`,
	`{{ if and .Values.up (not .Values.empty) }}a{{ else if .Values.f }}b{{ end }}`, `{{ with .Values.map.z }}{{ .deep | quote }}{{ else }}none{{ end }}`, `{{ $d := dict "a" 1 }}{{ $_ := set $d "b" .Values.n }}{{ $d | toJson }}`,
	`{{ range $i, $e := .Values.list }}{{ if eq $i 2 }}{{ break }}{{ end }}{{ $e }}{{ end }}`, `{{ range .Values.empty }}x{{ else }}y{{ end }}`, `{{ .Capabilities.APIVersions.Has "apps/v1" }}`, `{{ .Capabilities.KubeVersion.Version | quote }}`,
	`{{ .Capabilities.KubeVersion.Minor | quote }}`, `{{ .Template.Name | quote }}`, `{{ .Template.BasePath }}`, `{{ .Release.IsInstall }}{{ .Release.Revision }}`, `{{ .Chart.AppVersion | quote }}`, `{{ .Chart.IsRoot }}`,
	`{{ .Values.global.g }}`, `{{ .Values.imported | toJson }}`, `{{ .Values.exported }}`, `{{ .Subcharts | len }}`, `{{ template "list" . }}`, `{{ include "labels" . | trim | quote }}`, `{{ required "s is needed" .Values.s }}`,
	`{{ printf "%s-%d-%v" .Values.s (int .Values.n) .Values.up | quote }}`, `{{ ternary "a" "b" .Values.up }}`, `{{ (index .Values.list 3).k }}`, `{{ index .Values.map "x" | quote }}`, `{{ len .Values.list }}`,
	`{{ .Values.map | keys | sortAlpha | join "," }}`, `{{ .Values.s | b64enc }}`, `{{ regexReplaceAll "t(.)" .Values.s "${1}_" }}`, `{{ regexFindAll "[a-z]" .Values.s -1 | toJson }}`, `{{ .Values.t | sha256sum | trunc 8 | quote }}`,
	`{{ fromYaml (.Files.Get "conf/b.yaml") | toJson }}`, `{{ "a\nb" | quote }}`, "{{ `raw {{ }} ` | quote }}", `{{ 'a' }}{{ 1.50 }}{{ 0x1F }}{{ -3 }}`, `&a {b: 1}`, `!!str 1`, `[a, {{ .Values.n }}]`,
	`{{ $.Values.s }}{{ with $x := .Values.map }}{{ $x.y }}{{ $.Release.Name }}{{ end }}`, `{{ gt (int .Values.n) 2 }}{{ ne "a" "b" }}{{ le 1.5 .Values.f }}`, `{{ .Values.Upper }}`, `{{ durationSeconds "1m" }}{{ durationRoundTo "90s" "1m" }}`,
	`{{ (.Values.map).y | quote }}`, `{{ (dict "Key" (dict "Inner" "v")).Key.Inner }}`, `{{ list .Chart.Name .Release.Name | join "/" }}`, `{{ eq .Chart.Name "c" }}`, `{{ .Values.map.z.deep | quote }}`, `{{ .Values | len }}`,
	`{{ print .Chart.Version | replace "." "_" }}`, `{{ if .Capabilities.APIVersions.Has "no/v1" }}a{{ end }}`, `{{ .Files.GetBytes "conf/b.yaml" | len }}`, `{{ include "empty" . | quote }}`, `{{ tpl (.Files.Get "conf/b.yaml") . | fromYaml | toJson }}`,
}
