package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The functions that instrument puts into templates; see meter.
const (
	stepFunc = "__step" // at the beginning of the body of a range
	callFunc = "__call" // at the beginning of everything that can be called
	outFunc  = "__out"  // at the end of a pipeline that is printed
	letFunc  = "__let"  // at the end of a pipeline that is assigned
	tplFunc  = "__tpl"  // around what tpl takes for a template
)

// instrument returns a template that does and prints the same, but tells a meter
// as it goes: Helm's engine can be neither stopped nor bounded. Lines stay where
// they are. What is no template is not made one.
func instrument(text string) string {
	in := instrumenter{text: text}
	in.frames = []frame{{metered: true, call: true}}
	for in.pos < len(text) {
		start := strings.Index(text[in.pos:], "{{")
		if start < 0 {
			in.body(len(text))
			break
		}
		in.body(in.pos + start)
		if !in.action() {
			return text // an action that does not end
		}
	}
	if len(in.frames) != 1 {
		return text
	}
	in.leave()
	return in.apply()
}

// actionBytes returns how many bytes of a template are in its actions.
func actionBytes(text string) int {
	sum := 0
	for {
		_, after, found := strings.Cut(text, "{{")
		if !found {
			return sum
		}
		inside, rest, _ := strings.Cut(after, "}}")
		sum += len(inside)
		text = rest
	}
}

// instrumenter finds the places in a template at which something is put in. It
// knows of actions only where they end and which word they begin with.
type instrumenter struct {
	text    string
	pos     int
	frames  []frame
	inserts []insert
}

type insert struct {
	at   int
	text string
}

// frame is what ends with an end: the body of a range, of a template, or of a
// condition.
type frame struct {
	metered bool
	call    bool
	at      int    // of the body
	trim    string // what ends the action before it
	size    int    // bytes of text in it
	filled  bool   // there is more than blanks in it
}

// body counts text outside of actions.
func (in *instrumenter) body(end int) {
	piece := in.text[in.pos:end]
	in.pos = end
	for i := len(in.frames) - 1; i >= 0; i-- {
		f := &in.frames[i]
		f.filled = f.filled || strings.TrimSpace(piece) != ""
		if f.metered {
			f.size += len(piece)
			return
		}
	}
}

// action reads one action, and returns whether it ends.
func (in *instrumenter) action() bool {
	start := in.pos + len("{{")
	if trimsLeft(in.text[start:]) {
		start += 2
	}
	if strings.HasPrefix(in.text[start:], "/*") {
		end := strings.Index(in.text[start:], "*/")
		if end < 0 {
			return false
		}
		closing := strings.Index(in.text[start+end:], "}}")
		in.pos = start + end + closing + len("}}")
		return closing >= 0
	}
	end := in.actionEnd(start)
	if end < 0 {
		return false
	}
	content, trim := in.text[start:end], ""
	if inner, trimmed := strings.CutSuffix(content, "-"); trimmed && inner != "" && isBlank(inner[len(inner)-1]) {
		content, trim = inner, "-"
	}
	in.pos = end + len("}}")
	in.templates(start, content)
	return in.enter(start, content, trim)
}

// enter does what the first word of an action asks for.
func (in *instrumenter) enter(start int, content, trim string) bool {
	word := firstWord(content)
	opened := frame{at: in.pos, trim: trim}
	switch word {
	case "if", "with":
		in.fill()
		in.frames = append(in.frames, opened)
	case "range", "define", "block":
		if word != "define" {
			in.fill()
		}
		opened.metered, opened.call = true, word != "range"
		in.frames = append(in.frames, opened)
	case "end":
		if len(in.frames) == 1 {
			return false
		}
		in.leave()
	case "else", "break", "continue", "template":
		in.fill()
	default:
		in.fill()
		in.pipe(start, content, trim)
	}
	return true
}

// fill notes that what is open holds an action.
func (in *instrumenter) fill() {
	for i := len(in.frames) - 1; i >= 0; i-- {
		in.frames[i].filled = true
		if in.frames[i].call {
			return
		}
	}
}

// leave ends the innermost frame.
func (in *instrumenter) leave() {
	f := in.frames[len(in.frames)-1]
	in.frames = in.frames[:len(in.frames)-1]
	// A template of blanks does not replace another of its name, so it must
	// stay one; and it can call nothing.
	if !f.metered || f.call && !f.filled {
		return
	}
	name := stepFunc
	if f.call {
		name = callFunc
	}
	gap := ""
	if f.trim != "" {
		gap = " " + f.trim
	}
	in.inserts = append(in.inserts, insert{f.at, fmt.Sprintf("{{%s %d%s}}", name, f.size, gap)})
}

// pipe puts a function at the end of a pipeline.
func (in *instrumenter) pipe(start int, content, trim string) {
	name := outFunc
	if assigns(content) {
		name = letFunc
	}
	text := " | " + name
	if trim != "" {
		text = "| " + name + " " // the blank before the dash is there
	}
	in.inserts = append(in.inserts, insert{start + len(content), text})
}

// templates finds what tpl takes for templates.
func (in *instrumenter) templates(start int, content string) {
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case isQuote(c):
			i += quoteSize(content[i:]) - 1
		case isWordByte(c) || c == '.' || c == '$':
			size := wordSize(content[i:])
			if content[i:i+size] == "tpl" {
				in.operand(start, content, i+size)
			}
			i += size - 1
		}
	}
}

// operand wraps the operand that follows in a call.
func (in *instrumenter) operand(start int, content string, at int) {
	for at < len(content) && isBlank(content[at]) {
		at++
	}
	if size := operandSize(content[at:]); size > 0 {
		in.inserts = append(in.inserts, insert{start + at, "(" + tplFunc + " "}, insert{start + at + size, ")"})
	}
}

func (in *instrumenter) apply() string {
	slices.SortStableFunc(in.inserts, func(a, b insert) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	from := 0
	for _, i := range in.inserts {
		b.WriteString(in.text[from:i.at])
		b.WriteString(i.text)
		from = i.at
	}
	b.WriteString(in.text[from:])
	return b.String()
}
