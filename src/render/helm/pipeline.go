package helm

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unreplaced are the functions of text/template and of Helm's engine that
// cannot be replaced, since neither package exports them. The meter is charged
// for their arguments instead. The remaining functions of text/template take
// constant time: and, call, len, not, or, slice.
var unreplaced = map[string]bool{
	"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "index": true,
	"mustToDuration": true, "durationRoundTo": true, "durationTruncateTo": true,
	"durationNanoseconds": true, "durationMicroseconds": true, "durationMilliseconds": true,
	"durationSeconds": true, "durationMinutes": true, "durationHours": true, "durationDays": true, "durationWeeks": true,
}

// pipeline is the pipeline of an action: commands separated by bars.
type pipeline struct {
	start   int // offset of content in the template
	content string
	trim    string // "-" if the action ends with one
	last    string // the function to insert at its end; may be empty
}

// skip removes the beginning of a pipeline.
func (p pipeline) skip(size int) pipeline {
	p.start, p.content = p.start+size, p.content[size:]
	return p
}

// named removes the name of a template.
func (p pipeline) named() pipeline {
	p = p.skip(len(p.content) - len(strings.TrimLeft(p.content, " \t\r\n")))
	if p.content != "" && isQuote(p.content[0]) {
		p = p.skip(quoteSize(p.content))
	}
	return p
}

// command is a function, a method or a value, with its arguments.
type command struct {
	open     int // position of the parenthesis before it
	operands int
	function string
	method   bool // it may call a method
	piped    bool // it receives the result of the previous command
}

// operand is one part of a command.
type operand struct {
	from, to int
	constant bool // and short
	method   bool
}

// read finds the positions in a pipeline at which functions are inserted.
func (in *instrumenter) read(p pipeline) {
	open := []command{{}}
	for i := 0; i < len(p.content); {
		c, size := &open[len(open)-1], 1
		switch next := p.content[i]; {
		case next == '(':
			if open = append(open, command{open: i}); len(open) > maxParens {
				in.fault = fmt.Sprintf("nests more than %d parentheses", maxParens)
				return
			}
		case next == ')':
			if len(open) == 1 {
				in.broken = true
				return
			}
			in.close(p, *c, i)
			size += wordSize(p.content[i+1:])
			open = open[:len(open)-1]
			in.operand(p, &open[len(open)-1], operand{from: c.open, to: i + size, method: isMethod(p.content[i+1 : i+size])})
		case next == '|':
			in.close(p, *c, i)
			*c = command{open: c.open, piped: true}
		case next == '=': // of a declaration or an assignment
			*c = command{open: c.open}
		case isQuote(next):
			size = quoteSize(p.content[i:]) // the quote is closed, since the action is
			in.operand(p, c, operand{from: i, to: i + size, constant: size <= shortText})
		case next == '+' || next == '-' || isWordByte(next) || next == '.' || next == '$':
			size = max(1, wordSize(p.content[i:]))
			in.operand(p, c, in.word(p, i, size))
		}
		i += size
	}
	in.end(p, open[0])
}

// word returns the operand that consists of a word.
func (in *instrumenter) word(p pipeline, from, size int) operand {
	word := p.content[from : from+size]
	if strings.Count(word, ".") > maxSteps {
		in.fault = fmt.Sprintf("contains a path of more than %d steps", maxSteps)
	}
	first, _ := utf8.DecodeRuneInString(word)
	constant := first == '+' || first == '-' || unicode.IsDigit(first) || word == "true" || word == "false" || word == "nil"
	return operand{from: from, to: from + size, constant: constant, method: !constant && isMethod(word)}
}

// isMethod reports whether a path may call a method: their names begin with an
// upper-case letter. Values is not a method of any type.
func isMethod(path string) bool {
	_, steps, _ := strings.Cut(path, ".")
	for step := range strings.SplitSeq(steps, ".") {
		first, _ := utf8.DecodeRuneInString(step)
		if unicode.IsUpper(first) && step != "Values" {
			return true
		}
	}
	return false
}

// operand adds an operand to a command.
func (in *instrumenter) operand(p pipeline, c *command, o operand) {
	in.words++
	c.operands++
	wrap := func(before, after string) {
		in.insert(p.start+o.from, before)
		in.insert(p.start+o.to, after)
	}
	switch {
	case c.operands == 1:
		c.method = o.method
		c.function, _, _ = strings.Cut(p.content[o.from:o.to], ".")
		if c.method && c.piped {
			in.insert(p.start+o.from, textFunc+" | ")
		}
	case c.function == "tpl" && c.operands == 2:
		wrap("("+tplFunc+" ", ")")
	case unreplaced[c.function] && !o.constant:
		wrap("("+argFunc+" ", ")")
	case c.method && !o.constant:
		wrap("("+textFunc+" ", ")")
	case o.method:
		wrap("(", " | "+letFunc+")")
	}
}

// close ends a command within a pipeline.
func (in *instrumenter) close(p pipeline, c command, at int) {
	if c.method {
		in.insert(p.start+at, " | "+letFunc)
	}
}

// end ends the last command of an action.
func (in *instrumenter) end(p pipeline, c command) {
	name, bar := p.last, "| "
	if name == "" && c.method {
		name = letFunc
	}
	if strings.HasSuffix(strings.TrimRight(p.content, " \t\r\n"), "|") {
		bar = "" // the pipeline ends with a bar, which text/template accepts
	}
	switch {
	case name == "":
	case p.trim != "":
		in.insert(p.start+len(p.content), bar+name+" ") // there is already a blank before the dash
	default:
		in.insert(p.start+len(p.content), " "+bar+name)
	}
}
