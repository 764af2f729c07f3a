package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The functions that instrument inserts into templates; see meter.
const (
	stepFunc = "__step" // at the beginning of the body of a range
	callFunc = "__call" // at the beginning of each template
	outFunc  = "__out"  // at the end of a pipeline that is printed
	letFunc  = "__let"  // at the end of a pipeline that is assigned, and after a path that may call a method
	argFunc  = "__arg"  // around the arguments of functions that cannot be replaced
	textFunc = "__text" // around the arguments of methods, and before a method at the end of a pipeline
	tplFunc  = "__tpl"  // around the text that tpl executes
)

// Limits of one template.
const (
	maxActions = 100_000
	maxWords   = 400_000 // operands in all actions
	maxBlocks  = 200     // nested conditions and loops
	maxSteps   = 64      // of a path: .a.b.c has three
	maxParens  = 1000    // nested parentheses
)

// instrumented is a template that prints the same as the original, and charges
// a meter.
type instrumented struct {
	text    string
	actions int    // number of actions
	defines int    // number of named templates that it defines
	words   int    // number of operands in its actions
	fault   string // the limit that it exceeds; empty: none
	broken  bool   // it cannot be parsed as a template
}

// instrument inserts the functions of the meter into a template, since Helm's
// engine can be neither stopped nor bounded. Line numbers do not change. A text
// that is not a template or exceeds a limit stays as it is.
func instrument(text string) instrumented {
	in := instrumenter{text: text}
	in.frames = []frame{{metered: true, call: true}}
	for in.pos < len(text) && in.fault == "" {
		start := strings.Index(text[in.pos:], "{{")
		if start < 0 {
			in.body(len(text))
			break
		}
		in.body(in.pos + start)
		if !in.action() {
			in.broken = true
			break
		}
	}
	out := instrumented{text: text, actions: in.actions, defines: in.defines, words: in.words, fault: in.fault}
	if out.broken = in.broken || len(in.frames) != 1; out.fault == "" && !out.broken {
		in.leave()
		out.text = in.apply()
	}
	return out
}

// instrumenter finds the positions in a template at which functions are
// inserted. It parses actions only as far as necessary.
type instrumenter struct {
	text    string
	pos     int
	frames  []frame
	inserts []insert
	actions int
	defines int
	words   int
	fault   string
	broken  bool
}

type insert struct {
	at   int
	text string
}

// frame is a block that is closed by an end action: the body of a loop, a
// template or a condition.
type frame struct {
	metered bool
	call    bool
	at      int    // offset of the body
	trim    string // trim marker at the end of the action before it
	size    int    // bytes of text in the body
	filled  bool   // it contains more than blanks
}

// body counts text outside of actions.
func (in *instrumenter) body(end int) {
	piece := in.text[in.pos:end]
	in.pos = end
	filled := strings.TrimSpace(piece) != ""
	for i := len(in.frames) - 1; i >= 0; i-- {
		f := &in.frames[i]
		f.filled = f.filled || filled
		if f.metered {
			f.size += len(piece)
			return
		}
	}
}

// action reads one action, and returns whether it ends.
func (in *instrumenter) action() bool {
	if in.actions++; in.actions > maxActions || in.words > maxWords {
		in.fault = fmt.Sprintf("contains more than %d actions or %d operands", maxActions, maxWords)
		return true
	}
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
	return in.enter(start, content, trim)
}

// enter handles an action by its first word.
func (in *instrumenter) enter(start int, content, trim string) bool {
	word := firstWord(content)
	after := len(content) - len(strings.TrimLeft(content, " \t\r\n")) + len(word)
	opened := frame{at: in.pos, trim: trim}
	pipe := pipeline{start: start + after, content: content[after:], trim: trim}
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
		if word != "range" {
			in.defines++
			pipe = pipe.named()
		}
	case "end":
		if len(in.frames) == 1 {
			return false
		}
		in.leave()
		return true
	case "template":
		in.fill()
		pipe = pipe.named()
	case "else", "break", "continue":
		in.fill()
		if next := firstWord(pipe.content); next == "if" || next == "with" {
			pipe = pipe.skip(strings.Index(pipe.content, next) + len(next))
		}
	default:
		in.fill()
		pipe = pipeline{start: start, content: content, trim: trim, last: outFunc}
		if assigns(content) {
			pipe.last = letFunc
		}
	}
	if len(in.frames) > maxBlocks {
		in.fault = fmt.Sprintf("nests more than %d conditions and loops", maxBlocks)
	}
	in.read(pipe)
	return true
}

// fill records that the open frames contain an action.
func (in *instrumenter) fill() {
	for i := len(in.frames) - 1; i >= 0 && !in.frames[i].filled; i-- {
		in.frames[i].filled = true
		if in.frames[i].call {
			return
		}
	}
}

// leave closes the innermost frame.
func (in *instrumenter) leave() {
	f := in.frames[len(in.frames)-1]
	in.frames = in.frames[:len(in.frames)-1]
	// A template that contains only blanks does not replace another of its
	// name, so nothing may be inserted into it. It cannot call anything.
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
	in.insert(f.at, fmt.Sprintf("{{%s %d%s}}", name, f.size, gap))
}

func (in *instrumenter) insert(at int, text string) {
	in.inserts = append(in.inserts, insert{at, text})
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
