package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// readYAML parses the documents of a YAML file.
func (rd *reader) readYAML(content []byte) []*yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	documents, err := rd.collect(func() (*yaml.Node, error) {
		var d yaml.Node
		return &d, decoder.Decode(&d)
	})
	if err != nil {
		rd.syntaxError(content, err)
	}
	return documents
}

// syntaxError reports why a file is not valid YAML. For many errors the
// parser's own line is the beginning of the document. More useful is the first
// line up to which the file has the same error.
func (rd *reader) syntaxError(content []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	at := place{file: rd.file}
	if before, after, found := strings.Cut(message, ": "); found {
		if _, err := fmt.Sscanf(before, "line %d", &at.line); err == nil {
			message = after
		}
	}
	count, _ := countSeparators(content, maxMarks)
	times := bits.Len(uint(bytes.Count(content, []byte("\n"))))
	if rd.searched += max(len(content), 16*count) * times; rd.searched <= maxSearched {
		at.line = brokenLine(content)
	}
	rd.size += len(content)
	rd.full = rd.size > maxSize
	if tabbed(content, at.line) {
		message += " (the line is indented with a tab; use spaces)"
	}
	rd.report.add(at, "", "is not YAML: %s", message)
}

// tabbed reports whether a line is indented with a tab. Editors show a tab like
// spaces, and the parser calls it a character that cannot start a token.
func tabbed(content []byte, line int) bool {
	lines := bytes.SplitN(content, []byte("\n"), line+1)
	if line < 1 || len(lines) < line {
		return false
	}
	text := lines[line-1]
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	return bytes.ContainsRune(indent, '\t')
}

// maxSearched is how many bytes of a package, or equivalent work, may be parsed
// again to find the lines of errors.
const maxSearched = 8 << 20

// brokenLine returns the first line up to which content has the same error as
// the whole.
func brokenLine(content []byte) int {
	// The parser reports no lines for errors that begin in the first one.
	content = append([]byte("#\n"), content...)
	lines := slices.Collect(bytes.Lines(content))
	whole := parseError(content)
	return sort.Search(len(lines)-1, func(line int) bool {
		return parseError(slices.Concat(lines[:line+1]...)) == whole
	})
}

// parseError returns the text of the first syntax error, or "".
func parseError(content []byte) string {
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var d yaml.Node
		switch err := decoder.Decode(&d); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return err.Error()
		}
	}
}

// scalarValue returns the value of a scalar as kubectl reads it: the core types
// of YAML 1.2, and booleans and octal numbers of YAML 1.1. A date is a text.
func scalarValue(y *yaml.Node) (any, error) {
	tag := y.ShortTag()
	if tag == "!!bool" || y.Style == 0 {
		if truth, is := booleans[y.Value]; is {
			return truth, nil
		}
	}
	switch {
	case tag == "!!null" || y.Kind != yaml.ScalarNode:
		return nil, nil
	case tag == "!!bool":
		return nil, fmt.Errorf("%q is neither true nor false", nf.Clip(y.Value, maxQuote))
	case tag != "!!int" && tag != "!!float":
		return y.Value, nil
	}
	var v any
	if err := y.Decode(&v); err != nil {
		return nil, fmt.Errorf("%q is not of the type %s", nf.Clip(y.Value, maxQuote), tag)
	}
	return number(v)
}

// booleans are those of YAML 1.1. YAML 1.2 dropped most of these words;
// Kubernetes accepts all of them.
var booleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true, "true": true, "True": true, "TRUE": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false, "false": false, "False": false, "FALSE": false,
}

// plainValue returns the value of an unquoted scalar.
func plainValue(text string) (any, error) {
	return scalarValue(&yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)})
}

// number returns a number of the YAML library with the type that unstructured
// objects use: int64 for every whole number that fits, otherwise float64.
func number(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("is not a number that JSON knows")
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
	}
	return v, nil
}
