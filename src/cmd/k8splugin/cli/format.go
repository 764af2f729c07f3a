package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// format is the output format of responses. The zero value is a table.
type format struct {
	name    string
	columns []templateColumn   // of custom-columns
	path    *jsonpath.JSONPath // of jsonpath
}

// The names of the formats. The last two are followed by "=" and a template.
const (
	formatTable    = "table"
	formatWide     = "wide"
	formatName     = "name"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatColumns  = "custom-columns"
	formatJSONPath = "jsonpath"
)

func formats() []string {
	return []string{formatTable, formatWide, formatName, formatJSON, formatYAML, formatColumns + "=", formatJSONPath + "="}
}

// templateColumn is a column that the user has defined.
type templateColumn struct {
	head string
	path *jsonpath.JSONPath
}

// String, Set and Type implement pflag.Value.
func (f *format) String() string {
	if f.name == "" {
		return formatTable
	}
	return f.name
}

func (f *format) Type() string { return "format" }

func (f *format) Set(text string) (err error) {
	name, template, templated := strings.Cut(text, "=")
	if templated {
		name += "="
	}
	if !slices.Contains(formats(), name) {
		return fmt.Errorf("must be one of %s", strings.Join(formats(), ", "))
	}
	*f = format{name: strings.TrimSuffix(name, "=")}
	switch f.name {
	case formatJSONPath:
		f.path, err = parsePath(template)
	case formatColumns:
		f.columns, err = parseColumns(template)
	}
	return err
}

// people reports whether the output is for people.
func (f *format) people() bool { return slices.Contains([]string{"", formatTable, formatWide}, f.name) }

// parsePath parses a JSONPath template. A template without braces is one path, and
// may begin without a dot.
func parsePath(template string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(strings.TrimPrefix(template, "$"), ".") + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("cannot parse the path %q: %w", template, err)
	}
	return path, nil
}

// parseColumns parses HEAD:PATH,HEAD:PATH.
func parseColumns(template string) ([]templateColumn, error) {
	var out []templateColumn
	for part := range strings.SplitSeq(template, ",") {
		head, path, ok := strings.Cut(part, ":")
		if !ok || head == "" || path == "" {
			return nil, fmt.Errorf("a column must be HEAD:PATH, such as NAME:.vnf_instance_name, got %q", part)
		}
		parsed, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		out = append(out, templateColumn{head, parsed})
	}
	return out, nil
}

// decodeTree decodes a document for JSONPath.
func decodeTree(text []byte) (tree any, err error) {
	err = answer{body: text}.decode(&tree)
	return withNumbers(tree), err
}

// withNumbers returns a tree with integers and floats instead of the text of numbers.
func withNumbers(tree any) any {
	switch value := tree.(type) {
	case map[string]any:
		for name := range value {
			value[name] = withNumbers(value[name])
		}
	case []any:
		for i := range value {
			value[i] = withNumbers(value[i])
		}
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n
		}
		if f, err := value.Float64(); err == nil {
			return f
		}
	}
	return tree
}

// evaluate returns the text that a path selects in a document.
func evaluate(path *jsonpath.JSONPath, text []byte) (string, error) {
	tree, err := decodeTree(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := path.Execute(&out, tree); err != nil {
		return "", usagef("cannot evaluate the path: %w", err)
	}
	return out.String(), nil
}

// printColumns prints the columns that the user has defined, with a row for each item.
func printColumns[T ~[]byte](pr *printer, items []T) error {
	var columns []column[[]string]
	for i, c := range pr.format.columns {
		columns = append(columns, column[[]string]{head: c.head, cell: func(row []string) string { return row[i] }})
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		for _, c := range pr.format.columns {
			cell, err := evaluate(c.path, item)
			if err != nil {
				return err
			}
			rows[i] = append(rows[i], cell)
		}
	}
	return printItems(pr, columns, rows)
}

// printPath prints what a path selects in a document.
func printPath(w io.Writer, path *jsonpath.JSONPath, document []byte) error {
	text, err := evaluate(path, document)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.TrimSuffix(printable(text), "\n")+"\n")
	return err
}
