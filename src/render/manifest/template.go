package manifest

import (
	"errors"
	"strings"
)

// template is a text with variables in it, as literal texts and references.
type template []part

// part is a literal text, or a reference to a variable.
type part struct {
	text     string   // the literal, or the reference as it is written
	path     []string // of a reference: the variable, and what to take of its value
	fallback *string  // of a reference: ${name:-fallback}
	row      int      // how many lines of the file below its scalar's first one it is
}

// naming returns a reference to another variable in the form of this one.
func (p part) naming(name string) string {
	if strings.HasPrefix(p.text, "${") {
		return "${" + name + "}"
	}
	return "$" + name
}

// errUnclosed is the one way in which a text can be wrong: what looks like no
// reference at all is none.
var errUnclosed = errors.New("${ is not closed; write $${ for the text")

// parseTemplate finds the references in a text: $name, ${name}, ${name.path}
// and ${name:-default}, in which the default holds no $. $$ is a dollar.
func parseTemplate(text string) (template, error) {
	var parts template
	var literal strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		literal.WriteString(before)
		if !found {
			return parts.add(&literal), nil
		}
		size, err := dollarSize(after)
		if err != nil {
			return nil, err
		}
		written := "$" + after[:size]
		text = after[size:]
		if reference, ok := parseReference(written); ok {
			parts = append(parts.add(&literal), reference)
		} else {
			literal.WriteString(strings.ReplaceAll(written, "$$", "$"))
		}
	}
}

// add appends what has been gathered of a literal.
func (t template) add(literal *strings.Builder) template {
	if literal.Len() == 0 {
		return t
	}
	text := literal.String()
	literal.Reset()
	return append(t, part{text: text})
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

// bracesSize returns the size of a text in braces, which may hold others.
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

// nameSize returns the size of the name that a text begins with.
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

// parseReference reads a whole reference.
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

// isStep reports whether a text may stand between the dots of a path: a name,
// an index, or a key of letters, digits and dashes.
func isStep(text string) bool {
	notStep := func(r rune) bool { return r != '-' && r != '_' && nameSize("_"+string(r)) == 1 }
	return text != "" && !strings.ContainsFunc(text, notStep)
}

// count finds the rows of the parts of a literal block, which begins in the line
// below its indicator and has the lines of the file.
func (t template) count() {
	row := 1
	for i := range t {
		t[i].row = row
		row += strings.Count(t[i].text, "\n")
	}
}

// literal returns the text of a template without references.
func (t template) literal() string {
	if len(t) == 0 {
		return ""
	}
	return t[0].text
}

// whole reports whether a template is one reference and nothing else.
func (t template) whole() bool { return len(t) == 1 && t[0].path != nil }
