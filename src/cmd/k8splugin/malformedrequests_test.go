package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// malformed is a request that cannot be understood, and what about it.
type malformed struct {
	reason          string
	path, query     string
	variable, value string // of the path
	header          map[string]string
	body            []byte
	torn            bool // its body is not what its header says
}

// malformedRequests returns requests of an operation. Base is a body that can be
// understood.
func malformedRequests(method string, item *openapi3.PathItem, base string) []malformed {
	op := item.GetOperation(method)
	out := []malformed{}
	for _, p := range slices.Concat(item.Parameters, op.Parameters) {
		out = append(out, malformedParameters(p.Value)...)
	}
	for _, query := range []string{"?%zz", "?a=%zz", "?a;b", "?=", "?%00=%ff", "?dry_run=%zz"} {
		out = append(out, malformed{reason: "a query", query: query})
	}
	out = append(out, malformedHeaders()...)
	if op.RequestBody == nil {
		return out
	}
	content := op.RequestBody.Value.Content
	out = append(out, tornBodies(slices.Min(slices.Collect(maps.Keys(content))))...)
	for _, media := range slices.Sorted(maps.Keys(content)) {
		schema := content[media].Schema.Value
		switch {
		case strings.HasSuffix(media, "json"):
			for _, body := range slices.Concat(brokenDocuments(), wrongDocuments(base, schema)) {
				out = append(out, malformed{reason: "the document " + clipped(body), header: map[string]string{"Content-Type": media}, body: body})
			}
		case media == "multipart/form-data":
			out = append(out, brokenForms(base, schema)...)
		case media == "application/octet-stream": // as any other archive
			for _, a := range slices.Concat(brokenArchives(), archivesOfBrokenFiles()) {
				out = append(out, malformed{reason: a.reason, header: map[string]string{"Content-Type": media}, body: a.content})
			}
		}
	}
	return out
}

// tornBodies end before they should, or are chunks that are none.
func tornBodies(media string) []malformed {
	short := map[string]string{"Content-Type": media, "Content-Length": "50"}
	chunks := map[string]string{"Content-Type": media, "Transfer-Encoding": "chunked"}
	return []malformed{
		{reason: "a body that is cut off", header: short, body: []byte(`{"a": `), torn: true},
		{reason: "a chunk that is cut off", header: chunks, body: []byte("20\r\n{"), torn: true},
		{reason: "chunks without an end", header: chunks, body: []byte("2\r\n{}\r\n"), torn: true},
		{reason: "a chunk without a length", header: chunks, body: []byte("zz\r\n{}\r\n"), torn: true},
		{reason: "a chunk that is too long", header: chunks, body: []byte("1\r\n{}\r\n0\r\n\r\n"), torn: true},
	}
}

func clipped(text []byte) string {
	return fmt.Sprintf("%.300q", text)
}

// malformedValues are none of what a parameter may be.
func malformedValues() []string {
	return []string{"", "x", "-1", "1.5", "99999999999999999999", "{", "[", "\x00", "\xff", "2026-13-45T00:00:00Z", "1e999", strings.Repeat("a", 300)}
}

func malformedParameters(p *openapi3.Parameter) []malformed {
	var out []malformed
	for _, value := range malformedValues() {
		reason := fmt.Sprintf("%.40q as %s", value, p.Name)
		escaped := ""
		for _, c := range []byte(value) {
			escaped += fmt.Sprintf("%%%02x", c)
		}
		switch p.In {
		case openapi3.ParameterInQuery:
			out = append(out, malformed{reason: reason, query: "?" + p.Name + "=" + escaped}, malformed{reason: "twice " + reason, query: "?" + p.Name + "=x&" + p.Name + "=" + escaped})
		case openapi3.ParameterInPath:
			if value != "" {
				out = append(out, malformed{reason: reason, variable: p.Name, value: escaped, query: ""})
			}
		case openapi3.ParameterInHeader:
			if !strings.Contains(value, "\x00") {
				out = append(out, malformed{reason: reason, header: map[string]string{p.Name: value}})
			}
		}
	}
	return out
}

