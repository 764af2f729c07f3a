package helm

import (
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

// Charges for regular expressions.
const (
	instructionCost = 64  // one instruction of the compiled program
	matchSteps      = 8   // instructions executed per byte charged
	matchCost       = 128 // one match
)

func regexCosts() map[string]cost {
	out := map[string]cost{}
	for name, price := range map[string]cost{
		"Match": regexSearchCost, "Find": regexSearchCost, "FindAll": regexFindAllCost, "Split": regexFindAllCost,
		"ReplaceAll": regexReplaceCost, "ReplaceAllLiteral": regexReplaceCost,
	} {
		out["regex"+name], out["mustRegex"+name] = price, price
	}
	return out
}

// compiled returns the cost of compiling a regular expression and of one search
// in a text, and its number of instructions. That number is 0 for an invalid
// expression.
func compiled(pattern, text string) (size, instructions int) {
	// A character class can be a thousand times as large as its name.
	size = product(len(pattern), 32) + product(len(pattern), len(pattern))/4
	if size > maxWork {
		return size, 0
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return size, 0
	}
	instructions = instructionsOf(re)
	return size + product(instructions, instructionCost) + product(instructions, len(text))/matchSteps, instructions
}

// instructionsOf estimates the number of instructions that a regular expression
// compiles to. A repeated part is compiled once for each repetition.
func instructionsOf(re *syntax.Regexp) int {
	count := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		count += instructionsOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		count = product(count, max(re.Min, re.Max, 1))
	}
	return min(count, tooMuch)
}

func regexSearchCost(_ *meter, args []reflect.Value) int {
	pattern, text := args[0].String(), args[1].String()
	size, _ := compiled(pattern, text)
	return size
}

func regexFindAllCost(m *meter, args []reflect.Value) int {
	pattern, text := args[0].String(), args[1].String()
	size, _ := compiled(pattern, text)
	m.must(size)
	return product(matchCost, m.matches(pattern, text))
}

// regexReplaceCost is the cost of one replacement for each match. Each group
// reference in it inserts at most the whole text.
func regexReplaceCost(m *meter, args []reflect.Value) int {
	pattern, text, with := args[0].String(), args[1].String(), args[2].String()
	size, _ := compiled(pattern, text)
	m.must(size)
	return 2*len(text) + product(m.matches(pattern, text), len(with)) + product(len(text), strings.Count(with, "$"))
}

// matches returns the number of matches of a regular expression in a text. Each
// search may have to read the rest of the text, so the time is checked after
// each match. Counting uses at most half of the remaining time, since the
// function that follows searches again and cannot be stopped.
func (m *meter) matches(pattern, text string) int {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return 0 // the function reports it
	}
	end, bounded := m.ctx.Deadline()
	half := time.Now().Add(time.Until(end) / 2)
	count := 0
	re.ReplaceAllStringFunc(text, func(string) string {
		if count++; bounded && time.Now().After(half) {
			m.stop(m.timeout)
		}
		m.must(0)
		return ""
	})
	return count
}
