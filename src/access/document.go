package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// document reads a YAML file strictly: it rejects unknown fields. It collects
// all violations, each with its line.
type document struct {
	file  string
	wrong nf.Violations
}

// readDocument parses a file and returns its only YAML document.
func readDocument(file string, content []byte) (*document, *yaml.Node, error) {
	d := &document{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var root, more yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		// The library's message has the line, and quotes nothing but names.
		return nil, nil, nf.Violations{{File: file, Message: "is not YAML: " + err.Error()}}
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, nil, nf.Violations{{File: file, Message: "contains more than one document"}}
	}
	if len(root.Content) == 0 {
		return nil, nil, nf.Violations{{File: file, Message: "is empty"}}
	}
	return d, root.Content[0], nil
}

// refuse records a violation at a node. The message must not quote a secret.
func (d *document) refuse(n *yaml.Node, field, format string, args ...any) {
	d.wrong = append(d.wrong, nf.Violation{File: d.file, Line: n.Line, Field: field, Message: fmt.Sprintf(format, args...)})
}

// reader reads the value of a field.
type reader func(n *yaml.Node, field string)

// fields reads a mapping. Each key must be known and occur once.
func (d *document) fields(n *yaml.Node, field string, known map[string]reader) {
	if n.Kind != yaml.MappingNode {
		d.refuse(n, field, "must be a mapping, not %s", kindName(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := join(field, key.Value)
		read, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			d.refuse(key, name, "is not a known field")
		case seen[key.Value]:
			d.refuse(key, name, "is given twice")
		default:
			seen[key.Value] = true
			read(value, name)
		}
	}
}

// each reads the items of a list.
func (d *document) each(n *yaml.Node, field string, item reader) {
	if n.Kind != yaml.SequenceNode {
		d.refuse(n, field, "must be a list, not %s", kindName(n))
		return
	}
	for i, sub := range n.Content {
		item(sub, field+"["+strconv.Itoa(i)+"]")
	}
}

// text reads a string.
func (d *document) text(into *string) reader {
	return func(n *yaml.Node, field string) {
		switch {
		case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
			d.refuse(n, field, "must be a string, not %s", kindName(n))
		case n.Value == "":
			d.refuse(n, field, "is empty")
		default:
			*into = n.Value
		}
	}
}

// texts reads a list of strings.
func (d *document) texts(into *[]string) reader {
	return func(n *yaml.Node, field string) {
		d.each(n, field, func(n *yaml.Node, field string) {
			var s string
			d.text(&s)(n, field)
			*into = append(*into, s)
		})
	}
}

// moment reads a time in RFC 3339 format.
func (d *document) moment(into *time.Time) reader {
	return func(n *yaml.Node, field string) {
		t, err := time.Parse(time.RFC3339, n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.refuse(n, field, "is not a time like 2027-01-31T00:00:00Z")
			return
		}
		*into = t
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias" // not supported: aliases could make a small file huge
	case yaml.DocumentNode, yaml.ScalarNode:
	}
	if n.ShortTag() == "!!null" {
		return "nothing"
	}
	return "a text"
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}