// malformedHeaders are of no use to any request.
func malformedHeaders() []malformed {
	var out []malformed
	for name, values := range map[string][]string{
		"Content-Type": {";", "a/b/c", "application/json; charset", "application/json; charset=utf-16", "text/plain", "multipart/form-data",
			"multipart/form-data; boundary", "multipart/form-data; boundary=", "multipart/mixed; boundary=x", "application/merge-patch+json; ="},
		"Content-Encoding": {"gzip", "x"},
		"Accept":           {";;", "a/b/c"},
		"Authorization":    {"x", "Basic", "Basic !!!", "Basic eA==", "Bearer", "Bearer x.y.z", "Bearer eyJhbGciOiJSUzI1NiJ9.e30.x", "Digest x"},
		"Traceparent":      {"zz", "00-0-0-0"},
		"If-Match":         {`"`, "x"},
		"If-None-Match":    {`"`, "x"},
		"Range":            {"bytes=x-y", "bytes=9999999-"},
		"Prefer":           {"wait=x", "wait=99999999999999999999", "respond-async; ="},
		"Idempotency-Key":  {"", strings.Repeat("k", 5000)},
		"Last-Event-ID":    {"x", "99999999999999999999"},
		"Origin":           {"%zz", "null"},
		"Forwarded":        {"for="},
		"X-Forwarded-For":  {"x"},
		"Cookie":           {"="},
	} {
		for _, value := range values {
			out = append(out, malformed{reason: fmt.Sprintf("%s: %.40q", name, value), header: map[string]string{name: value}, body: []byte(`["`)})
		}
	}
	return out
}

// brokenDocuments are not JSON, or JSON that nothing can be made of.
func brokenDocuments() [][]byte {
	var out [][]byte
	for _, text := range []string{
		"", " ", "{", "[", "{]", `{"a" 1}`, `{"a": 1,}`, `{"a": 1 "b": 2}`, `{a: 1}`, `[1 2]`, `[1,]`, `{} x`, `{}{}`, "nul", "truf", `"`, "\"\x01\"", `"\x"`, `"\u00zz"`, `"\ud800"`,
		"-", "01", "1.", "1e", "1e999", `{"a": 1e999}`, "\ufeff{}", "\xff", "{\"a\": \"\xff\"}", "5", `"x"`, "[]", "[5]", "null", "true", `{"a": 1, "a": 2}`,
		strings.Repeat("[", 200), strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "---\na: b\n", "a=b&c=%zz", "<xml/>",
	} {
		out = append(out, []byte(text))
	}
	return out
}

// wrongDocuments are documents in which one field is not what it must be.
func wrongDocuments(base string, schema *openapi3.Schema) [][]byte {
	var out [][]byte
	for _, path := range fieldsOf(schema, 3) {
		for _, value := range []string{`5`, `1e400`, `18446744073709551616`, `true`, `null`, `"\u0000"`, `"\ud800"`, `"%zz://[x"`, `[[{}]]`, `{"x": {"y": []}}`} {
			document := map[string]any{}
			_ = json.Unmarshal([]byte(base), &document) // there may be none
			set(document, path, json.RawMessage(value))
			// json.Marshal would refuse some of the values.
			out = append(out, written(document))
		}
	}
	return out
}

// fieldsOf returns the paths of what a schema describes; "0" stands for the
// items of a list and for what an object may have more.
func fieldsOf(schema *openapi3.Schema, depth int) [][]string {
	if schema == nil || depth == 0 {
		return nil
	}
	inner := map[string]*openapi3.SchemaRef{}
	maps.Copy(inner, schema.Properties)
	if more := schema.AdditionalProperties.Schema; more != nil {
		inner["more"] = more
	}
	if schema.Items != nil {
		inner["0"] = schema.Items
	}
	var out [][]string
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		out = append(out, []string{name})
		for _, path := range fieldsOf(inner[name].Value, depth-1) {
			out = append(out, append([]string{name}, path...))
		}
	}
	for _, all := range slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf) {
		out = append(out, fieldsOf(all.Value, depth)...)
	}
	return out
}

