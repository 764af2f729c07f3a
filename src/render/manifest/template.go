package manifest

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// templated is a scalar with its text as a template.
type templated struct {
	*yaml.Node

	parts template
	lines bool // whether the text has several lines
}

// newTemplated parses the text of a scalar in which the reader found no fault.
func newTemplated(n *yaml.Node) templated {
	parts, _ := parseTemplate(n.Value)
	if n.Style&yaml.LiteralStyle != 0 {
		parts.count()
	}
	return templated{n, parts, n.Style&blockStyle != 0 || strings.Contains(n.Value, "\n")}
}

// whole reports whether the text is one reference and nothing else.
func (t templated) whole() bool { return len(t.parts) == 1 && t.parts[0].path != nil }

// template is a text with references to variables, split into literal texts and
// references.
type template []part

// part is a literal text, or a reference to a variable.
type part struct {
	text     string   // the literal, or the reference as written
	path     []string // of a reference: the variable, and the path in its value
	fallback *string  // of a reference: ${name:-fallback}
	row      int      // number of lines in the file after its scalar's first line
}

// naming returns a reference to another variable in the notation of this one.
func (p part) naming(name string) string {
	if strings.HasPrefix(p.text, "${") {
		return "${" + name + "}"
	}
	return "$" + name
}

// errUnclosed is the only possible syntax error: any other text that is not a
// reference is a literal.
var errUnclosed = errors.New("${ is not closed; write $${ for the text")

// parseTemplate parses the references in a text: $name, ${name}, ${name.path}
// and ${name:-default}, where the default contains no $. $$ is a dollar sign.
func parseTemplate(text string) (template, error) {
	parts := slices.Grow(template(nil), min(2*strings.Count(text, "$"), 8))
	literal := 0 // the end of the last part
	for i := 0; ; {
		next := strings.IndexByte(text[i:], '$')
		if next < 0 {
			return parts.add(text[literal:]), nil
		}
		i += next
		size, err := dollarSize(text[i+1:])
		if err != nil {
			return nil, err
		}
		end := i + 1 + size
		if reference, ok := parseReference(text[i:end]); ok {
			parts = append(parts.add(text[literal:i]), reference)
			literal = end
		}
		i = end
	}
}

// add appends a literal, if there is one.
func (t template) add(literal string) template {
	if literal == "" {
		return t
	}
	return append(t, part{text: strings.ReplaceAll(literal, "$$", "$")})
}

// dollarSize returns how many bytes after a $ belong to it.
func dollarSize(after string) (int, error) {
	switch {
	case strings.HasPrefix(after, "$"):
		return 1, nil
	case strings.HasPrefix(after, "{"):
		return bracesSize(after)
	}
	return nameSize(after), nil
}

// bracesSize returns the size of a text in braces, which may contain nested
// braces.
func bracesSize(text string) (int, error) {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			open--
		}
		if open == 0 {
			return i + 1, nil
		}
	}
	return 0, errUnclosed
}

// nameSize returns the size of the name at the beginning of a text.
func nameSize(text string) int {
	for i := range len(text) {
		c := text[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

func isName(text string) bool { return text != "" && nameSize(text) == len(text) }

// parseReference parses one reference. It returns false if the text is not one.
func parseReference(written string) (part, bool) {
	body := written[1:]
	inner, braced := strings.CutPrefix(body, "{")
	if !braced {
		return part{text: written, path: []string{body}}, isName(body)
	}
	inner = strings.TrimSuffix(inner, "}")
	p := part{text: written}
	dotted, fallback, found := strings.Cut(inner, ":-")
	if found {
		p.fallback = &fallback
	}
	p.path = strings.Split(dotted, ".")
	ok := isName(p.path[0]) && !strings.Contains(fallback, "$")
	for _, step := range p.path[1:] {
		ok = ok && isStep(step)
	}
	return p, ok
}

// isStep reports whether a text may be between the dots of a path: a name, an
// index, or a key of letters, digits and dashes.
func isStep(text string) bool {
	notStep := func(r rune) bool { return r != '-' && r != '_' && nameSize("_"+string(r)) == 1 }
	return text != "" && !strings.ContainsFunc(text, notStep)
}

// count sets the rows of the parts of a literal block. Such a block begins in
// the line after its indicator and has the line breaks of the file.
func (t template) count() {
	row := 1
	for i := range t {
		t[i].row = row
		row += strings.Count(t[i].text, "\n")
	}
}
