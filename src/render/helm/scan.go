package helm

import "strings"

// What follows reads actions of templates as text/template does, as far as that
// is needed to tell where they end.

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isWordByte takes every letter that is not ASCII for part of a word.
func isWordByte(c byte) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= 0x80
}

// trimsLeft reports whether an action begins with a dash that trims.
func trimsLeft(text string) bool { return len(text) > 1 && text[0] == '-' && isBlank(text[1]) }

// actionEnd returns where the action that begins at a place is closed, or -1.
func (in *instrumenter) actionEnd(start int) int {
	for i := start; i < len(in.text); i++ {
		switch c := in.text[i]; {
		case strings.HasPrefix(in.text[i:], "}}"):
			return i
		case isQuote(c):
			size := quoteSize(in.text[i:])
			if size == 0 {
				return -1
			}
			i += size - 1
		}
	}
	return -1
}

// quoteSize returns the size of a quoted text, or 0 if it is not closed.
func quoteSize(text string) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return 0
}

// firstWord returns the keyword, or the name of a function, that an action begins
// with.
func firstWord(content string) string {
	content = strings.TrimLeft(content, " \t\r\n")
	size := 0
	for size < len(content) && isWordByte(content[size]) {
		size++
	}
	return content[:size]
}

// wordSize returns the size of a word, with dots and dollars in it.
func wordSize(text string) int {
	for i := range len(text) {
		if c := text[i]; !isWordByte(c) && c != '.' && c != '$' {
			return i
		}
	}
	return len(text)
}

// assigns reports whether a pipeline is assigned, and not printed.
func assigns(content string) bool {
	content = strings.TrimLeft(content, " \t\r\n")
	if !strings.HasPrefix(content, "$") {
		return false
	}
	rest := strings.TrimLeft(content[wordSize(content):], " \t\r\n")
	return strings.HasPrefix(rest, ":=") || strings.HasPrefix(rest, "=")
}