// set puts a value into a document, in which it makes what is missing on the way.
func set(document map[string]any, path []string, value json.RawMessage) {
	if len(path) == 1 {
		document[path[0]] = value
		return
	}
	if path[1] == "0" { // a list, of one item
		if len(path) == 2 {
			document[path[0]] = []any{value}
			return
		}
		inner := map[string]any{}
		set(inner, path[2:], value)
		document[path[0]] = []any{inner}
		return
	}
	inner, _ := document[path[0]].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
		document[path[0]] = inner
	}
	set(inner, path[1:], value)
}

// written returns a document as JSON, with its raw values as they are.
func written(value any) []byte {
	switch v := value.(type) {
	case json.RawMessage:
		return v
	case map[string]any:
		var fields [][]byte
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, append([]byte(strconv.Quote(name)+": "), written(v[name])...))
		}
		return []byte("{" + string(bytes.Join(fields, []byte(", "))) + "}")
	case []any:
		var items [][]byte
		for _, item := range v {
			items = append(items, written(item))
		}
		return []byte("[" + string(bytes.Join(items, []byte(", "))) + "]")
	}
	text, _ := json.Marshal(value)
	return text
}

// brokenForms are no forms, or forms whose parts cannot be read.
func brokenForms(base string, schema *openapi3.Schema) []malformed {
	const media = "multipart/form-data; boundary=x"
	part := func(header, content string) string {
		return "--x\r\n" + header + "\r\n\r\n" + content + "\r\n--x--\r\n"
	}
	field := func(name, content string) string {
		return part(`Content-Disposition: form-data; name="`+name+`"`, content)
	}
	file := func(name, content string) string {
		return part(`Content-Disposition: form-data; name="`+name+`"; filename="f"`, content)
	}
	bodies := map[string]string{
		"an empty form": "", "no form": "x", "no part": "--x--\r\n", "an unended form": "--x\r\n", "an unended header": "--x\r\nContent-Disposition: form-data",
		"a header that is none": part("x", "y"), "a header of a control character": part("Content-Disposition: \x01", "y"), "a part that is unended": "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nabc",
		"a part without a name": part("Content-Disposition: form-data", "y"), "a part without a header": part("", "y"), "a disposition that is none": part("Content-Disposition: ;;;", "y"),
		"quoted text that is broken": part("Content-Disposition: form-data; name=\"metadata\"\r\nContent-Transfer-Encoding: quoted-printable", "=zz"),
		"a huge header":              part("X: "+strings.Repeat("a", 200_000), "y"),
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		switch name {
		case "file":
			for _, a := range brokenArchives() {
				bodies["the file of "+a.reason] = file(name, string(a.content))
			}
		default:
			for i, document := range brokenDocuments() {
				bodies[fmt.Sprintf("the field %s, %d", name, i)] = field(name, string(document))
			}
		}
	}
	for i, document := range wrongDocuments(base, schema) {
		bodies[fmt.Sprintf("metadata %d", i)] = field("metadata", string(document))
	}
	var out []malformed
	for _, reason := range slices.Sorted(maps.Keys(bodies)) {
		out = append(out, malformed{reason: reason + ": " + clipped([]byte(bodies[reason])), header: map[string]string{"Content-Type": media}, body: []byte(bodies[reason])})
	}
	return out
}

// brokenArchive is an archive and what is wrong with it.
type brokenArchive struct {
	reason  string
	content []byte
}

// brokenArchives cannot be unpacked.
func brokenArchives() []brokenArchive {
	files := map[string]string{"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n" + strings.Repeat("# a line\n", 200), "metadata.yaml": "resources: []\n"}
	tarball, zipped := rendertest.TarGz(files), rendertest.Zip(files)
	edited := func(content []byte, at int, b ...byte) []byte {
		content = bytes.Clone(content)
		copy(content[at:], b)
		return content
	}
	return []brokenArchive{
		{"no archive", []byte("hello")},
		{"an empty body", []byte{}},
		{"the beginning of a gzip", tarball[:2]},
		{"half a gzip header", tarball[:5]},
		{"a gzip of no method", edited(tarball, 2, 9)},
		{"half a gzip", tarball[:len(tarball)/2]},
		{"a gzip without its end", tarball[:len(tarball)-3]},
		{"a gzip with another sum", edited(tarball, len(tarball)-8, 1, 2, 3, 4)},
		{"a gzip with another length", edited(tarball, len(tarball)-4, 1, 2, 3, 4)},
		{"a gzip of nonsense", edited(tarball, 12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"bytes behind a gzip", append(bytes.Clone(tarball), "more"...)},
		{"a gzip of text", gzipped([]byte("hello"))},
		{"a tar of a wrong sum", gzipped(bytes.Repeat([]byte("x"), 1024))},
		{"an empty gzip", gzipped(nil)},
		{"a tar whose extended header is nonsense", paxOf("nonsense")},
		{"half a zip", zipped[:len(zipped)/2]},
		{"a zip without its end", zipped[:len(zipped)-3]},
		{"a zip of nonsense", edited(zipped, 60, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"the beginning of a zip", zipped[:4]},
		{"a zip of no method", zipOfMethod(99)},
		{"a zip with another sum", zipOfMethod(zip.Store)},
	}
}

// archivesOfBrokenFiles hold a file that cannot be read.
func archivesOfBrokenFiles() []brokenArchive {
	broken := brokenFiles()
	var out []brokenArchive
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		for _, text := range broken[name] {
			files := map[string]string{}
			switch folder, _, _ := strings.Cut(name, "/"); folder {
			case "fw":
				files["fw/Chart.yaml"] = "apiVersion: v2\nname: fw\nversion: 1.0.0\n"
			case "values.yaml":
				files["manifest.yaml"] = "type: {values: values.yaml}\n"
			default:
				files["metadata.yaml"] = "resources:\n- configMap: [" + name + "]\n"
			}
			files[name] = text
			out = append(out, brokenArchive{fmt.Sprintf("%s of %.60q", name, text), rendertest.TarGz(files)})
		}
	}
	return out
}

// brokenFiles are what the files of an archive may say that cannot be read.
func brokenFiles() map[string][]string {
	yaml := []string{"", "{", "[", "a: b: c", "\t- x", "a: *b", "a: &a [*a]", "5", "[5]", "null", "a: !!binary x", "a: !!int x", "a: 1\na: 2\n", "? [x]\n: y\n", "\xff", "\ufeff", "--- x\n--- y\n", "a: 1e999", "a: .nan", "<<: 5", "'", "name: [1]\nversion: {}\ndependencies: x\n", "%YAML 9"}
	json := []string{"{", "[", `{"a" 1}`, "{}x", `"\ud800"`, "1e999", "\ufeff{}", "{\"a\":\x01}"}
	return map[string][]string{
		"metadata.yaml": append([]string{"resources: 5", "resources: [5]", "resources: [{configMap: 5}]", "variables: x", "name: []"}, yaml...),
		"cm.yaml":       append([]string{"kind: 5", "apiVersion: v1\nkind: ConfigMap\nmetadata: 5", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: ${a"}, yaml...),
		"cm.json":       json,
		"manifest.yaml": append([]string{"type: 5", "type: {values: 5}", "type: {values: [x]}", "type: {configresource: 5}", "type: {configresource: [5]}", "type: {configresource: [{filepath: 5}]}"}, yaml...),
		"values.yaml":   yaml,

		"fw/Chart.yaml": yaml, "fw/values.yaml": yaml, "fw/templates/cm.yaml": yaml, "fw/crds/x.yaml": yaml,
		"fw/values.schema.json": append([]string{`{"type": 5}`, `{"$ref": "x"}`, `{"pattern": "["}`, `{"type": "string"}`}, json...),
	}
}

func gzipped(content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(content) // memory takes it
	_ = w.Close()
	return out.Bytes()
}

func zipOfMethod(method uint16) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	part, _ := w.CreateRaw(&zip.FileHeader{Name: "x", Method: method, CRC32: 1, CompressedSize64: 1, UncompressedSize64: 1})
	_, _ = part.Write([]byte("x"))
	_ = w.Close()
	return out.Bytes()
}

// paxOf returns a tar whose extended header says nonsense.
func paxOf(text string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	_ = w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o600})
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	raw := out.Bytes()
	raw[156] = 'x' // its type
	copy(raw[148:156], "        ")
	sum := 0
	for _, b := range raw[:512] {
		sum += int(b)
	}
	copy(raw[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return gzipped(raw)
}
